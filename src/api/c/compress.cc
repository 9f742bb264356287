// The C ABI of worlds: compressors.

#include <algorithm>
#include <string>
#include <vector>

#include "api/c/world_objects.h"

namespace hawser::api {
namespace {

Result<Compressor> made(const char* call, const hawser_compressor_options& options) {
  const bool feeds_back = (options.flags & HAWSER_COMPRESSOR_FORGETS) == 0;
  switch (options.kind) {
    case HAWSER_TOP_K:
      return Compressor::top_k(options.ratio, feeds_back);
    case HAWSER_RANDOM_K:
      return Compressor::random_k(options.ratio, options.seed, feeds_back);
    case HAWSER_INT8:
      return Compressor::int8(feeds_back);
    case HAWSER_FP8_E4M3:
      return Compressor::fp8(DataType::kFloat8E4M3, feeds_back);
    case HAWSER_FP8_E5M2:
      return Compressor::fp8(DataType::kFloat8E5M2, feeds_back);
    default:
      return invalid(call, "kind = " + std::to_string(options.kind) + " is none of HAWSER_TOP_K to HAWSER_FP8_E5M2");
  }
}

}  // namespace

Result<Compressor> compressor_of(const char* call, const hawser_operation_options& options) {
  if (options.compressor.id == 0) return Compressor();
  HAWSER_TRY_ASSIGN(const auto its, find<CompressorObject>(call, options.compressor));
  return its->compressor;
}

}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_compressor_open(const hawser_compressor_options* options, hawser_compressor* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, options, "options"));
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const hawser_compressor_options given, options_of(call, "hawser_compressor_options", options));
    constexpr std::uint32_t kFlags = HAWSER_COMPRESSOR_FORGETS;
    if ((given.flags & ~kFlags) != 0)
      return invalid(call, "flags " + std::to_string(given.flags) + " has unknown bits");
    HAWSER_TRY_ASSIGN(Compressor compressor, made(call, given));
    return give_handle(call, out, std::make_unique<CompressorObject>(std::move(compressor)));
  });
}

int hawser_compressor_residual(hawser_compressor compressor, float* out, size_t capacity, size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, capacity, "out"));
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<CompressorObject>(call, compressor));
    const std::vector<float> residual = its->compressor.residual();
    std::copy_n(residual.begin(), std::min(capacity, residual.size()), out);
    *count = residual.size();
    return {};
  });
}

int hawser_compressor_reset(hawser_compressor compressor) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<CompressorObject>(call, compressor));
    return its->compressor.reset();
  });
}

int hawser_compressor_release(hawser_compressor compressor) { return release<CompressorObject>(__func__, compressor); }
