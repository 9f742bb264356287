#include "backend/shm/backend.h"

#include <sys/prctl.h>
#include <unistd.h>
#include <array>

#include <utility>

#include "backend/shm/binding.h"
#include "backend/shm/factory.h"
#include "backend/shm/port.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace shm {
namespace {

Traits make_traits(const Options& options) {
  Traits traits;
  traits.name = "shm";
  traits.same_host_only = true;
  traits.direct = true;
  traits.checks_holder = true;
  traits.lossless = true;
  traits.chunk_bytes_max = 1u << 20;
  traits.chunk_pieces_max = kCrossPiecesMax;
  traits.inline_bytes_max = options.inline_bytes_max;
  traits.quiesce_max = std::chrono::milliseconds(1);  // one turn
  traits.latency_ns = 100;
  traits.bytes_per_ns = 10;
  traits.piece_ns = 15;
  return traits;
}

}  // namespace

Result<std::unique_ptr<Backend>> ShmBackend::open(const Context& context, Options options) {
  std::unique_ptr<ShmBackend> backend(new ShmBackend(context, std::move(options)));
  const Options& chosen = backend->options_;
  backend->traits_ = make_traits(chosen);
  HAWSER_TRY_ASSIGN(backend->boot_, boot_id());
  backend->probe_value_ = base::random_id128();
  backend->probe_ = {reinterpret_cast<std::uint64_t>(&backend->probe_value_), backend->probe_value_};
  HAWSER_TRY_ASSIGN(backend->gates_, Gates::make(backend->forks_, chosen.membarrier));
  HAWSER_TRY_ASSIGN(backend->place_, Place::open({chosen.socket_dir, chosen.runtime_dir}, context.identity.incarnation,
                                                 backend->forks_));
  if (!backend->place_->warning().empty()) {
    HAWSER_LOG(context.log, kWarn, "{}: {}", context.identity.name, backend->place_->warning());
  }
  if (chosen.allow_attach) ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // without Yama: nothing to allow
  return std::unique_ptr<Backend>(std::move(backend));
}

std::string ShmBackend::address() const { return encode(Address{boot_, ::geteuid(), place_->path()}); }

Status ShmBackend::reachable(std::string_view peer_address) const {
  HAWSER_TRY_ASSIGN(const Address address, decode_address(peer_address));
  return reach(address, boot_);
}

Result<std::string> ShmBackend::add_region(const RegionEntry& region) {
  CardKind kind = CardKind::kNone;
  if (region.device.kind == DeviceKind::kHost && region.index < kGateCount) {
    HAWSER_TRY(gates_->open(region.index, region.generation));
    const auto file = options_.map ? shared_file(region) : std::nullopt;
    kind = !file ? CardKind::kForeign : (file->head | file->tail) != 0 ? CardKind::kAdopted : CardKind::kArena;
  }
  return std::string(1, static_cast<char>(kind));
}

void ShmBackend::remove_region(const RegionEntry& region) {
  gates_->shut(std::array{RegionId{region.index, region.generation}}, true);
}

Result<std::unique_ptr<Port>> ShmBackend::open_port() {
  return ShmPort::make({context_, options_, forks_, *gates_, *place_, probe_, boot_});
}

}  // namespace shm

Factory shm_factory() {
  constexpr int kRank = 90;  // the fastest there is, after loopback
  return {"shm", kRank, [](const Context& context, const Params& params) -> Result<std::unique_ptr<Backend>> {
            HAWSER_TRY_ASSIGN(shm::Options options, shm::read_options(params));
            return shm::ShmBackend::open(context, std::move(options));
          }};
}

}  // namespace hawser::backend
