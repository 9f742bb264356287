// How fast this machine copies, and how near base/copy.h comes to the best way.
//
//   copy_bench [repeats]
//
// Columns are ways to copy, rows are shapes; a cell is the best of all repeats in GB/s (10^9 bytes/s). The ways take
// turns, so that a noisy moment hits all. `hawser` is what copy_pieces() chooses by itself; the last
// column is its share of the best other way. Memory is shared (memfd), as an agent's arenas are.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/copy.h"
#include "base/fd.h"
#include "base/rng.h"

namespace {

using hawser::base::CopyHint;
using hawser::base::CopyKernels;
using hawser::base::CopyPiece;

constexpr std::size_t kArenaSize = std::size_t{1} << 30;
constexpr std::size_t kWarmBytes = std::size_t{64} << 20;  // copied per measurement of a contiguous shape

struct Way {
  std::string name;
  void (*copy)(const CopyKernels* kernel, std::span<const CopyPiece> pieces, CopyHint hint);
  const CopyKernels* kernel;
};

struct Shape {
  std::string name;
  std::size_t size;       // of a piece
  std::size_t count;      // pieces; 1: contiguous and warm
  bool again;             // scattered: the same pieces each time, or fresh ones
  std::size_t shift = 0;  // the target begins so many bytes past a page, the source on one
};

void by_memcpy(const CopyKernels*, std::span<const CopyPiece> pieces, CopyHint) {
  for (const CopyPiece& piece : pieces) std::memcpy(piece.target, piece.source, piece.size);
}

#if defined(__x86_64__)
void by_movsb(const CopyKernels*, std::span<const CopyPiece> pieces, CopyHint) {
  for (CopyPiece piece : pieces) {
    asm volatile("rep movsb" : "+D"(piece.target), "+S"(piece.source), "+c"(piece.size) : : "memory");
  }
}
#endif

// Streams whatever the size is.
void by_kernel(const CopyKernels* kernel, std::span<const CopyPiece> pieces, CopyHint) {
  kernel->copy_pieces(pieces, {.total_bytes = UINT64_MAX, .scattered = true});
  hawser::base::stream_fence();
}

void by_cached(const CopyKernels* kernel, std::span<const CopyPiece> pieces, CopyHint hint) {
  for (const CopyPiece& piece : pieces) kernel->cached(piece, hint);
}

void by_choice(const CopyKernels*, std::span<const CopyPiece> pieces, CopyHint hint) {
  if (hawser::base::copy_pieces(pieces, hint)) hawser::base::stream_fence();
}

std::vector<Way> all_ways() {
  std::vector<Way> ways = {{"memcpy", by_memcpy, nullptr}};
#if defined(__x86_64__)
  ways.push_back({"rep movsb", by_movsb, nullptr});
#endif
  for (const CopyKernels* kernel : hawser::base::all_kernels()) {
    if (kernel->name == "memcpy") continue;
    ways.push_back({std::string(kernel->name), by_kernel, kernel});
    ways.push_back({std::string(kernel->name) + " c", by_cached, kernel});
  }
  ways.push_back({"hawser", by_choice, nullptr});
  return ways;
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes = {{"4K", 4 << 10, 1, true},    {"64K", 64 << 10, 1, true}, {"1M", 1 << 20, 1, true},
                               {"4M", 4 << 20, 1, true},    {"16M", 16 << 20, 1, true}, {"64M", 64 << 20, 1, true},
                               {"256M", 256 << 20, 1, true}};
  // `rep movsb` has bad cases, and memcpy may be made of it.
  shapes.push_back({"4K, 1 B past", 4 << 10, 1, true, 1});
  shapes.push_back({"16K, 1 B past", 16 << 10, 1, true, 1});
  shapes.push_back({"64K, 1 B past", 64 << 10, 1, true, 1});
  shapes.push_back({"64K, 33 B past", 64 << 10, 1, true, 33});
  shapes.push_back({"1M, 1 B past", 1 << 20, 1, true, 1});
  for (const std::size_t kib : {4, 16, 64}) {
    const std::string piece = std::to_string(kib) + "K";
    shapes.push_back({piece + " x1000", kib << 10, 1000, false});
    shapes.push_back({piece + " x1000 again", kib << 10, 1000, true});
    shapes.push_back({piece + " x8000", kib << 10, 8000, false});
  }
  return shapes;
}

std::byte* make_arena() {
  const hawser::base::Fd fd(::memfd_create("copy_bench", MFD_CLOEXEC));
  if (!fd.valid() || ::ftruncate(fd.get(), kArenaSize) != 0) std::abort();
  void* memory = ::mmap(nullptr, kArenaSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) std::abort();
  std::memset(memory, 1, kArenaSize);
  return static_cast<std::byte*>(memory);
}

class Bench {
 public:
  Bench() : source_(make_arena()), target_(make_arena()) {}

  double measure(const Way& way, const Shape& shape) {
    return shape.count == 1 ? warm(way, shape) : scattered(way, shape);
  }

  /// Of one large piece in parts, as backend/chunk_copy.cc may do it: `copy(target, source, kernel)` moves a block.
  template <typename Copy>
  double in_blocks(const CopyKernels& kernel, Copy copy) {
    const double start = now();
    for (std::size_t at = 0; at < kWarmBytes; at += kBlock) copy(target_ + at, source_ + at, kernel);
    hawser::base::stream_fence();
    return static_cast<double>(kWarmBytes) / (now() - start) / 1e9;
  }

