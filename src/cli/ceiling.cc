#include "cli/ceiling.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <hawser/time.h>

#include "base/copy.h"
#include "base/fd.h"
#include "base/rng.h"
#include "base/try.h"
#include "cli/ceiling_arena.h"
#include "cli/raw_copy.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

constexpr int kPasses = 3;  // timed ones; the best counts
constexpr std::uint64_t kPage = 4096;

}  // namespace

Result<ScratchArena> ScratchArena::create(std::uint64_t size) {
  const std::uint64_t rounded = (size + (2u << 20) - 1) / (2u << 20) * (2u << 20);
  const base::Fd file(memfd_create("hawser-ceiling", MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), static_cast<off_t>(rounded)) != 0) {
    return base::errno_status("a memory file for the ceiling", errno);
  }
  void* base = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) return base::errno_status("mapping scratch memory for the ceiling", errno);
  madvise(base, rounded, MADV_HUGEPAGE);  // Only a wish: `allocate` has the same.
  auto* bytes = static_cast<std::byte*>(base);
  for (std::uint64_t at = 0; at < rounded; at += kPage) bytes[at] = std::byte{1};
  return ScratchArena(bytes, rounded);
}

ScratchArena::~ScratchArena() {
  if (base_ != nullptr) munmap(base_, size_);
}

std::vector<std::uint64_t> shuffled_offsets(std::uint64_t count, std::uint64_t block_bytes, std::uint64_t seed) {
  std::vector<std::uint64_t> offsets(count);
  for (std::uint64_t i = 0; i < count; ++i) offsets[i] = i * block_bytes;
  base::Rng(seed).shuffle(offsets);
  return offsets;
}

Result<Ceiling> copy_ceiling(const CeilingShape& shape) {
  const std::uint64_t count = std::max<std::uint64_t>(shape.bytes / shape.block_bytes, 1);
  const std::uint64_t bytes = count * shape.block_bytes;
  HAWSER_TRY_ASSIGN(const ScratchArena from, ScratchArena::create(bytes));
  HAWSER_TRY_ASSIGN(const ScratchArena to, ScratchArena::create(bytes));
  const auto sources = shuffled_offsets(count, shape.block_bytes, 1);
  const auto targets = shuffled_offsets(count, shape.block_bytes, 2);
  std::vector<base::CopyPiece> pieces(count);
  for (std::size_t i = 0; i < count; ++i) {
    pieces[i] = {to.base() + targets[i], from.base() + sources[i], shape.block_bytes};
  }
  Ceiling best;
  for (const CopyWay& way : copy_ways(shape.block_bytes, bytes, true)) {
    for (int pass = 0; pass < kPasses; ++pass) {
      const Instant start = Clock::steady().now();
      way.run(pieces);
      const double speed = rate(bytes, (Clock::steady().now() - start).count());
      if (speed > best.gb_per_s) best = {way.name, speed};
    }
  }
  return best;
}

Result<Ceiling> measure_ceiling(const std::string& backend, const CeilingShape& shape) {
  if (backend == "tcp") return tcp_ceiling(shape);
  if (backend == "shm" || backend == "auto") return copy_ceiling(shape);
  return Status(Code::kUnsupported, fmt::format("no raw loop bounds the backend '{}'", backend));
}

}  // namespace hawser::cli
