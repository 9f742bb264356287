#pragma once

// IntrusiveList: a doubly linked list through a member of its elements, so linking never allocates and an element
// leaves in O(1) from wherever it is.
//
//   struct Job { ListHook hook; };
//   IntrusiveList<Job, &Job::hook> jobs;
//
// Thread rule: none of its own. Lifetime: elements belong to others; one that dies leaves its list by itself, and a
// list that dies unlinks its elements.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace hawser::base {

/// Neither copied nor moved, so neither is what holds one.
class ListHook {
 public:
  ListHook() = default;
  ~ListHook() { unlink(); }
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;

  bool is_linked() const { return next_ != nullptr; }
  /// Leaves the list; nothing when in none.
  void unlink() {
    if (next_ == nullptr) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = nullptr;
    previous_ = nullptr;
  }

 private:
  template <typename T, ListHook T::*kHook>
  friend class IntrusiveList;
  void insert_before(ListHook& place) {
    HAWSER_ASSERT(!is_linked(), "an element is in one list at a time");
    previous_ = place.previous_;
    next_ = &place;
    previous_->next_ = this;
    place.previous_ = this;
  }

  ListHook* next_ = nullptr;
  ListHook* previous_ = nullptr;
};

template <typename T, ListHook T::*kHook>
class IntrusiveList {
 public:
  IntrusiveList() {
    root_.next_ = &root_;
    root_.previous_ = &root_;
  }
  ~IntrusiveList() {
    clear();
    root_.next_ = nullptr;  // it points to itself; there is nothing to leave
  }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  /// Reads its next element before it gives one out: the body may erase the element it got, and no other.
  class Iterator {
   public:
    explicit Iterator(ListHook* at) : at_(at), next_(at->next_) {}
    T& operator*() const { return element(at_); }
    T* operator->() const { return &element(at_); }
    Iterator& operator++() {
      at_ = next_;
      next_ = at_->next_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    ListHook* at_;
    ListHook* next_;
  };

  Iterator begin() { return Iterator(root_.next_); }
  Iterator end() { return Iterator(&root_); }

  bool empty() const { return root_.next_ == &root_; }
  T* front() { return empty() ? nullptr : &element(root_.next_); }
  T* back() { return empty() ? nullptr : &element(root_.previous_); }
  void push_back(T& value) { (value.*kHook).insert_before(root_); }
  void push_front(T& value) { (value.*kHook).insert_before(*root_.next_); }
  void insert_before(T& place, T& value) { (value.*kHook).insert_before(place.*kHook); }
  static void erase(T& value) { (value.*kHook).unlink(); }
  T* pop_front() {
    T* value = front();
    if (value != nullptr) erase(*value);
    return value;
  }
  void clear() {
    while (!empty()) root_.next_->unlink();
  }

 private:
  static T& element(ListHook* hook) {
    // In the Itanium C++ ABI, which every compiler we build with follows, a pointer to a data member is its offset.
    static_assert(sizeof(kHook) == sizeof(std::ptrdiff_t));
    const auto offset = std::bit_cast<std::ptrdiff_t>(kHook);
    return *reinterpret_cast<T*>(reinterpret_cast<std::byte*>(hook) - offset);
  }

  ListHook root_;
};

}  // namespace hawser::base
