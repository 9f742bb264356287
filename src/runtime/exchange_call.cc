#include "runtime/exchange_call.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/copy.h"
#include "base/planted.h"

namespace hawser::runtime {

ExchangeCall::ExchangeCall(Board& board, const schedule::Call& call, Buffers buffers, std::uint64_t turn,
                           std::uint64_t number, std::uint64_t digest)
    : BoardPhase(board),
      call_(call),
      buffers_(std::move(buffers)),
      number_(number),
      digest_(digest),
      counts_(call.size),
      turn_(board, turn, number, digest) {}

template <typename Count>
std::optional<std::uint64_t> ExchangeCall::fitting(const Count& count) const {
  const std::uint64_t room = call_.piece_bytes > letter_bytes() ? call_.piece_bytes - letter_bytes() : 0;
  const std::uint64_t most = room / call_.element_bytes;
  std::uint64_t elements = 0;
  for (std::uint32_t to = 0; to < call_.size; ++to) {
    if (count(to) > most - elements) return std::nullopt;  // Another rank may claim any number.
    elements += count(to);
  }
  return elements * call_.element_bytes;
}

std::optional<std::uint64_t> ExchangeCall::brought(std::uint32_t from) const {
  return fitting([&](std::uint32_t to) { return counts_.sent(from, to); });
}

void ExchangeCall::write() {
  std::byte* const place = board_.room(turn()).data();
  const std::uint64_t half = letter_bytes() / 2;
  std::memcpy(place, call_.counts.data(), half);
  std::memcpy(place + half, call_.in_counts.data(), half);
  const std::uint64_t bytes = fitting([&](std::uint32_t to) { return call_.counts[to]; }).value_or(0);
  if (bytes > 0 && base::copy_bytes(place + letter_bytes(), buffers_.input, bytes, {.read_elsewhere = true})) {
    base::stream_fence();
  }
  board_.publish(turn(), number_, digest_, letter_bytes() + bytes);
}

BoardPhase::Step ExchangeCall::go_on() {
  if (!has_written_) {
    if (!board_.is_free(turn())) return Step::kWaits;
    write();
    has_written_ = true;
    return Step::kMoved;
  }
  const BoardTurn::Sight sight =
      turn_.look_if([&](std::uint32_t, std::uint64_t bytes) { return bytes >= letter_bytes(); });
  culprit_ = turn_.culprit();
  if (sight == BoardTurn::Sight::kDiffers) return Step::kDiffers;
  if (sight == BoardTurn::Sight::kBad) return Step::kBad;
  if (sight == BoardTurn::Sight::kWaits) return Step::kWaits;
  read_counts();
  if (!are_sizes_right()) return Step::kBad;
  if (has_all_) take_blocks();
  return turn_.is_still_there() ? Step::kOver : Step::kWaits;
}

void ExchangeCall::read_counts() {
  std::byte* to = std::as_writable_bytes(std::span(counts_.letters())).data();
  for (const std::span<const std::byte> each : turn_.written()) {
    std::memcpy(to, each.data(), letter_bytes());
    to += letter_bytes();
  }
}

/// Each has as much on its board as its counts say.
bool ExchangeCall::are_sizes_right() {
  has_all_ = !counts_.first_difference();
  for (std::uint32_t from = 0; from < call_.size; ++from) {
    const std::optional<std::uint64_t> bytes = brought(from);
    const bool is_needed = !base::planted(base::Planted::kExchangeOwnWay) || from == call_.rank;
    has_all_ = has_all_ && (bytes.has_value() || !is_needed);
    if (turn_.written()[from].size() == letter_bytes() + bytes.value_or(0)) continue;
    culprit_ = from;
    return false;
  }
  return true;
}

void ExchangeCall::take_blocks() {
  std::byte* to = buffers_.output;
  for (std::uint32_t from = 0; from < call_.size; ++from) {
    std::uint64_t before = 0;
    for (std::uint32_t rank = 0; rank < call_.rank; ++rank) before += counts_.sent(from, rank);
    const std::uint64_t bytes = counts_.sent(from, call_.rank) * call_.element_bytes;
    const std::span<const std::byte> its = turn_.written()[from].subspan(letter_bytes());
    if (bytes > 0 && !its.empty()) base::copy_cached(to, its.data() + before * call_.element_bytes, bytes);
    to += bytes;
  }
}

bool ExchangeCall::has_news() const { return has_written_ ? turn_.has_news() : board_.is_free(turn()); }

bool ExchangeCall::is_awaited(std::uint32_t rank) const {
  if (rank == call_.rank) return false;
  return turn_.awaits(rank) || (!has_written_ && !board_.has_freed(rank, turn()));
}

}  // namespace hawser::runtime
