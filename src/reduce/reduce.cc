#include "reduce/reduce.h"

#include <array>

#include "base/cpu_features.h"
#include "reduce/kernels.h"

namespace hawser::reduce {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<TypeFacts, kDataTypes> kTypes = {{{"f64", 8},
                                                       {"f32", 4},
                                                       {"f16", 2},
                                                       {"bf16", 2},
                                                       {"f8e4m3", 1},
                                                       {"f8e5m2", 1},
                                                       {"i8", 1},
                                                       {"i16", 2},
                                                       {"i32", 4},
                                                       {"i64", 8},
                                                       {"u8", 1},
                                                       {"u16", 2},
                                                       {"u32", 4},
                                                       {"u64", 8},
                                                       {"bool", 1}}};
constexpr std::array<std::string_view, kReduceOps> kOps = {"sum", "prod", "min", "max", "avg", "and", "or", "xor"};

}  // namespace

namespace {

struct Available {
  std::array<const Kernels*, 3> kernels{};
  std::size_t count = 0;
  void add(const Kernels& kernel) { kernels[count++] = &kernel; }
};

Available find_available() {
  Available found;
#if defined(__x86_64__)
  // Wide registers slow the core down on Intel's processors before Ice Lake, which lack VBMI2.
  const base::CpuFeatures& cpu = base::cpu_features();
  const bool has_avx2 = cpu.avx2 && cpu.f16c;
  const bool has_wide = has_avx2 && cpu.avx512f && cpu.avx512bw && cpu.avx512vl && cpu.avx512dq;
  const bool is_wide_cheap = has_wide && cpu.avx512vbmi2;
  if (is_wide_cheap) found.add(kAvx512Kernels);
  if (has_avx2) found.add(kAvx2Kernels);
  if (has_wide && !is_wide_cheap) found.add(kAvx512Kernels);
#endif
  found.add(kPortableKernels);
  return found;
}

const Available& available() noexcept {
  static const Available found = find_available();
  return found;
}

}  // namespace

const Kernels& kernels() noexcept { return *available().kernels[0]; }

std::span<const Kernels* const> usable_kernels() noexcept {
  return std::span(available().kernels).first(available().count);
}

void finish(DataType type, ReduceOp op, void* data, std::size_t count, std::uint64_t ranks) {
  if (op == ReduceOp::kAvg) kernels().divide[static_cast<std::size_t>(type)](data, count, ranks);
}

}  // namespace hawser::reduce

HAWSER_NAMESPACE_BEGIN

// A number from outside may be none of them.
std::size_t size_of(DataType type) {
  const auto at = static_cast<std::size_t>(type);
  return at < reduce::kTypes.size() ? reduce::kTypes[at].size : 0;
}

std::string_view to_string(DataType type) {
  const auto at = static_cast<std::size_t>(type);
  return at < reduce::kTypes.size() ? reduce::kTypes[at].name : "unknown";
}

std::string_view to_string(ReduceOp op) {
  const auto at = static_cast<std::size_t>(op);
  return at < reduce::kOps.size() ? reduce::kOps[at] : "unknown";
}

bool is_accepted(DataType type, ReduceOp op) {
  const bool is_known = static_cast<std::size_t>(type) < kDataTypes && static_cast<std::size_t>(op) < kReduceOps;
  return is_known && reduce::combine_for(type, op) != nullptr;
}

HAWSER_NAMESPACE_END
