#include "ceilings.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/copy.h"
#include "base/fd.h"
#include "cli/bench/cores.h"
#include "library.h"

namespace nixl_bench {
namespace {

double median_of(const Slice& slice, const std::function<void(std::size_t)>& operation) {
  Samples samples;
  operation(0);
  for (std::size_t i = 1; slice.goes_on(samples.size()); ++i) {
    const std::int64_t begin = now_ns();
    operation(i);
    samples.add(now_ns() - begin);
  }
  return samples.timing().value;
}

/// All blocks of one window, `batch` in each call.
void copy_foreign(const Measurement& measurement, const ForeignMemory& foreign, std::byte* own, const Blocks& blocks,
                  std::size_t window, std::size_t batch) {
  const Shape& shape = measurement.shape;
  std::vector<iovec> local(batch), remote(batch);
  for (std::size_t done = 0; done < shape.count;) {
    const std::size_t now = std::min<std::size_t>(batch, shape.count - done);
    for (std::size_t i = 0; i < now; ++i) {
      const std::size_t at = window * shape.count + done + i;
      local[i] = {own + blocks.local[at], shape.size};
      remote[i] = {reinterpret_cast<void*>(foreign.base + blocks.remote[at]), shape.size};
    }
    const auto call = measurement.is_write ? ::process_vm_writev : ::process_vm_readv;
    const ssize_t moved = call(foreign.pid, local.data(), now, remote.data(), now, 0);
    if (moved != static_cast<ssize_t>(now * shape.size)) throw Failure("process_vm moved less than it was given");
    done += now;
  }
}

}  // namespace

Ceilings::~Ceilings() {
  if (own_ != nullptr) ::munmap(own_, arena_);
  if (shared_ != nullptr) ::munmap(shared_, arena_);
}

void Ceilings::map_arenas() {
  if (own_ != nullptr) return;
  const hawser::base::Fd file(::memfd_create("nixl_capi_bench", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(arena_)) != 0) throw Failure("no memory file");
  void* const own = ::mmap(nullptr, arena_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const shared = ::mmap(nullptr, arena_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (own == MAP_FAILED || shared == MAP_FAILED) throw Failure("no memory for the ceilings");
  own_ = static_cast<std::byte*>(own);
  shared_ = static_cast<std::byte*>(shared);
  std::memset(own_, 1, arena_);
  std::memset(shared_, 2, arena_);
}

double Ceilings::foreign_copy(const Measurement& measurement, const ForeignMemory& foreign, double seconds) {
  const Blocks blocks(measurement.shape, arena_);
  double best = std::numeric_limits<double>::max();
  for (const std::size_t batch : {std::size_t{64}, std::size_t{1000}}) {
    best = std::min(best, median_of(Slice(seconds / 2), [&](std::size_t i) {
                      copy_foreign(measurement, foreign, own_, blocks, i % blocks.windows, batch);
                    }));
    if (measurement.shape.count <= batch) break;
  }
  return best;
}

double Ceilings::mapped_copy(const Measurement& measurement, double seconds) {
  const Shape& shape = measurement.shape;
  const Blocks blocks(shape, arena_);
  const hawser::base::CopyHint hint{.total_bytes = shape.bytes(), .scattered = shape.count > 1};
  std::vector<hawser::base::CopyPiece> pieces(shape.count);
  const auto run = [&](bool plain) {
    return median_of(Slice(seconds / 2), [&](std::size_t operation) {
      const std::size_t first = operation % blocks.windows * shape.count;
      for (std::size_t i = 0; i < shape.count; ++i) {
        std::byte* const target = shared_ + blocks.remote[first + i];
        std::byte* const source = own_ + blocks.local[first + i];
        pieces[i] = measurement.is_write ? hawser::base::CopyPiece{target, source, shape.size}
                                         : hawser::base::CopyPiece{source, target, shape.size};
        if (plain) std::memcpy(pieces[i].target, pieces[i].source, shape.size);
      }
      if (!plain && hawser::base::copy_pieces(pieces, hint)) hawser::base::stream_fence();
    });
  };
  return std::min(run(true), run(false));
}

std::map<std::string, double> Ceilings::measure(const Measurement& measurement, const ForeignMemory& foreign,
                                                double seconds) {
  const Shape& shape = measurement.shape;
  switch (measurement.bound) {
    case Bound::kNone:
      return {};
    case Bound::kCopy: {
      map_arenas();
      hawser::cli::bench::pin_to(cores_[0]);
      const std::map<std::string, double> found = {{kCma, foreign_copy(measurement, foreign, seconds)},
                                                   {kMapped, mapped_copy(measurement, seconds)}};
      hawser::cli::bench::unpin();
      return found;
    }
    case Bound::kStream:
      return {{kStream, std::min(raw_stream_ns(shape.bytes(), 1, cores_, seconds / 2),
                                 raw_stream_ns(shape.bytes(), 2, cores_, seconds / 2))}};
    case Bound::kRoundTrip:
      return {{kStream, raw_round_trip_ns(shape.bytes(), cores_, seconds)}};
  }
  return {};
}

}  // namespace nixl_bench
