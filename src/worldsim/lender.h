#pragma once

// Lender: memory of one simulated rank that the others can map, for what it lends to collectives. Nothing of it is used
// twice, so that whoever reads or writes it too late is seen.
//
// Thread rule: one thread. Lifetime: its region goes with it, its memory stays as long as somebody holds that.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <hawser/agent.h>

#include "agent/region.h"
#include "base/inside.h"

namespace hawser::worldsim {

class Lender {
 public:
  static constexpr std::size_t kBytes = 512 * 1024;

  explicit Lender(Region region) : region_(std::move(region)) {}

  /// None: it has lent all.
  std::optional<std::span<std::byte>> take(std::size_t size) {
    const std::size_t taken = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (taken > region_.size() - used_) return std::nullopt;
    return region_.bytes().subspan(std::exchange(used_, used_ + taken), size);
  }
  std::shared_ptr<const void> memory() const { return core_of(region_)->entry->arena; }

 private:
  static constexpr std::size_t kAlignment = 64;
  Region region_;
  std::size_t used_ = 0;
};

}  // namespace hawser::worldsim
