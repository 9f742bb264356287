#pragma once

// What collective operations of a world (world.h) are given beside their buffers.
//
// Thread rule: values.

#include <cstddef>
#include <string_view>

#include <hawser/compress.h>
#include <hawser/export.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

struct CollectiveOptions {
  Duration timeout = Duration::zero();  ///< Zero: the world's. All ranks' collectives end when one's is over.
  /// Each run gives the same bits, whatever the sizes are and wherever the ranks run.
  bool reproducible = false;
  /// For all_reduce only: the ranks send packed elements (compress.h). All ranks give a compressor, made in the same
  /// way.
  Compressor compress = {};
  /// The call goes by this algorithm and not by the cheapest: its name in docs/collectives.md, such as "doubling". All
  /// ranks name the same one. kInvalid, listing those that can do the call, where this one cannot. An all_reduce that
  /// is compressed takes no notice of it. "mapped", "boards" and "staged" send messages until the ranks see each
  /// other's memory.
  /// Empty: the cost model chooses.
  std::string_view algorithm = {};
  /// The caller waits for the request at once, so the agent's own thread is not woken to look after it. Once a wait has
  /// ended before the collective has, that thread does. For languages whose waits must be interrupted now and then: the
  /// blocking calls of World do as much by themselves.
  bool is_waited_for = false;
};

/// Elements of this rank.
struct Tensor {
  void* data = nullptr;
  std::size_t count = 0;
};
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

HAWSER_NAMESPACE_END
