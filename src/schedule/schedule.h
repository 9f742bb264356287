#pragma once

// Schedule: what one rank does in a collective operation, as a list of steps in rounds. It is a pure function of the
// operation, the rank and the sizes; who runs it moves the bytes and combines the elements.
//
// In a round all sends and receives may go on at once; when all have ended, the round's copies and combinations are
// done in order, and the next round begins. What a round sends was there when the round began, and no slice that it
// receives into overlaps one that it sends or receives. Messages between two ranks have one order, and each is received
// with the size with which it was sent.
//
// Where all ranks map each other's buffers a step may also read another rank's, while that rank leaves them as they
// are: the schedule sees to that by meetings.
//
// Thread rule: any thread; values.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hawser::schedule {

/// The caller's two buffers, which may be one and the same where the operation says so, what the schedule asks for, and
/// what a rank shows the others of its host: see staging.h.
enum class Buffer : std::uint8_t { kInput, kOutput, kScratch, kBoard };

/// In elements.
struct Slice {
  Buffer buffer = Buffer::kOutput;
  std::uint64_t at = 0;
  std::uint64_t count = 0;
};

enum class Action : std::uint8_t {
  kSend,           ///< `from` to `peer`.
  kReceive,        ///< From `peer` into `to`.
  kCopy,           ///< `from` into `to`. Of two buffers that are one: nothing.
  kCombine,        ///< to = to op from
  kCombineBefore,  ///< to = from op to
  kRead,           ///< `there`, of `peer`, into `to`.
  kCombineRead,    ///< to = from op `there`, of `peer`; `to` may be `from`.
  kMeet,           ///< Returns once all ranks of this host have come to it. Alone in its round.
};

/// How ranks of one host meet: by messages without bytes, or by a step that leaves it to who runs the schedule.
enum class Meetings : std::uint8_t { kByMessages, kBySteps };

struct Step {
  Action action = Action::kCopy;
  std::uint32_t peer = 0;
  Slice from, to;
  Slice there = {};  ///< In the peer's buffers.
};

class Schedule {
 public:
  Schedule() = default;
  explicit Schedule(Meetings meetings) : meetings_(meetings) {}

  Meetings meetings() const { return meetings_; }
  void send(std::uint32_t peer, Slice from) { add({Action::kSend, peer, from, {}}); }
  void receive(std::uint32_t peer, Slice to) { add({Action::kReceive, peer, {}, to}); }
  void copy(Slice from, Slice to) { add({Action::kCopy, 0, from, to}); }
  void combine(Slice from, Slice to) { add({Action::kCombine, 0, from, to}); }
  void combine_before(Slice from, Slice to) { add({Action::kCombineBefore, 0, from, to}); }
  void read(std::uint32_t peer, Slice there, Slice to) { add({Action::kRead, peer, {}, to, there}); }
  void combine_read(std::uint32_t peer, Slice there, Slice from, Slice to) {
    add({Action::kCombineRead, peer, from, to, there});
  }
  /// Sends that carry nothing but that they came.
  void send_nothing(std::uint32_t peer) { steps_.push_back({Action::kSend, peer, {}, {}}); }
  void receive_nothing(std::uint32_t peer) { steps_.push_back({Action::kReceive, peer, {}, {}}); }
  /// A round of its own. Only of meetings by steps.
  void meet() {
    end_round();
    steps_.push_back({Action::kMeet, 0, {}, {}});
    end_round();
  }
  /// What follows belongs to the next round.
  void end_round();
  /// The rounds of `other`, whose scratch is this one's.
  void append(const Schedule& other);
  /// Scratch of so many elements, beside what was asked for. Gives its first place.
  std::uint64_t take_scratch(std::uint64_t count);

  std::size_t rounds() const { return ends_.size() + (steps_.size() > last_end() ? 1 : 0); }
  std::span<const Step> round(std::size_t index) const;
  std::uint64_t scratch() const { return scratch_; }

 private:
  /// Slices of no elements are no steps: both ends leave them out.
  void add(const Step& step);
  std::size_t last_end() const { return ends_.empty() ? 0 : ends_.back(); }

  Meetings meetings_ = Meetings::kByMessages;
  std::vector<Step> steps_;
  std::vector<std::size_t> ends_;
  std::uint64_t scratch_ = 0;
};

/// Consecutive blocks of elements, one for each rank.
class Blocks {
 public:
  Blocks() = default;
  explicit Blocks(std::span<const std::uint64_t> counts);
  /// As even as can be; the first ones are larger by one.
  static Blocks even(std::uint64_t count, std::uint32_t blocks);
  /// Each of `count`.
  static Blocks equal(std::uint64_t count, std::uint32_t blocks);

  /// The same blocks of a slice that begins at `at`.
  Blocks shifted(std::uint64_t at) const;

  std::uint32_t size() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
  std::uint64_t at(std::uint32_t block) const { return starts_[block]; }
  std::uint64_t count(std::uint32_t block) const { return starts_[block + 1] - starts_[block]; }
  std::uint64_t total() const { return starts_.back() - starts_.front(); }
  Slice slice(Buffer buffer, std::uint32_t block) const { return slice(buffer, block, block + 1); }
  /// Blocks `first` to `end`, without it.
  Slice slice(Buffer buffer, std::uint32_t first, std::uint32_t end) const {
    return {buffer, starts_[first], starts_[end] - starts_[first]};
  }

 private:
  std::vector<std::uint64_t> starts_ = {0};
};

}  // namespace hawser::schedule
