#include <utility>

#include "backend/loopback/factory.h"
#include "backend/loopback/port.h"
#include "backend/params.h"
#include "base/bytes.h"
#include "base/try.h"

namespace hawser::backend {
namespace loopback {
namespace {

class LoopbackBackend final : public Backend {
 public:
  LoopbackBackend(const Context& context, std::uint64_t inline_bytes_max, const ParamReader& read)
      : context_(context), params_(read.in_force()), warnings_(read.warnings()) {
    traits_.name = "loopback";
    traits_.same_host_only = true;
    traits_.self_only = true;
    traits_.direct = true;
    traits_.lossless = true;
    traits_.chunk_pieces_max = 1024;
    traits_.inline_bytes_max = inline_bytes_max;
    traits_.quiesce_max = std::chrono::milliseconds(1);  // one turn
    traits_.latency_ns = 50;
    traits_.bytes_per_ns = 12;
    traits_.piece_ns = 15;
  }

  const Traits& traits() const override { return traits_; }
  std::string address() const override {
    std::string bytes;
    base::ByteWriter out(&bytes);
    out.id(context_.identity.incarnation);
    return bytes;
  }
  std::string readable_address() const override { return "this process"; }
  Status reachable(std::string_view peer_address) const override {
    if (peer_address == address()) return {};
    return Status(Code::kUnsupported, "loopback reaches this agent only");
  }
  Result<std::string> add_region(const RegionEntry&) override { return std::string(); }
  void remove_region(const RegionEntry&) override {}
  Result<std::unique_ptr<Port>> open_port() override {
    return std::unique_ptr<Port>(new LoopbackPort(context_, address(), traits_.inline_bytes_max));
  }
  Params params() const override { return params_; }
  std::vector<std::string> warnings() const override { return warnings_; }
  void disown_after_fork() override {}

 private:
  const Context context_;
  Traits traits_;
  const Params params_;
  const std::vector<std::string> warnings_;
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
