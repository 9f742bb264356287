#include "backend/loopback/factory.h"
#include "backend/loopback/port.h"
#include "base/try.h"

namespace hawser::backend {
namespace loopback {
namespace {

class LoopbackBackend final : public SelfBackend {
 public:
  LoopbackBackend(const Context& context, std::uint64_t inline_bytes_max, const ParamReader& read)
      : SelfBackend(context, kKind, read, read.warnings()) {
    traits_.inline_bytes_max = inline_bytes_max;
    traits_.quiesce_max = std::chrono::milliseconds(1);  // one turn
    traits_.latency_ns = 50;
    traits_.bytes_per_ns = 12;
    traits_.piece_ns = 15;
  }

  std::string readable_address() const override { return "this process"; }
  Result<std::unique_ptr<Port>> open_port() override {
    return std::unique_ptr<Port>(new LoopbackPort(context_, address(), traits_.inline_bytes_max));
  }
  void disown_after_fork() override {}
};

}  // namespace
}  // namespace loopback

Factory loopback_factory() {
  constexpr int kRank = 100;
  return {"loopback", kRank, [](const Context& context, const Params& params) -> Result<std::unique_ptr<Backend>> {
            ParamReader read("loopback", params);
            const std::uint64_t inline_bytes_max = read.size("inline_bytes_max", 64 * 1024, {.max = 256 * 1024});
            HAWSER_TRY(read.finish());
            return std::unique_ptr<Backend>(new loopback::LoopbackBackend(context, inline_bytes_max, read));
          }};
}

}  // namespace hawser::backend
