#pragma once

// AskLink: one question over one connection to an agent's metadata listener, without waiting.
//
// Thread rule: confined. Lifetime: the question's bytes outlive it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/address.h"
#include "base/fd.h"
#include "compat/frame.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class AskLink {
 public:
  /// Begins to connect. `question` is an encoded frame.
  AskLink(const base::SocketAddress& address, std::string_view question);
  AskLink(const AskLink&) = delete;
  AskLink& operator=(const AskLink&) = delete;

  int fd() const { return fd_.get(); }
  /// What to poll for.
  short events() const;
  /// The socket is ready: goes on as far as it can.
  void move_on();
  /// Nothing while it is under way. kDisconnected: nobody listens there, or the listener closed without an answer.
  /// kCorrupt: the answer is no frame.
  std::optional<Result<Frame>>& outcome() { return outcome_; }
  /// Bytes of an answer that is not whole yet.
  std::size_t held() const { return received_.size(); }

 private:
  enum class Stage { kConnecting, kSending, kReceiving };
  void end(Result<Frame> outcome) { outcome_ = std::move(outcome); }
  /// False: not further for now.
  bool connected();
  bool send();
  bool receive();
  std::string where() const { return base::to_string(address_); }

  const base::SocketAddress address_;
  const std::string_view question_;
  base::Fd fd_;
  Stage stage_ = Stage::kConnecting;
  std::size_t sent_ = 0;
  std::string received_;
  std::optional<Result<Frame>> outcome_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
