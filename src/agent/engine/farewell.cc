#include "agent/engine/farewell.h"

#include <algorithm>
#include <span>
#include <string>

#include "wire/session.h"

namespace hawser::agent {

void say_refused(backend::Path& path, const Status& why) {
  std::string text = std::string(why.message());
  if (!why.advice().empty()) text.append("; ").append(why.advice());
  text.resize(std::min(text.size(), wire::kByeTextMax));
  std::array<std::byte, wire::kHeadMax> buffer;
  const auto head = wire::encode(wire::Bye{.code = Code::kBusy, .text = text}, buffer);
  static_cast<void>(path.send(Priority::kRealtime, head, std::as_bytes(std::span(text))));
}

void say_refused(Session& session, const Status& why) {
  if (PathEntry* const control = session.control()) say_refused(*control->path, why);
}

}  // namespace hawser::agent
