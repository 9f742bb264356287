#pragma once

// AskLink: one question over one connection to an agent's metadata listener, without waiting. The question is sent
// once the listener is trusted: it may hold keys.
//
// Thread rule: confined. Lifetime: the question's bytes outlive it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/address.h"
#include "base/fd.h"
#include "compat/frame.h"
#include "compat/trust.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class AskLink {
 public:
  /// Begins to connect. `question` is an encoded frame.
  AskLink(const base::SocketAddress& address, std::string_view question, Trust trust, Instant now);
  AskLink(const AskLink&) = delete;
  AskLink& operator=(const AskLink&) = delete;

  int fd() const { return fd_.get(); }
  /// What to poll for.
  short events() const;
  /// When to go on though the socket is not ready.
  Instant next_look() const { return next_look_; }
  /// The socket is ready, or it is time: goes on as far as it can.
  void move_on(Instant now);
  /// Nothing while it is under way. kDisconnected: nobody listens there, or the listener closed without an answer.
  /// kCorrupt: the answer is no frame. kDenied: another user's process listens there, or the kernel does not tell.
  std::optional<Result<Frame>>& outcome() { return outcome_; }
  /// Bytes of an answer that is not whole yet.
  std::size_t held() const { return received_.size(); }

 private:
  enum class Stage { kConnecting, kKnowing, kSending, kReceiving };
  void end(Result<Frame> outcome) { outcome_ = std::move(outcome); }
  /// False: not further for now.
  bool connected();
  bool known(Instant now);
  bool send();
  bool receive();
  std::string where() const { return base::to_string(address_); }

  const base::SocketAddress address_;
  const std::string_view question_;
  const Trust trust_;
  base::Fd fd_;
  Stage stage_ = Stage::kConnecting;
  Instant next_look_ = Instant::max();
  std::size_t sent_ = 0;
  std::string received_;
  std::optional<Result<Frame>> outcome_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
