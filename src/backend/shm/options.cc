#include "backend/shm/options.h"

#include <bit>

#include "backend/params.h"
#include "backend/shm/control.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::shm {

Result<Options> read_options(const Params& params) {
  Options options;
  ParamReader read("shm", params);
  options.socket_dir = read.text("socket_dir", "");
  options.runtime_dir = read.text("runtime_dir", "");
  const std::uint64_t ring = read.size("ring_bytes", options.ring_bytes, {.min = kRingBytesMin, .max = kRingBytesMax});
  options.inline_bytes_max = read.size("inline_bytes_max", options.inline_bytes_max, {.max = 256 * 1024});
  options.map = read.flag("map", options.map);
  options.attach = read.flag("attach", options.attach);
  options.allow_attach = read.flag("allow_attach", options.allow_attach);
  options.membarrier = read.flag("membarrier", options.membarrier);
  options.hot_paths = static_cast<std::uint32_t>(read.count("hot_paths", options.hot_paths, {.min = 1, .max = 1024}));
  HAWSER_TRY(read.finish());
  if (!std::has_single_bit(ring)) {
    return Status(Code::kInvalid, base::format("shm: ring_bytes={} is no power of two", ring))
        .with_advice(base::format("use {} or {}", std::bit_floor(ring), std::bit_ceil(ring)));
  }
  options.ring_bytes = static_cast<std::uint32_t>(ring);
  options.in_force = read.in_force();
  options.warnings = read.warnings();
  return options;
}

}  // namespace hawser::backend::shm
