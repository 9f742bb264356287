#include "base/copy.h"

#include <algorithm>
#include <array>

#include "base/copy_kernels.h"

namespace hawser::base {

namespace {

void plain(const CopyPiece& piece) noexcept { std::memcpy(piece.target, piece.source, piece.size); }

void plain_two(const CopyPiece& a, const CopyPiece& b) noexcept {
  plain(a);
  plain(b);
}

constexpr CopyKernels kPlain = {"memcpy", plain, plain_two};

struct Available {
  std::array<const CopyKernels*, 4> kernels{};
  std::size_t count = 0;
  void add(const CopyKernels& kernel) { kernels[count++] = &kernel; }
};

Available find_available() {
  Available found;
#if defined(__x86_64__)
  // These look at what the operating system saves of the registers, too.
  if (__builtin_cpu_supports("avx512f")) found.add(kAvx512Kernels);
  if (__builtin_cpu_supports("avx2")) found.add(kAvx2Kernels);
  found.add(kSse2Kernels);
#endif
  found.add(kPlain);
  return found;
}

const Available& available() {
  static const Available found = find_available();
  return found;
}

// The page walk and the first line of the next pieces are under way while one is copied.
void touch(const CopyPiece& piece) {
  __builtin_prefetch(piece.source, 0);
  __builtin_prefetch(piece.target, 0);
}

}  // namespace

bool CopyKernels::streams(std::size_t size, CopyHint hint) const {
  const std::uint64_t total = std::max<std::uint64_t>(size, hint.total_bytes);
  if (size < kStreamPieceMin || total < kStreamTotalMin) return false;
  return hint.scattered || total > kCachedTotalMax;
}

void CopyKernels::copy(const CopyPiece& piece, CopyHint hint) const {
  if (streams(piece.size, hint)) {
    stream(piece);
  } else {
    plain(piece);
  }
}

void CopyKernels::copy_pieces(std::span<const CopyPiece> pieces, CopyHint hint) const {
  std::size_t i = 0;
  for (; i + 1 < pieces.size(); i += 2) {
    const CopyPiece& a = pieces[i];
    const CopyPiece& b = pieces[i + 1];
    if (i + 3 < pieces.size()) {
      touch(pieces[i + 2]);
      touch(pieces[i + 3]);
    }
    if (streams(std::min(a.size, b.size), hint)) {
      stream_two(a, b);
    } else {
      copy(a, hint);
      copy(b, hint);
    }
  }
  if (i < pieces.size()) copy(pieces[i], hint);
}

std::span<const CopyKernels* const> all_kernels() noexcept { return {available().kernels.data(), available().count}; }

const CopyKernels& kernels() noexcept { return *available().kernels[0]; }

const CopyKernels* kernels_named(std::string_view name) noexcept {
  for (const CopyKernels* kernel : all_kernels()) {
    if (kernel->name == name) return kernel;
  }
  return nullptr;
}

}  // namespace hawser::base
