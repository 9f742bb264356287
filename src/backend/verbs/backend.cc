#include <algorithm>
#include <set>
#include <utility>

#include "backend/stream/port.h"
#include "backend/tcp/factory.h"
#include "backend/verbs/backend.h"
#include "backend/verbs/factory.h"
#include "backend/verbs/gpu/gpu_driver.h"
#include "backend/verbs/library/libibverbs.h"
#include "backend/verbs/port.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace verbs {
namespace {

/// First estimates for the planner.
constexpr double kLatencyNs = 4'000;
constexpr double kPieceNs = 60;
constexpr double kUnknownBytesPerNs = 1;
constexpr double kMbitPerByteNs = 8'000;
constexpr std::uint32_t kPiecesMax = 64;

Traits make_traits(const VerbsOptions& options, const std::vector<std::shared_ptr<Nic>>& nics) {
  Traits traits;
  traits.name = "verbs";
  traits.direct = true;
  traits.lets_go_slowly = true;
  if (std::ranges::all_of(nics, [](const auto& nic) { return nic->memory.refusal().ok(); })) {
    traits.reaches.add(DeviceKind::kCuda);
  }
  traits.carries_arrivals =
      options.pair.immediates > 0 && std::ranges::none_of(nics, [](const auto& nic) { return nic->is_srd(); });
  traits.chunk_bytes_max = options.stripe;
  traits.chunk_pieces_max = std::min(kPiecesMax, options.pair.send_depth / 2);
  for (const auto& nic : nics) {
    if (nic->is_srd()) traits.chunk_pieces_max = std::min(traits.chunk_pieces_max, nic->srd.send_depth / 2);
  }
  traits.quiesce_max = std::chrono::seconds(1);
  traits.latency_ns = kLatencyNs;
  traits.piece_ns = kPieceNs;
  traits.bytes_per_ns = 0;
  for (const auto& nic : nics) traits.bytes_per_ns += static_cast<double>(nic->port.mbit_per_s) / kMbitPerByteNs;
  if (traits.bytes_per_ns == 0) traits.bytes_per_ns = kUnknownBytesPerNs;
  return traits;
}

std::shared_ptr<Mlx5> mlx5_or_null() {
  Result<std::unique_ptr<Mlx5>> opened = open_mlx5();
  return opened ? std::shared_ptr<Mlx5>(*std::move(opened)) : nullptr;
}

/// The user's, and what goes wrong with it is told: regions go on by their allocations.
hawser::SegmentProvider told_segments(const Context& context) {
  if (!context.segments) return {};
  return [ask = context.segments, &log = context.log] {
    Result<std::vector<MemorySegment>> told = ask();
    if (!told) {
      HAWSER_LOG(log, kWarn, "verbs: segments are not told; those that are known stay, else allocations serve: {}",
                 told.error().to_string());
    }
    return told;
  };
}

class VerbsBackend final : public Backend {
 public:
  VerbsBackend(const Context& context, VerbsOptions options, std::vector<std::shared_ptr<Nic>> nics, TcpDoor door,
               Reopening reopening)
      : context_(context),
        options_(std::move(options)),
        nics_(std::move(nics)),
        traits_(make_traits(options_, nics_)),
        door_(std::move(door)),
        reopening_(std::move(reopening)),
        regions_(
            std::make_shared<Regions>(nics_, RegionsOptions{.relaxed_ordering = options_.relaxed_ordering,
                                                            .threads = options_.register_threads,
                                                            .segments = told_segments(context_),
                                                            .mlx5 = context_.segments ? mlx5_or_null() : nullptr})) {
    for (const ibv_context* each : contexts(nics_)) own(*each);
  }
  ~VerbsBackend() override {
    std::vector<std::shared_ptr<Nic>> all = nics_;
    const base::MutexLock lock(mutex_);
    all.insert(all.end(), returned_.begin(), returned_.end());
    for (const ibv_context* each : contexts(all)) {
      door_.ledger->remove(each->cmd_fd);
      door_.ledger->remove(each->async_fd);
    }
  }

  const Traits& traits() const override { return traits_; }
  std::string address() const override { return door_.address; }
  std::string readable_address() const override {
    std::string text;
    for (const auto& nic : nics_) text += (text.empty() ? "" : ", ") + nic->describe();
    text += "; handshake at " + door_.readable_address;
    std::string last;  // What ports have in common is told once.
    for (const auto& nic : nics_) {
      if (const std::string gpus = nic->memory.describe(); gpus != last) text += "; " + (last = gpus);
    }
    return text;
  }
  Status reachable(std::string_view peer_address) const override {
    HAWSER_TRY(door_.reachable(peer_address));
    const bool efa_alone = std::ranges::all_of(nics_, [](const auto& nic) { return nic->is_srd(); });
    return efa_alone && door_.is_same_host(peer_address) ? refuse_same_host("the peer") : Status();
  }
  Result<std::string> add_region(const RegionEntry& region) override { return regions_->add(region); }
  void remove_region(const RegionEntry& region) override { regions_->remove(region.index, region.generation); }
  void let_go(const RegionEntry& region) override {
    static_cast<void>(regions_->retire(region.index, region.generation));
  }
  std::string told(const RegionEntry& region) const override { return regions_->told(region); }
  Result<std::unique_ptr<Port>> open_port() override {
    stream::Network* network = door_.network.get();
    PortParts parts{.nics = nics_,
                    .regions = regions_,
                    .control = {},
                    .network = network,
                    .reopening = remembering(),
                    .host = this_boot()};
    parts.control = stream::make_port(
        context_, {.backend = "verbs", .connections = 1, .look_turns = 0, .listen = door_.first_place},
        std::move(door_.network));
    HAWSER_TRY_ASSIGN(std::unique_ptr<VerbsPort> port, VerbsPort::open(context_, options_, std::move(parts)));
    return std::unique_ptr<Port>(std::move(port));
  }
  Params take_params() override { return std::exchange(options_.params, {}); }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = options_.warnings;
    all.insert(all.end(), door_.warnings.begin(), door_.warnings.end());
    return all;
  }
  void disown_after_fork() override { door_.ledger->close_all(); }

