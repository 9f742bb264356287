#include "cli/bench/blocks.h"

#include <xxhash.h>

#include <cstring>
#include <memory>
#include <numeric>

#include "base/rng.h"

namespace hawser::cli::bench {

std::vector<std::uint32_t> BlockList::indices() const {
  std::vector<std::uint32_t> all(arena_blocks);
  std::iota(all.begin(), all.end(), 0u);
  if (seed != 0) base::Rng(seed).shuffle(all);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

Json to_json(const BlockList& list) {
  return {{"block_bytes", list.block_bytes},
          {"arena_blocks", list.arena_blocks},
          {"count", list.count},
          {"first", list.first},
          {"seed", list.seed}};
}

BlockList block_list_from(const Json& json) {
  const auto number = [&](const char* key) { return json.value(key, std::uint64_t{0}); };
  return {number("block_bytes"), number("arena_blocks"), number("count"), number("first"), number("seed")};
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t word = base::Rng(seed).u64();
  std::size_t at = 0;
  for (; at + sizeof(word) <= bytes.size(); at += sizeof(word), word += kOdd) {
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
  if (at < bytes.size()) std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

std::uint64_t sum_of(std::span<const std::byte> arena, const BlockList& list) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (const std::uint32_t index : list.indices()) {
    const std::uint64_t offset = index * list.block_bytes;
    if (offset + list.block_bytes > arena.size()) return 0;
    XXH3_64bits_update(state.get(), arena.data() + offset, list.block_bytes);
  }
  return XXH3_64bits_digest(state.get());
}

std::uint64_t read_all(std::span<const std::byte> bytes) {
  std::uint64_t sums[4] = {};
  std::size_t at = 0;
  for (; at + sizeof(sums) <= bytes.size(); at += sizeof(sums)) {
    std::uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (int i = 0; i < 4; ++i) sums[i] += words[i];
  }
  for (; at < bytes.size(); ++at) sums[0] += static_cast<std::uint64_t>(bytes[at]);
  return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

}  // namespace hawser::cli::bench
