#pragma once

// Copies within one machine's memory, as fast as this machine can: instructions are chosen once at run time, large and
// scattered copies go around the caches.
//
// Why around: a core that reads what another core just wrote gets 2 GB/s from that core's cache and 11-28 GB/s from
// memory, and the C library's memcpy falls to half speed once a copy outgrows the last-level cache.
//
// Thread rule: any thread. Copies made here may sit in the store buffers of the core: call stream_fence() after the
// last and before anything tells another thread or process that the bytes are there.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace hawser::base {

/// What a copy belongs to. The sum over a plan says more than one piece does: a thousand small pieces outgrow a cache
/// as one large piece does.
struct CopyHint {
  std::uint64_t total_bytes = 0;  ///< Of all copies of this transfer; 0: this one is all.
  bool scattered = false;         ///< The pieces lie far apart, so no hardware prefetcher will find the next.
};

/// One of many copies. Source and target must not overlap.
struct CopyPiece {
  std::byte* target = nullptr;
  const std::byte* source = nullptr;
  std::size_t size = 0;
};

/// Transfers below this never stream: they are soon read, and the fence costs more than it saves.
inline constexpr std::size_t kStreamTotalMin = 16 * 1024;
/// Contiguous transfers up to this are taken to be in the caches, and stay there.
inline constexpr std::size_t kCachedTotalMax = 4 * 1024 * 1024;
/// A streamed piece has this size at least: its first and last partial lines do not stream.
inline constexpr std::size_t kStreamPieceMin = 1024;

/// The instructions of one processor family. Immutable; lives for ever.
struct CopyKernels {
  std::string_view name;  ///< "avx512", "avx2", "sse2"; "memcpy" where there is no streaming
  /// Any size and alignment, by stores that pass the caches.
  void (*stream)(const CopyPiece& piece) noexcept;
  /// Two at once: their cache misses overlap.
  void (*stream_two)(const CopyPiece& a, const CopyPiece& b) noexcept;

  /// Whether a piece of `size` bytes streams.
  bool streams(std::size_t size, CopyHint hint) const;
  void copy(const CopyPiece& piece, CopyHint hint) const;
  void copy_pieces(std::span<const CopyPiece> pieces, CopyHint hint) const;
};

/// The best for this machine.
const CopyKernels& kernels() noexcept;
/// Those that this machine can run, the best first.
std::span<const CopyKernels* const> all_kernels() noexcept;
/// One of them by name, or null.
const CopyKernels* kernels_named(std::string_view name) noexcept;

/// Up to 64 bytes by at most four loads and stores, without a call.
inline constexpr std::size_t kInlineCopyMax = 64;

namespace detail {

/// The first and the last `kHalf` bytes of size bytes, kHalf <= size <= 2 * kHalf. Loads all before it stores.
template <std::size_t kHalf>
inline void copy_two(std::byte* target, const std::byte* source, std::size_t size) {
  std::byte first[kHalf];
  std::byte last[kHalf];
  std::memcpy(first, source, kHalf);
  std::memcpy(last, source + (size - kHalf), kHalf);
  std::memcpy(target, first, kHalf);
  std::memcpy(target + (size - kHalf), last, kHalf);
}

inline void copy_inline(std::byte* target, const std::byte* source, std::size_t size) {
  if (size >= 32) return copy_two<32>(target, source, size);
  if (size >= 16) return copy_two<16>(target, source, size);
  if (size >= 8) return copy_two<8>(target, source, size);
  if (size >= 4) return copy_two<4>(target, source, size);
  if (size >= 2) return copy_two<2>(target, source, size);
  if (size == 1) *target = *source;
}

}  // namespace detail

/// Copies `size` bytes; source and target must not overlap.
inline void copy(void* target, const void* source, std::size_t size, CopyHint hint = {}) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  if (size <= kInlineCopyMax) return detail::copy_inline(to, from, size);
  kernels().copy({to, from, size}, hint);
}

/// Copies many pieces; better than one by one, because the misses of neighbours in the list overlap.
inline void copy_pieces(std::span<const CopyPiece> pieces, CopyHint hint) { kernels().copy_pieces(pieces, hint); }

/// Orders all streamed stores of this thread before what it stores next.
inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace hawser::base