 private:
  /// Of the devices: ports of one share it.
  static std::set<ibv_context*> contexts(std::span<const std::shared_ptr<Nic>> nics) {
    std::set<ibv_context*> all;
    for (const auto& nic : nics) all.insert(nic->domain->context());
    return all;
  }
  void own(const ibv_context& context) {
    door_.ledger->add(context.cmd_fd);
    door_.ledger->add(context.async_fd);
  }
  /// What it opens is this backend's, too. The port does not outlive the backend.
  Reopening remembering() {
    Reopening made = reopening_;
    if (!reopening_.open) return made;
    made.open = [this](const std::string& device, std::span<const std::uint8_t> ports) {
      Result<std::vector<std::shared_ptr<Nic>>> nics = reopening_.open(device, ports);
      if (!nics) return nics;
      for (const ibv_context* each : contexts(*nics)) own(*each);
      const base::MutexLock lock(mutex_);
      returned_.insert(returned_.end(), nics->begin(), nics->end());
      return nics;
    };
    return made;
  }

  const Context context_;
  VerbsOptions options_;
  const std::vector<std::shared_ptr<Nic>> nics_;
  const Traits traits_;
  TcpDoor door_;
  const Reopening reopening_;
  const std::shared_ptr<Regions> regions_;
  base::Mutex mutex_;
  /// Also those that a search gave up again: their descriptors stay until here.
  std::vector<std::shared_ptr<Nic>> returned_ HAWSER_GUARDED_BY(mutex_);
};

/// The driver, for who did not switch it off, or asks for a port near to a GPU. It is only loaded by that.
GpuAccess open_gpus(const VerbsOptions& options, const Hint& hint) {
  if (options.gpu_direct == GpuDirect::kOff && hint.kind != Hint::Kind::kCuda) return {};
  Result<std::unique_ptr<GpuDriver>> opened = open_cuda_driver();
  if (!opened) return {.missing = opened.error()};
  return {.driver = *std::move(opened)};
}

Result<std::unique_ptr<Backend>> open_verbs(const Context& context, const Params& params) {
  HAWSER_TRY_ASSIGN(VerbsOptions options, read_verbs_options(params));
  const std::vector<DeviceInfo> devices = read_devices(GidTables::kLeave);
  if (devices.empty()) {
    return Status(Code::kUnsupported, "this host has no RDMA device")
        .with_advice("`hawser doctor` tells what is missing; docs/rdma.md how to set up Soft-RoCE");
  }
  HAWSER_TRY_ASSIGN(std::unique_ptr<Verbs> library, open_libibverbs());
  const std::shared_ptr<Verbs> verbs = std::move(library);
  HAWSER_TRY_ASSIGN(const Hint hint, parse_hint(options.near));
  const GpuAccess gpus = open_gpus(options, hint);
  HAWSER_TRY_ASSIGN(auto nics, open_nics(verbs, devices, gpus, &options));
  HAWSER_TRY_ASSIGN(TcpDoor door, open_tcp_door(options.control, context));
  HAWSER_LOG(context.log, kInfo, "{}: verbs: the handshake {}", context.identity.name, door.chosen);
  Reopening again = reopening(verbs, options, gpus, [] { return read_devices(GidTables::kLeave); });
  return make_backend(context, std::move(options), std::move(nics), std::move(door), std::move(again));
}

}  // namespace

std::unique_ptr<Backend> make_backend(const Context& context, VerbsOptions options,
                                      std::vector<std::shared_ptr<Nic>> nics, TcpDoor door, Reopening reopening) {
  return std::make_unique<VerbsBackend>(context, std::move(options), std::move(nics), std::move(door),
                                        std::move(reopening));
}

Reopening reopening(std::shared_ptr<Verbs> verbs, VerbsOptions options, GpuAccess gpus,
                    std::function<std::vector<DeviceInfo>()> list) {
  options.near.clear();
  const auto open = [verbs = std::move(verbs), options = std::move(options), gpus = std::move(gpus),
                     list = std::move(list)](const std::string& device, std::span<const std::uint8_t> ports) {
    VerbsOptions wanted = options;
    wanted.devices.clear();
    for (const std::uint8_t port : ports) wanted.devices.push_back(base::format("{}:{}", device, port));
    return open_nics(verbs, list(), gpus, &wanted);
  };
  return {.open = open};
}

}  // namespace verbs

Factory verbs_factory() { return {.name = "verbs", .default_rank = 15, .open = verbs::open_verbs}; }

}  // namespace hawser::backend
