#pragma once

// UnsentMessages: what threads left to a session's driver, and what then found no room in its link. The messages of a
// link are in order. A link that is full holds no other one back.
//
// Thread rule: confined to the lane. Memory: a pointer until the first message.

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <numeric>
#include <utility>

#include "agent/left_over.h"
#include "proto/link_set.h"
#include "wire/link.h"

namespace hawser::agent {

class UnsentMessages {
 public:
  static wire::Link link_of(const LeftOver& left) { return {left.priority, left.channel}; }

  /// None of that link is there.
  bool has_none(wire::Link link) const { return (links_ & proto::mask_of(link)) == 0; }
  void push(LeftOver left) {
    if (lists_ == nullptr) lists_ = std::make_unique<Lists>();
    const wire::Link link = link_of(left);
    links_ |= proto::mask_of(link);
    (*lists_)[link.index()].push_back(std::move(left));
  }
  /// Offers each to `take`, and of a link no more once `take` returned false. Returns how many were taken.
  template <typename Take>
  std::size_t offer(Take take) {
    std::size_t taken = 0;
    for (std::size_t each = 0; links_ != 0 && each < wire::kLinks; ++each) {
      std::list<LeftOver>& list = (*lists_)[each];
      for (; !list.empty() && take(list.front()); ++taken) list.pop_front();
      if (list.empty()) links_ &= ~proto::mask_of(wire::Link::at(each));
    }
    return taken;
  }
  bool empty() const { return links_ == 0; }
  std::size_t count() const {
    if (lists_ == nullptr) return 0;
    return std::accumulate(lists_->begin(), lists_->end(), std::size_t{0},
                           [](std::size_t sum, const auto& list) { return sum + list.size(); });
  }
  void clear() {
    lists_.reset();
    links_ = 0;
  }

 private:
  using Lists = std::array<std::list<LeftOver>, wire::kLinks>;

  std::unique_ptr<Lists> lists_;
  proto::LinkMask links_ = 0;  ///< Those that have any.
};

}  // namespace hawser::agent
