#pragma once

// Card sync: when one agent asks its peer for the peer's card (CardAsker), and what of its own card it owes the peer
// (CardTeller). No bytes are made here: the owner makes a card when the teller says so, and hands it over.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace hawser::proto {

/// state     event  next
/// content   want   wanted
/// wanted    asked  asked
/// asked     want   wanted    (it is asked for once more: what comes may be old)
/// asked     came   content
/// wanted    came   content
/// What is not here changes nothing.
class CardAsker {
 public:
  enum class State : std::uint8_t { kContent, kWanted, kAsked };

  State state() const { return state_; }
  bool must_ask() const { return state_ == State::kWanted; }

  void want() { state_ = State::kWanted; }
  /// What is known may be old, though the peer told of nothing newer: it is asked so that it answers in any case, as it
  /// only says nothing to who has all.
  void check() {
    want();
    must_check_ = true;
  }
  /// From which revision on to ask, with `known` here.
  std::uint64_t since(std::uint64_t known) const { return must_check_ && known > 0 ? known - 1 : known; }
  /// A card came that builds on `base` (0: on nothing). True: it is the answer to a check. What the peer tells by
  /// itself builds on more.
  bool is_answer(std::uint64_t base) {
    const bool is = checked_since_ != kNone && base <= checked_since_;
    if (is) checked_since_ = kNone;
    return is;
  }
  /// The peer's card is here in revision `known` (0: not at all), and it told that it has `told`. It is asked once in a
  /// session, and then tells by itself; later only when it has a newer one than it told. True: it is wanted now.
  bool follow(std::uint64_t known, std::uint64_t told) {
    if (known == 0 || (is_followed_ && told <= known)) return false;
    want();
    return true;
  }
  /// The request is on its way.
  void asked(std::uint64_t since = 0) {
    if (state_ != State::kWanted) return;
    state_ = State::kAsked;
    if (std::exchange(must_check_, false)) checked_since_ = since;
    is_followed_ = true;
  }
  /// A card came, asked for or not. A check that was not sent yet is sent all the same.
  void came() {
    if (!must_check_) state_ = State::kContent;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  State state_ = State::kContent;
  bool is_followed_ = false;
  bool must_check_ = false;
  std::uint64_t checked_since_ = kNone;  ///< From where the check asked that was not answered yet.
};

/// state     event    next
/// stranger  request  current, or due where it lacks something
/// current   request  current, or due
/// current   change   due
/// due       request  current, or due
/// due       made     sending
/// sending   request  current, or due (what was under way is dropped)
/// sending   sent     sending, after the last byte current, or due where the card has changed meanwhile
/// current   cut      current
/// due       cut      current   (the peer asks again when it hears of a newer revision)
/// sending   cut      current
/// What is not here changes nothing: a stranger, who never asked, is told nothing.
class CardTeller {
 public:
  enum class State : std::uint8_t { kStranger, kCurrent, kDue, kSending };

  State state() const { return state_; }
  /// The peer has revision `has`, ours is `ours`.
  void request(std::uint64_t has, std::uint64_t ours) {
    told_ = has;
    bytes_.clear();
    offset_ = 0;
    state_ = has == ours ? State::kCurrent : State::kDue;
  }
  /// Our card has changed. True: something is to be sent now that was not before.
  bool change() {
    if (state_ != State::kCurrent) return false;
    state_ = State::kDue;
    return true;
  }
  /// The paths to the peer are gone, and what was said on them.
  void cut() {
    if (state_ == State::kDue || state_ == State::kSending) state_ = State::kCurrent;
    bytes_.clear();
    offset_ = 0;
  }

  /// What changed since `told` is to be made now, as late as can be.
  bool must_make() const { return state_ == State::kDue; }
  std::uint64_t told() const { return told_; }
  void made(std::string bytes, std::uint64_t revision) {
    if (state_ != State::kDue) return;
    bytes_ = std::move(bytes);
    told_ = revision;
    offset_ = 0;
    state_ = State::kSending;
  }
  /// It cannot be made.
  void failed() {
    if (state_ == State::kDue) state_ = State::kCurrent;
  }

  bool is_sending() const { return state_ == State::kSending; }
  /// The next part, of `most` bytes at most. Only while it is sending.
  std::span<const std::byte> part(std::size_t most) const {
    const std::size_t size = bytes_.size() - offset_ < most ? bytes_.size() - offset_ : most;
    return std::as_bytes(std::span(bytes_)).subspan(offset_, size);
  }
  std::size_t offset() const { return offset_; }
  std::size_t total() const { return bytes_.size(); }
  /// So much of it was sent; `ours` is our card's revision by now.
  void sent(std::size_t bytes, std::uint64_t ours) {
    if (state_ != State::kSending) return;
    offset_ += bytes;
    if (offset_ < bytes_.size()) return;
    std::string().swap(bytes_);
    offset_ = 0;
    state_ = told_ < ours ? State::kDue : State::kCurrent;
  }

 private:
  State state_ = State::kStranger;
  std::uint64_t told_ = 0;
  std::string bytes_;
  std::size_t offset_ = 0;
};

}  // namespace hawser::proto
