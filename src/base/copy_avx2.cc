#include <immintrin.h>

#include "base/copy_kernels.h"

namespace hawser::base {

namespace {

using V = __m256i;
inline V load(const std::byte* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline void stream_store(std::byte* to, V value) { _mm256_stream_si256(reinterpret_cast<__m256i*>(to), value); }
inline void store(std::byte* to, V value) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }

#include "base/copy_stream.inc"

}  // namespace

constinit const CopyKernels kAvx2Kernels = {"avx2", stream_one, stream_four, cached_one};

}  // namespace hawser::base
