#include "backend/stream/cover.h"

namespace hawser::backend::stream {

Status check_cover(const wire::Hello& hello, const Stream& stream, Security ours) {
  if (stream.cover() == Cover::kTls) return Status();
  if (ours == Security::kEncrypt) {
    return Status(Code::kDenied, "this agent speaks TLS only (its security is `encrypt`), and the hello is in clear")
        .with_advice("load its card, or give its address with its ticket (ADDRESS#TICKET)");
  }
  if (stream.cover() == Cover::kHost) return Status();
  if (level_of(ours) > 0) {
    return Status(Code::kDenied, "this agent speaks TLS to other hosts, and the hello came in clear")
        .with_advice("load its card, or give its address with its ticket (ADDRESS#TICKET)");
  }
  if (hello.security == 0) return Status();
  return Status(Code::kDenied, "the peer speaks TLS to other hosts, and its hello came in clear");
}

}  // namespace hawser::backend::stream