  static constexpr std::size_t kBlock = 256 << 10;

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  double warm(const Way& way, const Shape& shape) {
    const CopyPiece piece{target_ + shape.shift, source_, shape.size};
    const std::size_t rounds = std::max<std::size_t>(1, kWarmBytes / shape.size);
    way.copy(way.kernel, {&piece, 1}, {});
    const double start = now();
    for (std::size_t i = 0; i < rounds; ++i) way.copy(way.kernel, {&piece, 1}, {});
    return static_cast<double>(shape.size * rounds) / (now() - start) / 1e9;
  }

  double scattered(const Way& way, const Shape& shape) {
    const std::vector<CopyPiece> pieces = random_pieces(shape);
    const CopyHint hint{.total_bytes = shape.size * shape.count, .scattered = true};
    if (shape.again) way.copy(way.kernel, pieces, hint);
    const double start = now();
    way.copy(way.kernel, pieces, hint);
    return static_cast<double>(shape.size * shape.count) / (now() - start) / 1e9;
  }

  // No block twice in a list, and no two that follow each other in memory.
  std::vector<CopyPiece> random_pieces(const Shape& shape) {
    std::vector<std::size_t> from(kArenaSize / shape.size);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = i;
    std::vector<std::size_t> to = from;
    rng_.shuffle(from);
    rng_.shuffle(to);
    std::vector<CopyPiece> pieces;
    for (std::size_t i = 0; i < std::min(shape.count, from.size()); ++i) {
      pieces.push_back({target_ + to[i] * shape.size, source_ + from[i] * shape.size, shape.size});
    }
    return pieces;
  }

  hawser::base::Rng rng_{1};
  std::byte* source_;
  std::byte* target_;
};

void print_table(const std::vector<Way>& ways, const std::vector<Shape>& shapes,
                 const std::vector<std::vector<double>>& best) {
  std::printf("%-16s", "GB/s");
  for (const Way& way : ways) std::printf("%11s", way.name.c_str());
  std::printf("%11s\n", "share");
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    std::printf("%-16s", shapes[s].name.c_str());
    double other = 0;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      std::printf("%11.1f", best[s][w]);
      if (w + 1 < ways.size()) other = std::max(other, best[s][w]);
    }
    std::printf("%11.2f\n", best[s].back() / other);
  }
}

// Steps of `step` bytes of each of the block's quarters.
void quarters_in_step(std::byte* target, const std::byte* source, const CopyKernels& kernel, std::size_t step) {
  constexpr std::size_t kWidth = hawser::base::kStreamWidth, kQuarter = Bench::kBlock / kWidth;
  for (std::size_t at = 0; at < kQuarter; at += step) {
    std::byte* targets[kWidth];
    const std::byte* sources[kWidth];
    for (std::size_t i = 0; i < kWidth; ++i) {
      targets[i] = target + i * kQuarter + at;
      sources[i] = source + i * kQuarter + at;
    }
    kernel.stream_four(targets, sources, step);
  }
}

void print_steps(Bench& bench, int repeats) {
  const CopyKernels& kernel = hawser::base::kernels();
  double whole = 0, steps = 0, parts = 0, one = 0;
  for (int round = 0; round < repeats; ++round) {
    whole = std::max(whole, bench.in_blocks(kernel, [](std::byte* to, const std::byte* from, const CopyKernels& k) {
      quarters_in_step(to, from, k, Bench::kBlock / hawser::base::kStreamWidth);
    }));
    steps = std::max(steps, bench.in_blocks(kernel, [](std::byte* to, const std::byte* from, const CopyKernels& k) {
      quarters_in_step(to, from, k, 8 << 10);
    }));
    parts = std::max(parts, bench.in_blocks(kernel, [](std::byte* to, const std::byte* from, const CopyKernels& k) {
      for (std::size_t at = 0; at < Bench::kBlock; at += 32 << 10) k.stream({to + at, from + at, 32 << 10});
    }));
    one = std::max(one, bench.in_blocks(kernel, [](std::byte* to, const std::byte* from, const CopyKernels& k) {
      k.stream_one(to, from, Bench::kBlock);
    }));
  }
  std::printf(
      "\n64M past the caches, by blocks of 256K, GB/s: quarters at once %.1f, 8K of each quarter a step %.1f, "
      "32K a step cut in four %.1f, one run %.1f\n",
      whole, steps, parts, one);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 7;
  const std::vector<Way> ways = all_ways();
  const std::vector<Shape> shapes = all_shapes();
  std::vector<std::vector<double>> best(shapes.size(), std::vector<double>(ways.size()));
  Bench bench;
  for (int round = 0; round < repeats; ++round) {
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      for (std::size_t w = 0; w < ways.size(); ++w)
        best[s][w] = std::max(best[s][w], bench.measure(ways[w], shapes[s]));
    }
  }
  std::printf("kernel chosen here: %.*s\n", static_cast<int>(hawser::base::kernels().name.size()),
              hawser::base::kernels().name.data());
  print_table(ways, shapes, best);
  print_steps(bench, repeats);
  return 0;
}
