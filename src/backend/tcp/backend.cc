#include <algorithm>
#include <memory>
#include <utility>

#include "backend/stream/port.h"
#include "backend/tcp/factory.h"
#include "backend/tcp/network.h"
#include "backend/tcp/options.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

/// First estimates for the planner, of a loopback connection (NOTES.md).
constexpr double kLatencyNs = 12'000;
constexpr double kBytesPerNs = 5;
constexpr double kPieceNs = 60;

Traits tcp_traits() {
  Traits traits = stream::stream_traits("tcp");
  traits.quits_at_once = true;            // The kernel has copied what was sent.
  traits.reaches.add(DeviceKind::kFile);  // Those of peers, which move them: see backend/stream/file_desk.h.
  traits.latency_ns = kLatencyNs;
  traits.bytes_per_ns = kBytesPerNs;
  traits.piece_ns = kPieceNs;
  return traits;
}

std::string first_place_of(const Locator& locator) {
  return locator.places.empty() ? std::string() : base::to_string(locator.places.front());
}

class TcpBackend final : public Backend {
 public:
  TcpBackend(const Context& context, TcpOptions options, TcpListeners listeners, OwnTls tls)
      : context_(context),
        options_(std::move(options)),
        locator_(std::move(listeners.locator)),
        listeners_(std::move(listeners.sockets)),
        tls_(std::move(tls)),
        warnings_(options_.warnings) {
    warnings_.insert(warnings_.end(), listeners.warnings.begin(), listeners.warnings.end());
    for (const base::Fd& listener : listeners_) ledger_->add(listener.get());
  }

  const Traits& traits() const override { return traits_; }
  std::string address() const override { return to_string(locator_); }
  std::string readable_address() const override { return readable(locator_); }
  Status reachable(std::string_view peer_address) const override {
    if (peer_address == address()) {
      return Status(Code::kUnsupported, "tcp does not lead to the agent itself")
          .with_advice("open the backend loopback");
    }
    HAWSER_TRY_ASSIGN(const Locator peer, parse_locator(peer_address));
    return places_from(peer, locator_.host, options_.beyond_host).status();
  }
  Result<std::string> add_region(const RegionEntry&) override { return std::string(); }
  void remove_region(const RegionEntry&) override {}
  Result<std::unique_ptr<Port>> open_port() override {
    HAWSER_TRY_ASSIGN(auto network,
                      TcpNetwork::open(options_, ledger_, std::exchange(listeners_, {}), locator_.host, tls_));
    return stream::make_port(context_,
                             {.backend = "tcp",
                              .connections = options_.connections,
                              .small_max = options_.small,
                              .listen = first_place_of(locator_)},
                             std::move(network));
  }
  Params take_params() override { return std::exchange(options_.params, {}); }
  std::vector<std::string> warnings() const override { return warnings_; }
  void disown_after_fork() override { ledger_->close_all(); }

 private:
  const Context context_;
  TcpOptions options_;
  const Traits traits_ = tcp_traits();
  const Locator locator_;
  std::vector<base::Fd> listeners_;  ///< Until the port has them.
  const OwnTls tls_;
  std::shared_ptr<FdLedger> ledger_ = std::make_shared<FdLedger>();
  std::vector<std::string> warnings_;
};

/// Where TLS will be needed for sure GnuTLS is opened now, so that its absence is told now; else with the first peer
/// on another host.
Result<OwnTls> open_tls(const Context& context, const TcpOptions& options) {
  OwnTls tls = {
      .keys = context.keys, .secret = context.identity.admission, .has_identity = context.authenticator != nullptr};
  const bool is_local = std::ranges::all_of(options.listen, [](const auto& each) { return base::is_loopback(each); });
  const bool is_needed =
      tls.has_identity || options.security == Security::kEncrypt || (options.security != Security::kNone && !is_local);
  if (!is_needed) return tls;
  tls.source = std::make_shared<TlsSource>(tls.keys, tls.secret, tls.has_identity);
  HAWSER_TRY(tls.source->prepare());
  return tls;
}

Result<std::unique_ptr<Backend>> open_tcp(const Context& context, const Params& params) {
  HAWSER_TRY_ASSIGN(TcpOptions options, read_tcp_options(params, context.security, Carries::kAll));
  HAWSER_TRY_ASSIGN(auto tls, open_tls(context, options));
  HAWSER_TRY_ASSIGN(TcpListeners listeners, tcp_listen(options));
  listeners.locator.is_covered = listeners.locator.is_covered || tls.has_identity;
  HAWSER_LOG(context.log, kInfo, "{}: tcp {}", context.identity.name, listeners.chosen);
  options.listen = {};  // Thousands of agents share a process: what only opening needs is not kept.
  options.left_out = {};
  return std::unique_ptr<Backend>(new TcpBackend(context, std::move(options), std::move(listeners), std::move(tls)));
}

}  // namespace

Result<TcpDoor> open_tcp_door(const Params& params, const Context& context) {
  HAWSER_TRY_ASSIGN(const TcpOptions options, read_tcp_options(params, context.security, Carries::kControl));
  HAWSER_TRY_ASSIGN(auto tls, open_tls(context, options));
  HAWSER_TRY_ASSIGN(TcpListeners listeners, tcp_listen(options));
  listeners.locator.is_covered = listeners.locator.is_covered || tls.has_identity;
  TcpDoor door;
  door.ledger = std::make_shared<FdLedger>();
  for (const base::Fd& listener : listeners.sockets) door.ledger->add(listener.get());
  door.address = to_string(listeners.locator);
  door.readable_address = readable(listeners.locator);
  door.chosen = listeners.chosen;
  door.first_place = first_place_of(listeners.locator);
  door.warnings = options.warnings;
  door.warnings.insert(door.warnings.end(), listeners.warnings.begin(), listeners.warnings.end());
  const std::uint64_t host = listeners.locator.host;
  door.reachable = [own = door.address, host, beyond = options.beyond_host](std::string_view peer_address) -> Status {
    if (peer_address == own) {
      return Status(Code::kUnsupported, "that is this agent itself").with_advice("open the backend loopback");
    }
    HAWSER_TRY_ASSIGN(const Locator peer, parse_locator(peer_address));
    return places_from(peer, host, beyond).status();
  };
  door.is_same_host = [host](std::string_view peer_address) {
    const Result<Locator> peer = parse_locator(peer_address);
    return peer && peer->host == host;
  };
  HAWSER_TRY_ASSIGN(door.network,
                    TcpNetwork::open(options, door.ledger, std::move(listeners.sockets), host, std::move(tls)));
  return door;
}

Factory tcp_factory() { return {.name = "tcp", .default_rank = 10, .open = open_tcp}; }

}  // namespace hawser::backend
