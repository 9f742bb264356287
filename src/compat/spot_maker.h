#pragma once

// SpotMaker: makes the regions of one call that registers memory, all or none.
//
// Thread rule: one thread. To open files and to adopt pages takes long: no lock of the agent's books is needed.
// Lifetime: what was not taken closes itself.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/agent.h>
#include <hawser/compat/agent.h>

#include "compat/local_book.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// Regions that are closed together, while the agent's lane is held; what is made is booked while it is in a cache.
inline constexpr std::size_t kRegionsAtOnce = 64;

class SpotMaker {
 public:
  /// `files`: what device numbers stand for already. A number stands for one file: else where a transfer goes would be
  /// a guess.
  SpotMaker(std::string_view call, hawser::Agent& agent, MemType type, std::map<std::uint64_t, FileId> files)
      : call_(call), agent_(agent), type_(type), files_(std::move(files)) {}

  /// Errors name the descriptor.
  Status make(std::span<const RegDesc> list);
  /// One for each descriptor.
  std::vector<LocalSpot> take() { return std::move(spots_); }

 private:
  Status make_some(std::span<const RegDesc> some);
  /// On an error `wrong` is the descriptor that it is about, and `made` may have some before it.
  Status add_regions(std::span<const RegDesc> some, std::vector<Region>* made, std::size_t* wrong);
  Result<Region> add_file(const RegDesc& desc);
  Status check_file(const RegDesc& desc, const std::optional<FileId>& file) const;
  LocalSpot spot_of(const RegDesc& desc, Region region) const;

  const std::string_view call_;
  hawser::Agent& agent_;
  const MemType type_;
  std::map<std::uint64_t, FileId> files_;  ///< By device number.
  std::vector<LocalSpot> spots_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
