#pragma once

// Control: the demo's line between parent and child, JSON objects over a socket pair, or over the input and output of
// a process on another host. It stands for the scheduler of a
// serving system: who exists, which request goes where, when a pass begins. KV blocks and their records go by Hawser.
//
// Every message has a "kind". {"kind": "error", "status": ...} may come at any time and ends the conversation.
//
// Thread rule: one thread. Lifetime: owns its descriptors.

#include <functional>
#include <string>
#include <string_view>

#include <hawser/time.h>

#include "base/fd.h"
#include "cli/json_out.h"

namespace hawser::cli {

class Control {
 public:
  /// Called while waiting: the caller's agent wants progress too. A bad status ends the wait.
  using Idle = std::function<Status()>;

  explicit Control(base::Fd socket) : in_(std::move(socket)) {}
  /// Pipes, or whatever a command such as ssh gives to what it starts.
  Control(base::Fd in, base::Fd out);

  /// Blocks at most `timeout`: the other end reads at once, or is gone.
  Status send(const Json& message, Duration timeout);
  /// The next message of any kind but "error".
  Result<Json> next(Duration timeout, const Idle& idle);
  /// The next message, which must be of `kind`. kDisconnected when the other end closed; an error that it reported is
  /// returned as that error.
  Result<Json> receive(std::string_view kind, Duration timeout, const Idle& idle);
  /// True where the other end said something (or hung up) that `receive` has not taken.
  bool pending() const;

 private:
  Result<bool> fill();
  Result<Json> take();

  int out() const { return out_ ? out_.get() : in_.get(); }

  base::Fd in_, out_;  ///< `out_`: none where `in_` goes both ways.
  std::string buffer_;
};

Json control_message(std::string_view kind);
/// Bytes as text for JSON, and back (kCorrupt when they are not hexadecimal).
std::string to_hex(std::string_view bytes);
Result<std::string> from_hex(std::string_view text);

}  // namespace hawser::cli
