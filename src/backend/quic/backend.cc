#include <memory>
#include <utility>

#include "backend/quic/factory.h"
#include "backend/quic/network.h"
#include "backend/quic/options.h"
#include "backend/stream/port.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

using namespace quic;

/// First estimates for the planner, of a loopback connection.
constexpr double kLatencyNs = 25'000;
constexpr double kBytesPerNs = 1;
constexpr double kPieceNs = 60;

/// All that comes is found by a look, so looks are what latency is made of.
constexpr unsigned kLookTurns = 2;

Traits quic_traits() {
  Traits traits = stream::stream_traits("quic");
  traits.reaches.add(DeviceKind::kFile);  // Those of peers, which move them: see backend/stream/file_desk.h.
  traits.latency_ns = kLatencyNs;
  traits.bytes_per_ns = kBytesPerNs;
  traits.piece_ns = kPieceNs;
  return traits;
}

class QuicBackend final : public Backend {
 public:
  QuicBackend(const Context& context, QuicOptions options, QuicListeners listeners,
              std::shared_ptr<const TlsCredentials> credentials, std::shared_ptr<FdLedger> ledger)
      : context_(context),
        options_(std::move(options)),
        locator_(listeners.locator),
        listeners_(std::move(listeners)),
        credentials_(std::move(credentials)),
        ledger_(std::move(ledger)),
        warnings_(options_.warnings) {
    warnings_.insert(warnings_.end(), listeners_.warnings.begin(), listeners_.warnings.end());
  }

  const Traits& traits() const override { return traits_; }
  std::string address() const override { return to_string(locator_); }
  std::string readable_address() const override { return readable(locator_); }
  Status reachable(std::string_view peer_address) const override {
    if (peer_address == address()) {
      return Status(Code::kUnsupported, "quic does not lead to the agent itself")
          .with_advice("open the backend loopback");
    }
    HAWSER_TRY_ASSIGN(const Locator peer, parse_locator(peer_address));
    return places_from(peer, locator_.host, true).status();
  }
  Result<std::string> add_region(const RegionEntry&) override { return std::string(); }
  void remove_region(const RegionEntry&) override {}
  Result<std::unique_ptr<Port>> open_port() override {
    const Doorkeeper::Rules rules = {.secret = context_.identity.admission,
                                     .key = context_.keys->public_key(),
                                     .has_identity = options_.has_identity};
    HAWSER_TRY_ASSIGN(auto network, QuicNetwork::open(options_, ledger_, std::move(listeners_), credentials_, rules));
    return stream::make_port(
        context_,
        {.backend = "quic",
         .connections = options_.streams,
         .small_max = options_.small,
         .look_turns = kLookTurns,
         .listen = locator_.places.empty() ? std::string() : base::to_string(locator_.places.front())},
        std::move(network));
  }
  Params take_params() override { return std::exchange(options_.params, {}); }
  std::vector<std::string> warnings() const override { return warnings_; }
  void disown_after_fork() override { ledger_->close_all(); }

 private:
  const Context context_;
  QuicOptions options_;
  const Traits traits_ = quic_traits();
  const Locator locator_;
  QuicListeners listeners_;  ///< Until the port has them.
  const std::shared_ptr<const TlsCredentials> credentials_;
  const std::shared_ptr<FdLedger> ledger_;
  std::vector<std::string> warnings_;
};

Result<std::unique_ptr<Backend>> open_quic(const Context& context, const Params& params) {
  if (context.keys == nullptr) return Status(Code::kUnsupported, "this agent has no keys, which QUIC needs");
  HAWSER_TRY_ASSIGN(QuicOptions options, read_quic_options(params, context.security));
  options.has_identity = context.authenticator != nullptr;
  HAWSER_TRY_ASSIGN(auto credentials, TlsCredentials::make(*context.keys));
  auto ledger = std::make_shared<FdLedger>();
  HAWSER_TRY_ASSIGN(QuicListeners listeners, quic_listen(options, ledger));
  HAWSER_LOG(context.log, kInfo, "{}: quic {}", context.identity.name, listeners.chosen);
  return std::unique_ptr<Backend>(
      new QuicBackend(context, std::move(options), std::move(listeners), std::move(credentials), std::move(ledger)));
}

}  // namespace

// No rank: only who asks for it by name gets it.
Factory quic_factory() { return {.name = "quic", .default_rank = 0, .open = open_quic}; }

Result<std::string> quic_library() {
  HAWSER_TRY_ASSIGN(const Ngtcp2* library, ngtcp2());
  return library->version_text;
}

}  // namespace hawser::backend
