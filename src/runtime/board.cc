#include "runtime/board.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/copy.h"
#include "base/planted.h"

namespace hawser::runtime {
namespace {

constexpr std::size_t kFinishedAt = 0, kAsksAt = kBoardLine, kWorldAt = kBoardLine + 8, kCoreAt = kBoardLine + 16,
                      kSlotsAt = 2 * kBoardLine;
constexpr std::size_t kNumberAt = 8, kDigestAt = 16, kBytesAt = 24;

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "words of boards are shared by processes");

std::atomic_ref<std::uint64_t> word(std::byte* at) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

/// It is only loaded: others' boards are mapped for reading.
std::uint64_t load(const std::byte* at, std::memory_order order) {
  return word(const_cast<std::byte*>(at)).load(order);
}

std::size_t slot_at(std::uint64_t turn) { return kSlotsAt + turn % kBoardSlots * kBoardSlotBytes; }

}  // namespace

Board::Board(std::uint64_t world, std::uint32_t rank, std::uint32_t size, std::span<std::byte> own, Others others)
    : world_(world),
      rank_(rank),
      size_(size),
      own_(own),
      others_(std::move(others)),
      rung_(size),
      seen_(std::size_t{kBoardSlots} * size),
      known_finished_(size) {
  word(own_.data() + kWorldAt).store(world, std::memory_order_release);
}

void Board::wipe(std::span<std::byte> memory) {
  word(memory.data() + kWorldAt).store(0, std::memory_order_seq_cst);  // First: no word below is that world's now.
  word(memory.data() + kAsksAt).store(0, std::memory_order_seq_cst);
  word(memory.data() + kCoreAt).store(0, std::memory_order_relaxed);
  word(memory.data() + kFinishedAt).store(0, std::memory_order_seq_cst);
  for (std::uint64_t turn = 0; turn < kBoardSlots; ++turn) {
    word(memory.data() + slot_at(turn)).store(0, std::memory_order_seq_cst);
  }
}

const std::byte* Board::board_of(std::uint32_t rank) const { return rank == rank_ ? own_.data() : others_(rank); }

bool Board::has_freed(std::uint32_t rank, std::uint64_t turn) const {
  return turn < kBoardSlots || has_finished(rank, turn - kBoardSlots);  // That one had the slot.
}

bool Board::has_finished(std::uint32_t rank, std::uint64_t turn) const {
  if (rank == rank_) return finished_ > turn;
  if (known_finished_[rank] > turn) return true;
  const std::byte* const board = board_of(rank);
  if (board != nullptr) known_finished_[rank] = load(board + kFinishedAt, std::memory_order_seq_cst);
  return known_finished_[rank] > turn;
}

bool Board::is_free(std::uint64_t turn) const {
  if (base::planted(base::Planted::kBoardSlotTaken)) return true;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (!has_freed(rank, turn)) return false;
  }
  return true;
}

std::span<std::byte, schedule::kBoardBytesMax> Board::room(std::uint64_t turn) {
  return own_.subspan(slot_at(turn) + kBoardHead).first<schedule::kBoardBytesMax>();
}

void Board::publish(std::uint64_t turn, std::uint64_t number, std::uint64_t digest, std::uint64_t bytes) {
  std::byte* const slot = own_.data() + slot_at(turn);
  word(slot + kNumberAt).store(number, std::memory_order_relaxed);
  word(slot + kDigestAt).store(digest, std::memory_order_relaxed);
  word(slot + kBytesAt).store(bytes, std::memory_order_relaxed);
  word(slot).store(turn + 1, std::memory_order_seq_cst);
}

void Board::write(std::uint64_t turn, const Entry& entry) {
  if (base::copy_bytes(room(turn).data(), entry.bytes.data(), entry.bytes.size(), {.read_elsewhere = true})) {
    base::stream_fence();
  }
  publish(turn, entry.number, entry.digest, entry.bytes.size());
}

Board::Sight Board::look(std::uint32_t rank, std::uint64_t turn, Entry* entry) const {
  const std::byte* const board = board_of(rank);
  if (board == nullptr) return Sight::kGone;
  const std::byte* const slot = board + slot_at(turn);
  const std::uint64_t sequence = load(slot, std::memory_order_seq_cst);
  if (load(board + kWorldAt, std::memory_order_acquire) != world_) return Sight::kGone;
  if (sequence != turn + 1) return sequence < turn + 1 ? Sight::kNotYet : Sight::kBad;
  const std::uint64_t bytes = load(slot + kBytesAt, std::memory_order_relaxed);
  if (bytes > schedule::kBoardBytesMax) return Sight::kBad;
  *entry = {.number = load(slot + kNumberAt, std::memory_order_relaxed),
            .digest = load(slot + kDigestAt, std::memory_order_relaxed),
            .bytes = {slot + kBoardHead, static_cast<std::size_t>(bytes)}};
  return Sight::kThere;
}

bool Board::is_gone(std::uint32_t rank) const {
  const std::byte* const board = board_of(rank);
  return board == nullptr || load(board + kWorldAt, std::memory_order_acquire) != world_;
}

bool Board::is_still_there(std::uint32_t rank, std::uint64_t turn) const {
  const std::byte* const board = board_of(rank);
  if (board == nullptr) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // What was read before stays before the loads below.
  return load(board + slot_at(turn), std::memory_order_relaxed) == turn + 1 &&
         load(board + kWorldAt, std::memory_order_relaxed) == world_;
}

void Board::stand_on(int core) {
  if (core < 0 || std::exchange(core_, core) == core) return;
  word(own_.data() + kCoreAt).store(static_cast<std::uint64_t>(core) + 1, std::memory_order_relaxed);
}

bool Board::stood_on(std::uint32_t rank, int core) const {
  const std::byte* const board = core < 0 ? nullptr : board_of(rank);
  return board != nullptr && load(board + kCoreAt, std::memory_order_relaxed) == static_cast<std::uint64_t>(core) + 1;
}

void Board::finish(std::uint64_t turn, std::uint64_t count) {
  if (turn + count <= finished_) return;
  finished_ahead_.push_back({.first = turn, .end = turn + count});
  const auto joins = [&](const Turns& each) {
    if (each.first > finished_) return false;
    finished_ = std::max(finished_, each.end);
    return true;
  };
  while (std::erase_if(finished_ahead_, joins) != 0) {
  }
  word(own_.data() + kFinishedAt).store(finished_, std::memory_order_seq_cst);
}

void Board::ask() { word(own_.data() + kAsksAt).store(++asked_, std::memory_order_seq_cst); }

void Board::stop_asking() { word(own_.data() + kAsksAt).store(0, std::memory_order_release); }

std::vector<std::uint32_t> Board::to_ring() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    const std::byte* const board = rank == rank_ ? nullptr : board_of(rank);
    if (board == nullptr) continue;
    const std::uint64_t asks = load(board + kAsksAt, std::memory_order_seq_cst);
    if (asks != 0 && std::exchange(rung_[rank], asks) != asks) all.push_back(rank);
  }
  return all;
}

}  // namespace hawser::runtime
