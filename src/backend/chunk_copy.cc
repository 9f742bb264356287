#include "backend/chunk_copy.h"

#include <algorithm>
#include <array>

namespace hawser::backend {
namespace {

constexpr std::size_t kBatch = 64;  // Pieces given to the copy kernels at once.
constexpr std::size_t kAhead = 8;   // Small pieces whose lines are fetched before they are copied.
constexpr std::size_t kSmall = 64;  // Bytes of a piece that is copied without a call.

// Four runs that advance in step. A block of one piece makes four as well.
constexpr std::uint64_t kRunMin = 16 * 1024;
constexpr std::uint64_t kRunsStep = base::kStreamWidth * base::kStreamStep;
constexpr std::uint64_t kBlockMin = 256 * 1024;
constexpr std::uint64_t kLine = 64;

struct Runs {
  std::array<std::byte*, base::kStreamWidth> targets;
  std::array<const std::byte*, base::kStreamWidth> sources;
  std::uint64_t size = 0;  // Of each.
};

base::CopyPiece copy_piece(std::byte* region, Operation op, const Piece& piece, std::uint64_t offset,
                           std::uint64_t size) {
  std::byte* remote = region + piece.remote + offset;
  std::byte* local = piece.local + offset;
  if (op == Operation::kWrite) return {remote, local, size};
  return {local, remote, size};
}

/// Many pieces of a few bytes each: their cache misses are what costs, so all lines are asked for well ahead.
bool copy_small(std::byte* region, const Chunk& chunk, base::CopyHint hint) {
  bool is_fence_due = false;
  const std::size_t count = chunk.pieces.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const Piece& ahead = chunk.pieces[i + kAhead];
      __builtin_prefetch(ahead.local);
      __builtin_prefetch(region + ahead.remote);
    }
    const Piece& piece = chunk.pieces[i];
    const base::CopyPiece copy = copy_piece(region, chunk.op, piece, 0, piece.size);
    is_fence_due |= base::copy_bytes(copy.target, copy.source, copy.size, hint);
  }
  return is_fence_due;
}

bool are_equal(std::span<const Piece> pieces) {
  return std::ranges::all_of(pieces, [&](const Piece& piece) { return piece.size == pieces[0].size; });
}

/// The runs that begin at the cursor: the next four pieces, or a block of this one.
bool find_runs(std::byte* region, const Chunk& chunk, const Cursor& cursor, base::CopyHint hint, Runs* runs) {
  const auto rest = chunk.pieces.subspan(cursor.piece);
  if (rest[0].size < kRunMin) return false;
  const bool by_piece =
      cursor.offset == 0 && rest.size() >= base::kStreamWidth && are_equal(rest.first(base::kStreamWidth));
  const std::uint64_t block = std::min(rest[0].size - cursor.offset, kCopyBlock);
  if (!by_piece && block < kBlockMin) return false;
  runs->size = by_piece ? rest[0].size : block / kRunsStep * base::kStreamStep;
  if (runs->size % base::kStreamStep != 0) return false;
  if (cursor.run == 0 && !base::streams(runs->size, hint)) return false;
  for (std::size_t i = 0; i < base::kStreamWidth; ++i) {
    const base::CopyPiece run = by_piece
                                    ? copy_piece(region, chunk.op, rest[i], 0, runs->size)
                                    : copy_piece(region, chunk.op, rest[0], cursor.offset + i * runs->size, runs->size);
    if (reinterpret_cast<std::uintptr_t>(run.target) % kLine != 0) return false;
    runs->targets[i] = run.target;
    runs->sources[i] = run.source;
  }
  return true;
}

std::uint64_t step_runs(Runs& runs, const Chunk& chunk, Cursor* cursor, std::uint64_t limit) {
  const std::uint64_t each = std::max(limit / kRunsStep, std::uint64_t{1}) * base::kStreamStep;
  const std::uint64_t step = std::min(each, runs.size - cursor->run);
  for (std::size_t i = 0; i < base::kStreamWidth; ++i) {
    runs.targets[i] += cursor->run;
    runs.sources[i] += cursor->run;
  }
  base::kernels().stream_four(runs.targets.data(), runs.sources.data(), step);
  const std::uint64_t moved = base::kStreamWidth * step;
  cursor->run += step;
  if (cursor->run < runs.size) {
    cursor->done += moved;
    return moved;
  }
  const std::uint64_t before = cursor->done + moved - base::kStreamWidth * runs.size;
  *cursor = {cursor->piece, cursor->offset, before};
  advance(chunk, cursor, base::kStreamWidth * runs.size);
  return moved;
}

/// How much of the piece at the cursor goes into a batch: of one that will make runs, what comes before its first line.
std::uint64_t batch_size(const base::CopyPiece& rest, base::CopyHint hint) {
  const std::uint64_t past = reinterpret_cast<std::uintptr_t>(rest.target) % kLine;
  if (past == 0 || rest.size < kBlockMin + kLine || !base::streams(rest.size, hint)) return rest.size;
  return kLine - past;
}

}  // namespace

void advance(const Chunk& chunk, Cursor* cursor, std::uint64_t size) {
  cursor->done += size;
  cursor->offset += size;
  while (cursor->piece < chunk.pieces.size() && cursor->offset >= chunk.pieces[cursor->piece].size) {
    cursor->offset -= chunk.pieces[cursor->piece].size;
    ++cursor->piece;
  }
}

bool copy_part(std::byte* region, const Chunk& chunk, Cursor* cursor, std::uint64_t limit, base::CopyHint hint) {
  const bool is_whole = cursor->done == 0 && chunk.bytes <= limit;
  if (is_whole && chunk.bytes <= chunk.pieces.size() * kSmall) {
    *cursor = {chunk.pieces.size(), 0, chunk.bytes};
    return copy_small(region, chunk, hint);
  }
  std::array<base::CopyPiece, kBatch> batch;
  bool is_fence_due = false;
  std::uint64_t moved = 0;
  while (cursor->piece < chunk.pieces.size() && moved < limit) {
    Runs runs;
    if (find_runs(region, chunk, *cursor, hint, &runs)) {
      moved += step_runs(runs, chunk, cursor, limit - moved);
      is_fence_due = true;
      continue;
    }
    std::size_t count = 0;
    do {
      const Piece& piece = chunk.pieces[cursor->piece];
      base::CopyPiece& copy = batch[count++];
      copy = copy_piece(region, chunk.op, piece, cursor->offset, piece.size - cursor->offset);
      copy.size = std::min(batch_size(copy, hint), limit - moved);
      advance(chunk, cursor, copy.size);
      moved += copy.size;
    } while (count < kBatch && cursor->piece < chunk.pieces.size() && moved < limit &&
             !find_runs(region, chunk, *cursor, hint, &runs));
    is_fence_due |= base::copy_pieces({batch.data(), count}, hint);
  }
  return is_fence_due;
}

}  // namespace hawser::backend
