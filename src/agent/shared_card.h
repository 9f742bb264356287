#pragma once

// SharedCard: the bytes of a small full card, checked and not decoded, and the few facts that a known peer is asked for
// before it is used. All agents of a process that were given the same bytes share one, so a peer that many agents know
// is kept once. It also stands for a peer that was met without a card: then it has no bytes, and nobody shares it.
//
// Thread rule: a SharedCard does not change; making, copying and dropping a CardRef is thread-safe. The table behind
// `share_card` is the process's own, under one lock. A forked child begins another one: the parent's lock may be held
// there for ever, so what the child drops of the parent's stays.
// Memory: a card goes with its last CardRef.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <hawser/status.h>

#include "agent/admission_ticket.h"
#include "base/id128.h"
#include "wire/card.h"

namespace hawser::agent {

/// A larger card is decoded when it comes: a peer that tells of so many regions is used soon.
inline constexpr std::size_t kSharedCardMax = 4096;

class SharedCards;

struct SharedCard {
  SharedCard(std::string its_name, const base::Id128& its_incarnation, std::uint64_t its_born)
      : name(std::move(its_name)), incarnation(its_incarnation), born(its_born) {}
  SharedCard(wire::CardSummary&& card, std::string its_bytes)
      : name(std::move(card.name)),
        incarnation(card.incarnation),
        born(card.born),
        revision(card.revision),
        regions(card.regions),
        ticket{.public_key = card.public_key, .admission = card.admission},
        bytes(std::move(its_bytes)) {}

  const std::string name;
  const base::Id128 incarnation;
  const std::uint64_t born = 0;
  const std::uint64_t revision = 0;
  const std::size_t regions = 0;  ///< How many the card lists.
  const AdmissionTicket ticket;
  const std::string bytes;  ///< Empty: no card came.

  bool has_card() const { return !bytes.empty(); }

 private:
  friend class CardRef;
  friend class SharedCards;
  mutable std::atomic<std::uint32_t> refs_{0};
  SharedCards* table_ = nullptr;  ///< Null: nobody shares it.
};

/// Keeps a card.
class CardRef {
 public:
  CardRef() = default;
  /// One that nobody shares.
  static CardRef alone(std::string name, const base::Id128& incarnation, std::uint64_t born);
  CardRef(const CardRef& other) : card_(other.card_) {
    if (card_ != nullptr) card_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  CardRef(CardRef&& other) noexcept : card_(std::exchange(other.card_, nullptr)) {}
  CardRef& operator=(CardRef other) noexcept {
    std::swap(card_, other.card_);
    return *this;
  }
  ~CardRef() {
    if (card_ != nullptr) drop(card_);
  }

  explicit operator bool() const { return card_ != nullptr; }
  const SharedCard& operator*() const { return *card_; }
  const SharedCard* operator->() const { return card_; }
  friend bool operator==(const CardRef&, const CardRef&) = default;

 private:
  friend class SharedCards;
  explicit CardRef(const SharedCard* card) : card_(card) {}
  static void drop(const SharedCard* card);

  const SharedCard* card_ = nullptr;
};

/// Checks the card as decoding it does, with the same errors. An empty one, without an error: it is no full card, or it
/// is larger than kSharedCardMax, so it is not for sharing.
Result<CardRef> share_card(std::span<const std::byte> bytes);

/// How many cards this process shares. For tests.
std::size_t shared_cards();

}  // namespace hawser::agent
