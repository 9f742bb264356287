#pragma once

// Messages: the agents' messages of one path, in one order over two carriers: sends into receives that the peer posted
// on the path's first queue pair, and the control stream for what does not fit there: messages larger than a receive,
// more than the peer has receives for, and all while no queue pair is ready.
//
// Every message has a number. The receiver delivers by number: what came early waits, in its receive or as a copy, and
// what came twice is dropped. A receive is posted again before its message is told to the sender as received, and the
// sender has no more under way than the peer has receives: no send meets an empty queue. Numbers of what was received
// go back with messages, else by a word on the control stream after half of the receives.
//
// A sent message is kept until it was received. When the connection is lost, what is kept goes by the control stream
// before anything newer; so a broken queue pair loses no message as long as the path is up.
//
// Thread rule: confined to the lane. Lifetime: owned by its path; outlives its queue pairs, which use its memory. What
// a device refuses to end keeps that.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/stream/events.h"
#include "backend/verbs/queues/queue_pair.h"

namespace hawser::backend::verbs {

class Messages {
 public:
  static constexpr std::uint32_t kSlotBytes = 2048;
  /// So many messages on the control stream may pass those on the queue pair.
  static constexpr std::size_t kAheadMax = 4;

  /// Memory for `slots` receives and as many sends, and for `more` receives that immediates take (whatever comes next
  /// takes the next receive), registered with every lane's device. Errors: of registering.
  static Result<std::unique_ptr<Messages>> open(std::span<const std::unique_ptr<NicLane>> lanes, std::uint32_t slots,
                                                std::uint32_t more, stream::EventQueue& events, Path* path);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  std::uint32_t slots() const { return slots_; }
  /// What the peer has receives for. False: it has none, and messages go without numbers.
  bool on_peer(std::uint32_t receives, std::uint32_t receive_bytes);

  // The first queue pair's life.
  Status post_receives(QueuePair& pair, std::uint32_t lane);
  /// An immediate took this receive. kCorrupt for one that is not there.
  Status on_immediate(std::uint32_t slot);
  void on_lost() { replaying_ = !kept_.empty(); }
  /// The object is gone: nothing of the memory is used by it any more.
  void on_reset();

  // Sending.
  /// `pair` is null while it is not ready. False: no room now. The message was taken also when `fault` is set.
  bool send(QueuePair* pair, std::uint32_t lane, Path& control, wire::Link link, std::span<const std::byte> head,
            std::span<const std::byte> body, Status* fault);
  void on_sent(std::uint32_t slot);
  /// The peer has all up to this number. kCorrupt for one that was never given.
  Status on_told(std::uint64_t received);
  /// Sends what was lost with a connection. True: nothing of it is left.
  bool replay(Path& control);

  // Receiving. Errors: kCorrupt, the peer broke the protocol.
  Status on_receive(std::uint32_t slot, std::uint32_t size);
  /// A numbered message of the control stream. True: it is next, and the caller delivers what is behind its head.
  Result<bool> on_stream(std::span<const std::byte> bytes);
  /// The path is up: messages may be told.
  void allow() { allowed_ = true; }
  void deliver();
  /// Posts receives whose messages were delivered.
  Status repost(QueuePair& pair, std::uint32_t lane);
  /// Whether the sender is to be told what was received, though no message goes there.
  bool is_word_due() const { return untold_ >= (word_wanted_ ? 1 : word_after_); }
  std::uint64_t received() const { return expected_ - 1; }
  /// That number is on its way to the sender.
  void take_received();

  bool has_work() const { return replaying_ || is_word_due() || is_next_here(); }
  std::uint64_t sent_count() const { return sent_; }          ///< By the queue pair.
  std::uint64_t received_count() const { return received_; }  ///< By the queue pair.
  std::size_t kept() const { return kept_.size(); }

 private:
  struct Kept {
    std::uint64_t number = 0;
    std::uint32_t slot = 0;
    std::uint32_t size = 0;
  };
  struct SendSlot {
    bool posted = false;  ///< The device may read it.
    bool kept = false;
  };
  /// A message that came before its turn.
  struct Early {
    bool in_slot = false;
    bool passed = false;  ///< On the control stream: one that came before it went by the queue pair.
    std::uint32_t slot = 0;
    std::uint32_t size = 0;
    std::vector<std::byte> copy;
  };

  Messages(std::uint32_t slots, std::uint32_t more, stream::EventQueue& events, Path* path);
  std::size_t memory_size() const { return (std::size_t{receives_} + slots_) * kSlotBytes; }
  std::span<std::byte> receive_slot(std::uint32_t slot) const;
  std::span<std::byte> send_slot(std::uint32_t slot) const;
  Status post_receive(QueuePair& pair, std::uint32_t lane, std::uint32_t slot);
  bool fits(const QueuePair* pair, std::size_t size) const;
  void drop_front();
  void free_if_idle(std::uint32_t slot);
  bool is_next_here() const { return allowed_ && !early_.empty() && early_.begin()->first == expected_; }
  bool can_deliver() const { return is_next_here() && !events_.messages_full(); }
  void tell(std::span<const std::byte> message);
  void deliver_slot(std::uint32_t slot, std::uint32_t size);

  const std::uint32_t slots_;
  const std::uint32_t receives_;  ///< Those of immediates included.
  stream::EventQueue& events_;
  Path* const path_;
  std::shared_ptr<std::byte[]> memory_;                  ///< Receives, then sends. Stays until each device lets it go.
  std::vector<std::pair<Domain*, ibv_mr*>> registered_;  ///< By lane.

  std::uint64_t next_ = 1;  ///< Number of the next message.
  std::uint32_t credits_ = 0;
  std::uint32_t size_max_ = 0;
  std::deque<Kept> kept_;
  std::vector<SendSlot> sends_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint64_t> ahead_;  ///< Numbers on the control stream that are larger than those of `kept_`.
  bool replaying_ = false;
  std::vector<std::byte> head_;  ///< Scratch of send.
  std::uint64_t sent_ = 0;

  std::uint64_t expected_ = 1;
  std::map<std::uint64_t, Early> early_;  ///< At most slots_ + kAheadMax.
  std::size_t passed_ = 0;                ///< Of `early_`.
  std::vector<std::uint32_t> repost_;
  std::uint32_t untold_ = 0;  ///< Receives whose messages were delivered since the sender was told.
  std::uint32_t word_after_ = 1;
  bool word_wanted_ = false;
  bool allowed_ = false;
  std::uint64_t received_ = 0;
};

}  // namespace hawser::backend::verbs
