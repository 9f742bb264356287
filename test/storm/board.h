#pragma once

// Board: what the processes of a storm share, in memory that they inherit: cards, what was received, what went wrong.
//
// Thread rule: any thread of any process. A process that is killed while it writes leaves a card that nobody reads.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace hawser::storm {

inline constexpr std::size_t kWorkersMax = 8;

enum class Phase : std::uint32_t {
  kStorm,
  kCalm,  ///< Nobody is killed or stopped any more, and all must work.
  kEnd,
};

/// Cards that a worker showed before its newest one, of this life or of those before, for whoever deals in old news.
class OldCards {
 public:
  static constexpr std::size_t kCount = 8, kSizeMax = 8 * 1024;

  /// The worker's thread.
  void keep(std::string_view card) {
    Card& place = cards_[next_++ % kCount];
    place.size = 0;
    std::memcpy(place.bytes.data(), card.data(), card.size());
    place.size = card.size();
  }
  /// A copy that is torn by its writer is no card, which its checksum tells.
  std::string any(std::uint64_t dice) const {
    const Card& place = cards_[dice % kCount];
    return {place.bytes.data(), std::min<std::size_t>(place.size, place.bytes.size())};
  }

 private:
  struct Card {
    std::atomic<std::size_t> size{0};
    std::array<char, kSizeMax> bytes{};
  };
  std::array<Card, kCount> cards_;
  std::atomic<std::size_t> next_{0};
};

/// One worker's place.
class Post {
 public:
  /// False: there is no room for so large a card.
  [[nodiscard]] bool put(std::string_view card) {
    if (card.size() > card_.size()) return false;
    if (card.size() <= OldCards::kSizeMax) old.keep(card);
    const std::uint64_t mine = version_.load() | 1;  // Odd: being written.
    version_.store(mine);
    std::memcpy(card_.data(), card.data(), card.size());
    size_.store(card.size());
    life_.store(lives.load());
    version_.store(mine + 1);
    return true;
  }
  /// And of which life it is.
  std::optional<std::string> card(std::uint32_t* life) const {
    const std::uint64_t version = version_.load();
    if (version == 0 || version % 2 != 0) return std::nullopt;
    std::string copy(card_.data(), std::min<std::size_t>(size_.load(), card_.size()));
    *life = life_.load();
    if (version_.load() != version) return std::nullopt;
    return copy;
  }

  /// All of its lives so far are over: what was killed, or is about to close.
  void end_lives() { over_.store(lives.load()); }
  bool is_over(std::uint32_t life) const { return life <= over_.load(); }

  std::atomic<std::uint32_t> lives{0};  ///< Agents it opened so far, whichever process that was.
  std::atomic<std::uint32_t> stops{0};  ///< How often it was stopped or killed.
  std::atomic<std::uint32_t> calm{0};   ///< Players that found all in order.
  OldCards old;

 private:
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint32_t> life_{0}, over_{0};
  std::atomic<std::size_t> size_{0};
  std::array<char, 32 * 1024> card_{};
};

/// What was added to the word of a region, by all.
struct Additions {
  std::atomic<std::uint64_t> region{0};  ///< Its number.
  std::atomic<std::uint64_t> begun{0};   ///< That may have been done.
  std::atomic<std::uint64_t> done{0};
};

struct Tally {
  std::atomic<std::uint64_t> writes{0}, reads{0}, compared{0}, notes{0}, closed{0}, dropped{0}, agents{0};
  std::atomic<std::uint64_t> messages{0}, additions{0}, doubts{0};
  std::array<std::atomic<std::uint64_t>, 11> bad{};  ///< By code.
};

class Board {
 public:
  /// The first fault of all stays.
  void fail(std::string_view what) {
    if (failed_.exchange(true)) return;
    const std::size_t size = std::min(what.size(), fault_.size() - 1);
    std::memcpy(fault_.data(), what.data(), size);
    fault_[size] = '\0';
    told_.store(true);
  }
  bool failed() const { return failed_.load(); }
  std::string fault() const { return told_.load() ? std::string(fault_.data()) : "a worker died while it told why"; }

  std::uint64_t new_uid() { return uids_.fetch_add(1) + 1; }
  /// The target has the notification `uid`.
  void acknowledge(std::uint64_t uid) { acknowledged_[uid % acknowledged_.size()].store(uid); }
  bool is_acknowledged(std::uint64_t uid) const { return acknowledged_[uid % acknowledged_.size()].load() == uid; }
  /// Its sender waits for it no more, and writes over its bytes.
  void withdraw(std::uint64_t uid) { withdrawn_[uid % withdrawn_.size()].store(uid); }
  bool is_withdrawn(std::uint64_t uid) const { return withdrawn_[uid % withdrawn_.size()].load() == uid; }

  /// Nothing was added to the word of this region.
  void begin_additions(std::uint64_t region) {
    Additions& its = additions_[region % additions_.size()];
    its.begun = its.done = 0;
    its.region = region;
  }
  /// Null: it was long ago.
  Additions* additions(std::uint64_t region) {
    Additions& its = additions_[region % additions_.size()];
    return its.region == region ? &its : nullptr;
  }

  /// Counts what may part two workers on purpose: either forgot the other.
  std::atomic<std::uint32_t>& partings(std::size_t a, std::size_t b) {
    return partings_[std::min(a, b) * kWorkersMax + std::max(a, b)];
  }

  std::atomic<Phase> phase{Phase::kStorm};
  std::array<Post, kWorkersMax> posts;
  Tally tally;

 private:
  std::atomic<std::uint64_t> uids_{0};
  std::array<std::atomic<std::uint64_t>, 65536> acknowledged_{}, withdrawn_{};
  std::array<Additions, 4096> additions_{};
  std::array<std::atomic<std::uint32_t>, kWorkersMax * kWorkersMax> partings_{};
  std::atomic<bool> failed_{false}, told_{false};
  std::array<char, 4096> fault_{};
};

}  // namespace hawser::storm
