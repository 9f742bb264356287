#pragma once

// What collective operations of a world (world.h) are given beside their buffers.
//
// Thread rule: values.

#include <cstddef>

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
};

/// Elements of this rank.
struct Tensor {
  void* data = nullptr;
  std::size_t count = 0;
};
inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

HAWSER_NAMESPACE_END
