#pragma once

// AskLink: one question over one connection to an agent's metadata listener, without waiting. The question is sent
// once the listener has welcomed it and is trusted: it may hold keys.
//
// Thread rule: confined. Lifetime: the name's and the question's bytes outlive it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include "base/address.h"
#include "compat/channel.h"
#include "compat/frame.h"
#include "compat/trust.h"
#include "compat/vouch.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class AskLink {
 public:
  /// Begins to connect. `question` is an encoded frame. `name`: of the agent that has to answer; empty: any.
  AskLink(const base::SocketAddress& address, std::string_view name, std::string_view question, Trust trust);
  AskLink(const AskLink&) = delete;
  AskLink& operator=(const AskLink&) = delete;

  int fd() const { return channel_.fd(); }
  /// What to poll for.
  short events() const;
  /// The socket is ready: goes on as far as it can.
  void move_on();
  /// Nothing while it is under way. kDisconnected: nobody listens there, or the listener closed without an answer.
  /// kCorrupt: the answer is no frame. kDenied: another user's process listens there, or the kernel does not tell.
  std::optional<Result<Frame>>& outcome() { return outcome_; }
  /// Bytes of an answer that is not whole yet.
  std::size_t held() const { return received_.size(); }

 private:
  enum class Stage { kConnecting, kWelcome, kProving, kAnswer };
  void end(Result<Frame> outcome) { outcome_ = std::move(outcome); }
  /// False: not further for now.
  bool connected();
  bool send();
  bool receive();
  void fail(std::string_view doing, const Status& why);
  void on_frame(Frame frame);
  void on_welcome(const Frame& welcome);
  void on_proven(const Frame& proven);
  Status prove();
  void say(std::string_view what, Stage next);
  std::string where() const { return base::to_string(address_); }

  const base::SocketAddress address_;
  const std::string_view name_, question_;
  const Trust trust_;
  Channel channel_;
  Stage stage_ = Stage::kConnecting;
  std::string_view saying_;  ///< What is left of the question, or of `proof_`.
  std::string proof_;
  Nonces nonces_;
  std::string received_;
  std::optional<Result<Frame>> outcome_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
