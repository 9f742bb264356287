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
  std::size_t size;   // of a piece
  std::size_t count;  // pieces; 1: contiguous and warm
  bool again;         // scattered: the same pieces each time, or fresh ones
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

void by_choice(const CopyKernels*, std::span<const CopyPiece> pieces, CopyHint hint) {
  if (hawser::base::copy_pieces(pieces, hint)) hawser::base::stream_fence();
}

std::vector<Way> all_ways() {
  std::vector<Way> ways = {{"memcpy", by_memcpy, nullptr}};
#if defined(__x86_64__)
  ways.push_back({"rep movsb", by_movsb, nullptr});
#endif
  for (const CopyKernels* kernel : hawser::base::all_kernels()) {
    if (kernel->name != "memcpy") ways.push_back({std::string(kernel->name), by_kernel, kernel});
  }
  ways.push_back({"hawser", by_choice, nullptr});
  return ways;
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes = {{"4K", 4 << 10, 1, true},    {"64K", 64 << 10, 1, true}, {"1M", 1 << 20, 1, true},
                               {"4M", 4 << 20, 1, true},    {"16M", 16 << 20, 1, true}, {"64M", 64 << 20, 1, true},
                               {"256M", 256 << 20, 1, true}};
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

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  double warm(const Way& way, const Shape& shape) {
    const CopyPiece piece{target_, source_, shape.size};
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
  return 0;
}
