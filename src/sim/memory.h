#pragma once

// Plot: a simulated region's memory with a shadow of what it must hold. Leases are parts of it that a transfer may
// change; everything else, the bytes right beside a lease included, must stay as the shadow says.
//
// Patterns make every byte tell where it came from: they are a function of (writer, position).
//
// Thread rule: one thread. Lifetime: a plot outlives every agent that it is registered with.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/memory.h>

#include "base/rng.h"

namespace hawser::simulation {

/// Leases are whole cells; a lease's bytes begin and end anywhere in them.
inline constexpr std::size_t kCellSize = 64;

void fill_pattern(std::span<std::byte> out, std::uint64_t writer, std::uint64_t position);
bool has_pattern(std::span<const std::byte> bytes, std::uint64_t writer, std::uint64_t position);

struct Lease {
  std::size_t first_cell = 0;
  std::size_t cell_count = 0;
  std::uint64_t offset = 0;  ///< Of the bytes, in the plot.
  std::uint64_t size = 0;
};

class Plot {
 public:
  Plot(std::string name, std::size_t size, Rights rights, std::uint64_t writer);

  const std::string& name() const { return name_; }
  Rights rights() const { return rights_; }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<std::byte> bytes(const Lease& lease) { return std::span(bytes_).subspan(lease.offset, lease.size); }
  std::span<const std::byte> expected(const Lease& lease) const {
    return std::span(expected_).subspan(lease.offset, lease.size);
  }

  /// Somewhere free; `near` (the end of another lease) is taken right behind it if that is free, so that neighbours can
  /// merge. Null when there is no room.
  std::optional<Lease> take(base::Rng& rng, std::size_t size, const Lease* near);
  void give_back(const Lease& lease);
  /// The bytes of the lease are now what they must be.
  void accept(const Lease& lease);
  /// The owner writes: both the bytes and the shadow.
  void write(const Lease& lease, std::uint64_t writer, std::uint64_t position);
  /// The same over everything, leased or not: a canary, once nobody may touch it.
  void write_all(std::uint64_t writer);

  /// Where bytes outside of all leases differ from the shadow.
  std::optional<std::uint64_t> first_fault() const;
  /// The same for everything, leased or not.
  std::optional<std::uint64_t> first_difference() const;

 private:
  bool is_free(std::size_t first, std::size_t count) const;

  const std::string name_;
  const Rights rights_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> expected_;
  std::vector<bool> leased_;        ///< By cell.
  std::vector<bool> leased_bytes_;  ///< Within leased cells: by byte.
};

}  // namespace hawser::simulation
