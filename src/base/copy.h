#pragma once

// Copies within one machine's memory, as fast as this machine can: instructions are chosen once at run time, large and
// scattered copies go around the caches.
//
// Why around: a core that reads what another core just wrote gets 2 GB/s from that core's cache and 11-28 GB/s from
// memory, and the C library's memcpy falls to half speed once a copy outgrows the last-level cache.
//
// Thread rule: any thread. A streamed copy is not ordered with later stores: when a copy answers true, call
// stream_fence() before anything tells another thread or process that the bytes are there. Not otherwise: a fence costs
// as much as copying 4 KiB.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace hawser::base {

/// The transfer of a copy. The sum over a transfer says more than one piece does: a thousand small pieces outgrow a
/// cache as one large piece does.
struct CopyHint {
  std::uint64_t total_bytes = 0;  ///< Sum of all copies of this transfer; 0: this one is all.
  bool scattered = false;         ///< The pieces lie far apart in large memory, so they are probably in no cache.
  bool read_elsewhere = false;    ///< Another core reads the target next, and its speed counts more than this copy's.
  bool read_later = false;        ///< With `read_elsewhere`: that core reads something else first.
};

/// One of many copies. Source and target must not overlap.
struct CopyPiece {
  std::byte* target = nullptr;
  const std::byte* source = nullptr;
  std::size_t size = 0;
};

/// Transfers below this do not stream, unless another core reads them: they are soon read here, and the fence costs
/// more than it saves.
inline constexpr std::size_t kStreamTotalMin = 16 * 1024;
/// Transfers up to this are taken to be in the caches, and stay there, unless the hint says otherwise. Measured: with
/// both sides in a 32 MiB cache memcpy is faster up to 8 MiB; caches are shared with others.
inline constexpr std::size_t kCachedTotalMax = 4 * 1024 * 1024;
/// A piece that another core reads next streams from this size on, for two reasons. The lines are in that core's cache
/// since it read what stood there before, so each cached store waits for one. Then that core reads each line out of
/// this core's cache. In and out of 16 KiB took 11.5 us through the caches and 3.0 past them where the two cores share
/// no cache, 2.7 and 2.4 where they do. Below, the first read from memory costs more than it saves (Zen 4,
/// `shared_copy_bench 400`).
inline constexpr std::size_t kStreamNextMin = 8 * 1024;
/// The same where that core reads something else first, so that nobody waits for the first read. One core wrote 4 KiB
/// after 4 KiB, and the other read them, at 2 GB/s through the caches and 9 past them where they share none, 6 and 10
/// where they do (`shared_copy_bench 400`).
inline constexpr std::size_t kStreamLaterMin = 2 * 1024;
/// A streamed piece has this size at least: its first and last partial lines do not stream.
inline constexpr std::size_t kStreamPieceMin = 1024;

/// How many runs are copied at once. One core keeps that many page walks and row misses in flight; eight were slower.
inline constexpr std::size_t kStreamWidth = 4;
/// The kernels copy multiples of this to targets aligned to a cache line.
inline constexpr std::size_t kStreamStep = 256;

/// The instructions of one processor family. Immutable; lives for ever.
struct CopyKernels {
  std::string_view name;  ///< "avx2", "avx512", "sse2"; "memcpy" where there is no streaming
  void (*stream_one)(std::byte* target, const std::byte* source, std::size_t size) noexcept;
  /// kStreamWidth runs of `size` each, a step of each in turn.
  void (*stream_four)(std::byte* const* targets, const std::byte* const* sources, std::size_t size) noexcept;
  /// Through the caches. Not the C library's memcpy: from 2 KiB that runs `rep movsb`, which on Zen 4 is many times
  /// slower when the target lies a few bytes past the source, modulo 4 KiB (bench/copy_bench.cc shows it). Where
  /// string_moves_pay(), larger pieces go by it instead.
  void (*cached_one)(std::byte* target, const std::byte* source, std::size_t size) noexcept;

  /// Any size and alignment, past the caches.
  void stream(const CopyPiece& piece) const;
  /// Copies any size at any alignment, through the caches. It looks at `read_elsewhere` of the hint alone.
  void cached(const CopyPiece& piece, CopyHint hint) const;
  /// By whichever way fits size and hint. True when a stream_fence() is due.
  bool copy(const CopyPiece& piece, CopyHint hint) const;
  bool copy_pieces(std::span<const CopyPiece> pieces, CopyHint hint) const;
};

/// True where a piece of `size` bytes goes past the caches.
bool streams(std::size_t size, CopyHint hint);

/// `rep movsb` copies pieces that outgrow a first-level cache (kStringMoveMin) faster than the loops here, and
/// has no bad case. By the processor's family: on Zen 5 it copies 64 KiB a third faster and at worst as fast, Zen 4
/// loses nearly all speed where addresses collide (bench/copy_bench.cc). False where nobody has measured.
bool string_moves_pay() noexcept;
inline constexpr std::size_t kStringMoveMin = 32 * 1024;
/// The same for targets that another core reads. That core has read what stood there before, so it holds the lines. A
/// loop of stores takes these lines from it one by one, a string move takes many at once. In and out of 32 KiB took
/// 0.9 us, by the loop 1.4 (Zen 5, `shared_copy_bench 1000`).
inline constexpr std::size_t kStringMoveSharedMin = 4 * 1024;

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

/// Copies `size` bytes; source and target must not overlap. True when a stream_fence() is due.
/// (Not `copy`: for pointers to std::byte that name means std::copy.)
inline bool copy_bytes(void* target, const void* source, std::size_t size, CopyHint hint = {}) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  if (size > kInlineCopyMax) return kernels().copy({to, from, size}, hint);
  detail::copy_inline(to, from, size);
  return false;
}

/// As memcpy, through the caches, but without its bad case: from 2 KiB on the C library's may run `rep movsb`, which on
/// Zen 4 is many times slower when the target lies a few bytes past the source, modulo 4 KiB (bench/copy_bench.cc).
/// Users choose where their memory lies, so what they send and get is copied by this.
inline void copy_cached(void* target, const void* source, std::size_t size) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  if (size > kInlineCopyMax) return kernels().cached({to, from, size}, {});
  detail::copy_inline(to, from, size);
}

/// Copies many pieces; better than one by one, because the misses of neighbours in the list overlap. True when a
/// stream_fence() is due.
inline bool copy_pieces(std::span<const CopyPiece> pieces, CopyHint hint) {
  return kernels().copy_pieces(pieces, hint);
}

/// Orders all streamed stores of this thread before what it stores next.
inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace hawser::base
