#pragma once

// OpenerQuestion: after a loss, does the opener still listen? The side that accepted has nobody to connect to, and
// would wait for the whole of peer_timeout for a process that is dead. On the same host a refused connection proves
// that it is dead. All sockets of a process go with it, though not at the same instant, so it is asked a few times.
//
// Thread rule: confined to the port's lane. Lifetime: borrows the network, and the owner that its streams name.

#include <memory>
#include <string>
#include <utility>

#include <hawser/time.h>

#include "backend/stream/stream.h"

namespace hawser::backend::stream {

class OpenerQuestion {
 public:
  static constexpr unsigned kAsksMax = 5;
  /// Before the second question; it doubles. In all less than the 50 ms in which a death is to be reported.
  static constexpr Duration kFirstPause = std::chrono::milliseconds(1);
  /// A connection within a host needs microseconds, unless the listener's queue is full: then somebody lives.
  static constexpr Duration kAnswerMax = std::chrono::milliseconds(10);

  /// `place`: where the opener listens. `owner`: what the network tells of these streams.
  OpenerQuestion(Network& network, std::string place, void* owner)
      : network_(network), place_(std::move(place)), owner_(owner) {}

  enum class Answer : std::uint8_t {
    kNone,   ///< Not yet.
    kEnded,  ///< Nobody listens there any more.
    kLives,  ///< Somebody does, or nobody can tell.
  };
  /// Whether turn() has something to do.
  bool is_due(Instant now) const;
  /// Asks, or takes the answer. After kEnded or kLives it is not called again.
  Answer turn(Instant now);
  /// When it is due at the latest.
  Instant next() const { return at_; }
  bool has_asked() const { return asked_ > 0; }

 private:
  Answer ask(Instant now);
  Answer take_answer(Instant now);

  Network& network_;
  const std::string place_;
  void* const owner_;
  std::unique_ptr<Stream> stream_;
  Instant at_ = Instant::min();  ///< When to ask next, or until when an answer is awaited.
  unsigned asked_ = 0;
};

}  // namespace hawser::backend::stream
