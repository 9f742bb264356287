#pragma once

// TimerHeap: elements by the moment at which something is to be done about them, through a member of theirs. The
// earliest is found at once; setting, moving and clearing one costs O(log n), and allocates nothing once the heap was
// as large before.
//
//   struct Job { TimerHook hook; };
//   TimerHeap<Job, &Job::hook> timers;
//
// Thread rule: none of its own. Lifetime: elements belong to others, and are cleared before they go.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hawser/time.h>

#include "base/check.h"

namespace hawser::base {

/// Neither copied nor moved, so neither is what holds one.
class TimerHook {
 public:
  TimerHook() = default;
  ~TimerHook() { HAWSER_ASSERT(!is_set(), "an element is cleared before it goes"); }
  TimerHook(const TimerHook&) = delete;
  TimerHook& operator=(const TimerHook&) = delete;

  bool is_set() const { return place_ != kNone; }
  /// Instant::max() when it is not set.
  Instant at() const { return at_; }

 private:
  template <typename T, TimerHook T::*kHook>
  friend class TimerHeap;
  static constexpr std::size_t kNone = SIZE_MAX;
  Instant at_ = Instant::max();
  std::size_t place_ = kNone;
};

template <typename T, TimerHook T::*kHook>
class TimerHeap {
 public:
  TimerHeap() = default;
  ~TimerHeap() {
    while (!heap_.empty()) clear(element(heap_.back()));
  }
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  /// Instant::max() when there is none.
  Instant next() const { return next_; }

  /// Instant::max() clears it.
  void set(T& value, Instant at) {
    TimerHook& hook = value.*kHook;
    if (at == Instant::max()) return clear(value);
    if (!hook.is_set()) {
      hook.place_ = heap_.size();
      heap_.push_back(&hook);
    }
    hook.at_ = at;
    rise(hook.place_);
    sink(hook.place_);
    next_ = heap_.front()->at_;
  }
  /// Nothing happens when it is not set.
  void clear(T& value) {
    TimerHook& hook = value.*kHook;
    if (!hook.is_set()) return;
    const std::size_t place = hook.place_;
    TimerHook* const last = heap_.back();
    heap_.pop_back();
    hook.place_ = TimerHook::kNone;
    hook.at_ = Instant::max();
    if (last != &hook) {
      put(place, last);
      rise(place);
      sink(last->place_);
    }
    next_ = heap_.empty() ? Instant::max() : heap_.front()->at_;
  }
  /// In no order. `visit` sets and clears none.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (TimerHook* const hook : heap_) visit(static_cast<const T&>(element(hook)));
  }
  /// The earliest, cleared, when its moment has come; else null.
  T* take(Instant now) {
    if (next_ > now || heap_.empty()) return nullptr;
    T& value = element(heap_.front());
    clear(value);
    return &value;
  }

 private:
  static T& element(TimerHook* hook) {
    // In the Itanium C++ ABI, which every compiler we build with follows, a pointer to a data member is its offset.
    static_assert(sizeof(kHook) == sizeof(std::ptrdiff_t));
    const auto offset = std::bit_cast<std::ptrdiff_t>(kHook);
    return *reinterpret_cast<T*>(reinterpret_cast<std::byte*>(hook) - offset);
  }
  void put(std::size_t place, TimerHook* hook) {
    heap_[place] = hook;
    hook->place_ = place;
  }
  void swap(std::size_t a, std::size_t b) {
    TimerHook* const at_a = heap_[a];
    put(a, heap_[b]);
    put(b, at_a);
  }
  void rise(std::size_t place) {
    for (std::size_t above = (place - 1) / 2; place > 0 && heap_[place]->at_ < heap_[above]->at_;
         above = (place - 1) / 2) {
      swap(place, above);
      place = above;
    }
  }
  void sink(std::size_t place) {
    for (;;) {
      std::size_t least = place;
      for (const std::size_t below : {2 * place + 1, 2 * place + 2}) {
        if (below < heap_.size() && heap_[below]->at_ < heap_[least]->at_) least = below;
      }
      if (least == place) return;
      swap(place, least);
      place = least;
    }
  }

  std::vector<TimerHook*> heap_;
  Instant next_ = Instant::max();  ///< The first one's. The lane asks far more often than it changes.
};

}  // namespace hawser::base
