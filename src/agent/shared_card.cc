#include "agent/shared_card.h"

#include <functional>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "agent/fork_guard.h"
#include "base/bytes.h"
#include "base/mutex.h"
#include "base/try.h"

namespace hawser::agent {

/// The cards of one process.
class SharedCards {
 public:
  explicit SharedCards(std::uint32_t forks) : forks_(forks) {}

  /// This process's. Never destroyed: agents may close in static destructors.
  static SharedCards& here() {
    const std::uint32_t forks = watch_forks();
    SharedCards* current = current_.load(std::memory_order_acquire);
    while (current == nullptr || current->forks_ != forks) {
      auto made = std::make_unique<SharedCards>(forks);
      // What a forked child finds is its parent's: it is left as it is.
      if (current_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) return *made.release();
    }
    return *current;
  }

  /// Empty: there is none with these bytes.
  CardRef find(std::string_view bytes) {
    const base::MutexLock lock(mutex_);
    const auto found = cards_.find(bytes);
    return found == cards_.end() ? CardRef() : ref(*found);
  }
  /// Another thread may have been faster.
  CardRef add(std::unique_ptr<SharedCard> card) {
    const base::MutexLock lock(mutex_);
    card->table_ = this;
    const auto [at, is_new] = cards_.insert(card.get());
    if (is_new) static_cast<void>(card.release());
    return ref(*at);
  }
  /// The last reference may have gone.
  void drop(const SharedCard* card) {
    if (forks_ != forks_so_far()) return;    // The lock may be held for ever.
    std::unique_ptr<const SharedCard> gone;  // Freed without the lock.
    const base::MutexLock lock(mutex_);
    if (card->refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    cards_.erase(cards_.find(card));
    gone.reset(card);
  }
  std::size_t size() {
    const base::MutexLock lock(mutex_);
    return cards_.size();
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const { return std::hash<std::string_view>()(bytes); }
    std::size_t operator()(const SharedCard* card) const { return (*this)(std::string_view(card->bytes)); }
  };
  struct Equal {
    using is_transparent = void;
    static std::string_view bytes_of(std::string_view bytes) { return bytes; }
    static std::string_view bytes_of(const SharedCard* card) { return card->bytes; }
    bool operator()(const auto& one, const auto& other) const { return bytes_of(one) == bytes_of(other); }
  };

  static CardRef ref(const SharedCard* card) {
    card->refs_.fetch_add(1, std::memory_order_relaxed);
    return CardRef(card);
  }

  static constinit std::atomic<SharedCards*> current_;
  const std::uint32_t forks_;
  base::Mutex mutex_;
  std::unordered_set<const SharedCard*, Hash, Equal> cards_ HAWSER_GUARDED_BY(mutex_);
};

constinit std::atomic<SharedCards*> SharedCards::current_{nullptr};

CardRef CardRef::alone(std::string name, const base::Id128& incarnation, std::uint64_t born) {
  const auto* const card = new SharedCard(std::move(name), incarnation, born);
  card->refs_.store(1, std::memory_order_relaxed);
  return CardRef(card);
}

void CardRef::drop(const SharedCard* card) {
  // Only the last reference asks the table: a thread that finds the card there refers to it under the table's lock.
  std::uint32_t refs = card->refs_.load(std::memory_order_relaxed);
  while (refs > 1) {
    if (card->refs_.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel)) return;
  }
  if (card->table_ != nullptr) return card->table_->drop(card);
  if (card->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete card;
}

Result<CardRef> share_card(std::span<const std::byte> bytes) {
  if (bytes.size() > kSharedCardMax) return CardRef();
  SharedCards& cards = SharedCards::here();
  if (CardRef known = cards.find(base::as_text(bytes))) return known;
  HAWSER_TRY_ASSIGN(wire::CardSummary card, wire::check_card(bytes));
  if (card.kind != wire::CardKind::kFull) return CardRef();
  return cards.add(std::make_unique<SharedCard>(std::move(card), std::string(base::as_text(bytes))));
}

std::size_t shared_cards() { return SharedCards::here().size(); }

}  // namespace hawser::agent
