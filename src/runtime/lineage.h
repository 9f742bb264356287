#pragma once

// Lineage: the names and numbers of the worlds that are made of one. All their ranks come to the same without a
// message.
//
// Thread rule: under the lane's lock.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace hawser::runtime {

class Lineage {
 public:
  struct Child {
    std::uint64_t nonce = 0;
    std::string name;
  };

  /// A group of these ranks of the world: `ranks` in order. Of several groups of the same ranks the first that a rank
  /// makes is the first of each of them.
  Child group(std::uint64_t world, std::string_view name, std::span<const std::uint32_t> ranks);
  /// The world after the `epoch`-th shrink, made of these ranks of the one before.
  static Child shrunk(std::uint64_t world, std::string_view name, std::uint64_t epoch,
                      std::span<const std::uint32_t> ranks);

 private:
  std::map<std::uint64_t, std::uint32_t> groups_;  ///< By members: how many there were.
};

}  // namespace hawser::runtime
