#include "sim/memory.h"

#include <algorithm>
#include <cstring>

namespace hawser::simulation {
namespace {

/// Eight bytes of the pattern of `writer`, number `word`.
std::uint64_t pattern_word(std::uint64_t writer, std::uint64_t word) {
  std::uint64_t z = writer * 0x9e3779b97f4a7c15U + word * 0xd1342543de82ef95U + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  return z ^ (z >> 29);
}

std::byte pattern_byte(std::uint64_t writer, std::uint64_t position) {
  return static_cast<std::byte>(pattern_word(writer, position / 8) >> (8 * (position % 8)));
}

}  // namespace

void fill_pattern(std::span<std::byte> out, std::uint64_t writer, std::uint64_t position) {
  std::size_t at = 0;
  for (; at < out.size() && (position + at) % 8 != 0; ++at) out[at] = pattern_byte(writer, position + at);
  for (; at + 8 <= out.size(); at += 8) {
    const std::uint64_t word = pattern_word(writer, (position + at) / 8);
    std::memcpy(out.data() + at, &word, 8);
  }
  for (; at < out.size(); ++at) out[at] = pattern_byte(writer, position + at);
}

bool has_pattern(std::span<const std::byte> bytes, std::uint64_t writer, std::uint64_t position) {
  std::size_t at = 0;
  for (; at < bytes.size() && (position + at) % 8 != 0; ++at) {
    if (bytes[at] != pattern_byte(writer, position + at)) return false;
  }
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    if (word != pattern_word(writer, (position + at) / 8)) return false;
  }
  for (; at < bytes.size(); ++at) {
    if (bytes[at] != pattern_byte(writer, position + at)) return false;
  }
  return true;
}

Plot::Plot(std::string name, std::size_t size, Rights rights, std::uint64_t writer)
    : name_(std::move(name)), rights_(rights), bytes_(size), leased_(size / kCellSize), leased_bytes_(size) {
  fill_pattern(bytes_, writer, 0);
  expected_ = bytes_;
}

bool Plot::is_free(std::size_t first, std::size_t count) const {
  if (first + count > leased_.size()) return false;
  for (std::size_t i = first; i < first + count; ++i) {
    if (leased_[i]) return false;
  }
  return true;
}

std::optional<Lease> Plot::take(base::Rng& rng, std::size_t size, const Lease* near) {
  Lease lease;
  lease.size = size;
  const bool adjacent =
      near != nullptr && near->offset + near->size == (near->first_cell + near->cell_count) * kCellSize;
  std::size_t shift = rng.chance(0.5) ? 0 : static_cast<std::size_t>(rng.below(kCellSize));
  if (adjacent) shift = 0;
  lease.cell_count = (shift + size + kCellSize - 1) / kCellSize;
  if (lease.cell_count > leased_.size()) return std::nullopt;
  bool found = false;
  if (adjacent) {
    lease.first_cell = near->first_cell + near->cell_count;
    found = is_free(lease.first_cell, lease.cell_count);
  }
  for (int attempt = 0; !found && attempt < 16; ++attempt) {
    lease.first_cell = static_cast<std::size_t>(rng.below(leased_.size() - lease.cell_count + 1));
    found = is_free(lease.first_cell, lease.cell_count);
  }
  if (!found) return std::nullopt;
  lease.offset = lease.first_cell * kCellSize + shift;
  std::fill_n(leased_.begin() + static_cast<std::ptrdiff_t>(lease.first_cell), lease.cell_count, true);
  std::fill_n(leased_bytes_.begin() + static_cast<std::ptrdiff_t>(lease.offset), lease.size, true);
  return lease;
}

void Plot::give_back(const Lease& lease) {
  std::fill_n(leased_.begin() + static_cast<std::ptrdiff_t>(lease.first_cell), lease.cell_count, false);
  std::fill_n(leased_bytes_.begin() + static_cast<std::ptrdiff_t>(lease.offset), lease.size, false);
}

void Plot::accept(const Lease& lease) {
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(lease.offset), lease.size,
              expected_.begin() + static_cast<std::ptrdiff_t>(lease.offset));
}

void Plot::write(const Lease& lease, std::uint64_t writer, std::uint64_t position) {
  fill_pattern(bytes(lease), writer, position);
  accept(lease);
}

void Plot::write_all(std::uint64_t writer) {
  fill_pattern(bytes_, writer, 0);
  expected_ = bytes_;
}

std::optional<std::uint64_t> Plot::first_fault() const {
  if (bytes_ == expected_) return std::nullopt;
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (bytes_[i] != expected_[i] && !leased_bytes_[i]) return i;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Plot::first_difference() const {
  const auto [at, other] = std::mismatch(bytes_.begin(), bytes_.end(), expected_.begin());
  if (at == bytes_.end()) return std::nullopt;
  return static_cast<std::uint64_t>(at - bytes_.begin());
}

}  // namespace hawser::simulation
