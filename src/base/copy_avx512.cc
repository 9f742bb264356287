#include <immintrin.h>

#include "base/copy_kernels.h"

namespace hawser::base {

namespace {

using V = __m512i;
inline V load(const std::byte* from) { return _mm512_loadu_si512(reinterpret_cast<const __m512i*>(from)); }
inline void stream_store(std::byte* to, V value) { _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value); }
inline void store(std::byte* to, V value) { _mm512_storeu_si512(reinterpret_cast<__m512i*>(to), value); }

#include "base/copy_stream.inc"

}  // namespace

constinit const CopyKernels kAvx512Kernels = {"avx512", stream_one, stream_four, cached_one};

}  // namespace hawser::base
