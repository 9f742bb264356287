#pragma once

// Heartbeat: whether the lane of a path's peer still turns. A process that died is noticed by its pidfd and its socket;
// one that is stopped keeps both. So each end asks by a word in the link and a ring of the doorbell, and answers by
// another word. Only a driven peer is asked, for one that is polled may rest as long as it likes.
//
// It decides, and its path tells the agent and rings the doorbell.
//
// Thread rule: confined to the lane. Lifetime: borrows the link.

#include <cstdint>
#include <optional>

#include <hawser/time.h>

#include "backend/shm/link.h"
#include "proto/detector.h"

namespace hawser::backend::shm {

class Heartbeat {
 public:
  explicit Heartbeat(const Link& link) : link_(link) {}
  /// The path is up, and the peer is driven. `interval` is above zero; `patience`: see AgentOptions::peer_timeout.
  void begin(Duration interval, Duration patience, Instant now);
  bool is_on() const { return detector_.has_value(); }

  /// The transfers of somebody here wait for the peer, or no longer do.
  void set_awaited(bool awaited, Instant now);
  /// A message was put into the ring: somebody waits as long as the peer has not taken it.
  void note_unread(Instant now);
  /// Whether note_unread was told of a message since the peer had last taken all.
  bool is_unread() const { return is_unread_; }

  /// The peer rang: it may ask. True: it had been silent for so long that the agent was told, and now it was heard.
  bool answer(Instant now);

  enum class Verdict : std::uint8_t {
    kNothing,
    kAsk,      ///< The question is in the link; ring the peer's doorbell.
    kSuspect,  ///< The same, and the agent is to hear that the peer is silent.
    kFailed,   ///< It did not answer for too long. Told once.
  };
  struct Look {
    bool is_heard_again = false;  ///< The agent was told that the peer is silent, and now it was heard.
    Verdict verdict = Verdict::kNothing;
    Duration silent = Duration::zero();  ///< kSuspect, kFailed: for how long nothing was heard.
  };
  /// Looks at the peer once next() has come, and asks it where that is due. `messages_in`: how many messages came since
  /// the beginning. `is_drained`: the peer has taken all that was put into the ring.
  Look look(std::uint64_t messages_in, bool is_drained, Instant now);
  /// Instant::max(): never.
  Instant next() const { return detector_ ? detector_->next_timeout() : Instant::max(); }
  /// Null: nothing is wrong. Else the peer misses its heartbeats, and this tells since when.
  const proto::Detector* silent() const { return is_silent_ ? &*detector_ : nullptr; }
  /// Asks an idle peer now if that is due soon. True: look() has something to do.
  bool hasten(Instant now) { return detector_ && detector_->hasten(now); }

 private:
  bool was_heard(std::uint64_t messages_in);
  bool note_heard(Instant now);

  const Link& link_;
  std::optional<proto::Detector> detector_;
  std::uint64_t last_ping_ = 0;  ///< 0: none waits for its answer.
  std::uint64_t heard_in_ = 0;   ///< Messages that had come when it was heard last.
  bool is_awaited_ = false;
  bool is_unread_ = false;
  bool is_silent_ = false;  ///< The agent was told so.
};

}  // namespace hawser::backend::shm
