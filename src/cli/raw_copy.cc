#include "cli/raw_copy.h"

#include <fmt/format.h>

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu_features.h"

namespace hawser::cli {
namespace {

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t size);

void copy_libc(std::byte* to, const std::byte* from, std::size_t size) { std::memcpy(to, from, size); }

#if defined(__x86_64__)
void copy_rep(std::byte* to, const std::byte* from, std::size_t size) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

[[gnu::target("avx2")]] void copy_streaming(std::byte* to, const std::byte* from, std::size_t size) {
  std::size_t at = 0;
  for (; at + 128 <= size; at += 128) {
    const auto* in = reinterpret_cast<const __m256i*>(from + at);
    auto* out = reinterpret_cast<__m256i*>(to + at);
    const __m256i a = _mm256_loadu_si256(in), b = _mm256_loadu_si256(in + 1);
    const __m256i c = _mm256_loadu_si256(in + 2), d = _mm256_loadu_si256(in + 3);
    _mm256_stream_si256(out, a);
    _mm256_stream_si256(out + 1, b);
    _mm256_stream_si256(out + 2, c);
    _mm256_stream_si256(out + 3, d);
  }
  std::memcpy(to + at, from + at, size - at);
  _mm_sfence();
}
#endif

CopyWay loop(const char* name, Copy copy) {
  return {name, [copy](std::span<const base::CopyPiece> pieces) {
            for (const base::CopyPiece& piece : pieces) copy(piece.target, piece.source, piece.size);
          }};
}

}  // namespace

std::vector<CopyWay> copy_ways(std::uint64_t block_bytes, std::uint64_t total_bytes, bool scattered) {
  std::vector<CopyWay> all = {loop("memcpy", copy_libc)};
#if defined(__x86_64__)
  all.push_back(loop("rep movsb", copy_rep));
  // Streaming stores need targets at 32 bytes.
  if (base::cpu_features().avx2 && block_bytes % 32 == 0) {
    all.push_back(loop("non-temporal stores", copy_streaming));
  }
#endif
  for (const base::CopyKernels* kernels : base::all_kernels()) {
    all.push_back({fmt::format("own {} kernel", kernels->name),
                   [kernels, hint = base::CopyHint{.total_bytes = total_bytes, .scattered = scattered}](
                       std::span<const base::CopyPiece> pieces) {
                     if (kernels->copy_pieces(pieces, hint)) base::stream_fence();
                   }});
  }
  return all;
}

}  // namespace hawser::cli
