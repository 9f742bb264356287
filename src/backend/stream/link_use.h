#pragma once

// LinkUse: links whose messages went or came on stream 0, and which may have a stream of their own. Each is told once,
// so that the path opens its stream.
//
// Thread rule: a value, one thread.

#include <cstdint>
#include <utility>

#include "backend/stream/message_order.h"

namespace hawser::backend::stream {

class LinkUse {
 public:
  /// `is_apart`: links may have streams of their own (Network::streams_are_apart).
  explicit LinkUse(bool is_apart) : is_apart_(is_apart) {}

  /// A message of it went or came on stream 0.
  void note(wire::Link link) {
    const std::uint32_t bit = std::uint32_t{1} << link.index();
    if (!is_apart_ || !has_own_stream(link) || (used_ & bit) != 0) return;
    used_ |= bit;
    news_ |= bit;
  }
  /// A bit for each link that was not told yet.
  std::uint32_t take() { return std::exchange(news_, 0U); }
  bool has_news() const { return news_ != 0; }

 private:
  const bool is_apart_;
  std::uint32_t used_ = 0, news_ = 0;
};

}  // namespace hawser::backend::stream
