#include "base/copy.h"

#include <algorithm>
#include <array>

#include "base/copy_kernels.h"
#include "base/copy_shared_cache.h"
#include "base/copy_string.h"
#include "base/cpu_features.h"
#include "base/spin.h"

namespace hawser::base {

namespace {

void plain(const CopyPiece& piece) {
  if (piece.size != 0) std::memcpy(piece.target, piece.source, piece.size);
}

void plain_one(std::byte* target, const std::byte* source, std::size_t size) noexcept {
  std::memcpy(target, source, size);
}

void plain_four(std::byte* const* targets, const std::byte* const* sources, std::size_t size) noexcept {
  for (std::size_t i = 0; i < kStreamWidth; ++i) std::memcpy(targets[i], sources[i], size);
}

constexpr CopyKernels kPlain = {"memcpy", plain_one, plain_four, plain_one};

// From here on a piece is worth splitting: a page for each run.
constexpr std::size_t kSplitMin = kStreamWidth * 4096;
// Below, the C library's copy takes no more time, and has no bad cases.
constexpr std::size_t kCachedLoopMin = 1024;
// Larger pieces have their next pages under way anyway; for them the touches only cost.
constexpr std::size_t kTouchMax = 4096;

using Group = std::span<const CopyPiece, kStreamWidth>;

struct Available {
  std::array<const CopyKernels*, 4> kernels{};
  std::size_t count = 0;
  void add(const CopyKernels& kernel) { kernels[count++] = &kernel; }
};

Available find_available() {
  Available found;
#if defined(__x86_64__)
  // Wide registers slow the whole core down on Intel's processors before Ice Lake, which lack VBMI2. On Zen 4 the two
  // differ by less than the noise, on Zen 5 the wide ones copy 4 KiB half as fast again.
  const CpuFeatures& cpu = cpu_features();
  const bool has_wide = cpu.avx512f;
  const bool is_wide_cheap = has_wide && cpu.avx512vbmi2;
  if (is_wide_cheap) found.add(kAvx512Kernels);
  if (cpu.avx2) found.add(kAvx2Kernels);
  if (has_wide && !is_wide_cheap) found.add(kAvx512Kernels);
  found.add(kSse2Kernels);
#endif
  found.add(kPlain);
  return found;
}

const Available& available() {
  static const Available found = find_available();
  return found;
}

CopyPiece without_front(const CopyPiece& piece, std::size_t size) {
  return {piece.target + size, piece.source + size, piece.size - size};
}

// Copies up to the target's first whole line, so that streamed lines are whole; gives the rest.
CopyPiece aligned(const CopyPiece& piece) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(piece.target) % kCacheLine;
  const std::size_t head = std::min(past == 0 ? 0 : kCacheLine - past, piece.size);
  plain({piece.target, piece.source, head});
  return without_front(piece, head);
}

std::size_t whole_steps(std::size_t size) { return size - size % kStreamStep; }

using OneRun = decltype(CopyKernels::stream_one);

// An aligned piece, by one run.
void finish(OneRun copy, const CopyPiece& piece) {
  const std::size_t body = whole_steps(piece.size);
  if (body != 0) copy(piece.target, piece.source, body);
  plain(without_front(piece, body));
}

// The first line and the page walk of what comes next are under way while the present is copied.
void touch(const CopyPiece& piece) {
  __builtin_prefetch(piece.source, 0);
  __builtin_prefetch(piece.target, 0);
}

std::size_t smallest_of(Group group) {
  std::size_t size = group[0].size;
  for (const CopyPiece& piece : group) size = std::min(size, piece.size);
  return size;
}

// All four in step as far as the shortest goes, then what is left of each.
void stream_group(const CopyKernels& kernel, Group group) {
  CopyPiece rest[kStreamWidth];
  for (std::size_t i = 0; i < kStreamWidth; ++i) rest[i] = aligned(group[i]);
  const std::size_t body = whole_steps(smallest_of(rest));
  std::byte* targets[kStreamWidth];
  const std::byte* sources[kStreamWidth];
  for (std::size_t i = 0; i < kStreamWidth; ++i) {
    targets[i] = rest[i].target;
    sources[i] = rest[i].source;
  }
  if (body != 0) kernel.stream_four(targets, sources, body);
  for (const CopyPiece& piece : rest) {
    if (piece.size != body) kernel.stream(without_front(piece, body));
  }
}

}  // namespace

bool streams(std::size_t size, CopyHint hint) {
  const std::uint64_t total = std::max<std::uint64_t>(size, hint.total_bytes);
  const bool is_far = hint.read_elsewhere && !shared_cache_pays();
  if (is_far && size >= (hint.read_later ? kStreamLaterMin : kStreamNextMin)) return true;
  if (size < kStreamPieceMin || total < kStreamTotalMin) return false;
  return hint.scattered || is_far || total > kCachedTotalMax;
}

void CopyKernels::stream(const CopyPiece& piece) const {
  const CopyPiece rest = aligned(piece);
  if (rest.size < kSplitMin) return finish(stream_one, rest);
  const std::size_t part = whole_steps(rest.size / kStreamWidth);
  std::byte* targets[kStreamWidth];
  const std::byte* sources[kStreamWidth];
  for (std::size_t i = 0; i < kStreamWidth; ++i) {
    targets[i] = rest.target + i * part;
    sources[i] = rest.source + i * part;
  }
  stream_four(targets, sources, part);
  finish(stream_one, without_front(rest, kStreamWidth * part));
}

void CopyKernels::cached(const CopyPiece& piece, CopyHint hint) const {
  if (piece.size < kCachedLoopMin) return plain(piece);
  const CopyPiece rest = aligned(piece);
  const std::size_t least = hint.read_elsewhere ? kStringMoveSharedMin : kStringMoveMin;
  if (rest.size >= least && string_moves_pay()) return string_move(rest.target, rest.source, rest.size);
  finish(cached_one, rest);
}

bool CopyKernels::copy(const CopyPiece& piece, CopyHint hint) const {
  if (!streams(piece.size, hint)) {
    cached(piece, hint);
    return false;
  }
  stream(piece);
  return true;
}

bool CopyKernels::copy_pieces(std::span<const CopyPiece> pieces, CopyHint hint) const {
  bool streamed = false;
  while (pieces.size() >= kStreamWidth) {
    const Group group = pieces.first<kStreamWidth>();
    pieces = pieces.subspan(kStreamWidth);
    const std::size_t smallest = smallest_of(group);
    if (smallest <= kTouchMax && pieces.size() >= kStreamWidth) {
      for (const CopyPiece& next : pieces.first<kStreamWidth>()) touch(next);
    }
    if (streams(smallest, hint)) {
      stream_group(*this, group);
      streamed = true;
    } else {
      for (const CopyPiece& piece : group) streamed |= copy(piece, hint);
    }
  }
  for (const CopyPiece& piece : pieces) streamed |= copy(piece, hint);
  return streamed;
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
