#include <immintrin.h>

#include "base/copy_kernels.h"

namespace hawser::base {

namespace {

using V = __m128i;
inline V load(const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline void stream_store(std::byte* to, V value) { _mm_stream_si128(reinterpret_cast<__m128i*>(to), value); }
inline void store(std::byte* to, V value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }

#include "base/copy_stream.inc"

}  // namespace

constinit const CopyKernels kSse2Kernels = {"sse2", stream_one, stream_four, cached_one};

}  // namespace hawser::base
