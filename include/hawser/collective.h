#pragma once

// What collective operations of a world (world.h) are given beside their buffers.
//
// Thread rule: values.

#include <cstddef>
#include <functional>
#include <string_view>

#include <hawser/compress.h>
#include <hawser/export.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

/// A combination of two elements that the caller defines. All ranks give one of the same name, with the same values.
struct Reducer {
  /// out[i] = first[i] op second[i]. `first` comes of lower ranks than `second`, unless `commutes`. `out` may be one
  /// of them. The places may have any alignment. It must be associative. It is called under the rank's lock, by any
  /// thread that makes its progress: it must neither block, nor throw, nor call the world.
  std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine = {};
  /// So ranks with different ones are found out.
  std::string_view name = {};
  /// The order of ranks does not matter. That leaves more algorithms.
  bool commutes = false;
  /// Of one element, if it is none of its DataType: counts are of such elements then. At most kReducerElementMax. 0: it
  /// is one.
  std::size_t element_bytes = 0;
};
inline constexpr std::size_t kReducerElementMax = 1024;

struct CollectiveOptions {
  Duration timeout = Duration::zero();  ///< Zero: the world's. All ranks' collectives end when one's is over.
  /// Each run gives the same bits, whatever the sizes are and wherever the ranks run.
  bool reproducible = false;
  /// For all_reduce only: the ranks send packed elements (compress.h). All ranks give a compressor, made in the same
  /// way.
  Compressor compress = {};
  /// For operations that combine: in the place of their ReduceOp, which then counts for nothing. Not with `compress`.
  Reducer reducer = {};
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
