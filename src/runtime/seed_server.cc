#include "runtime/seed_server.h"

#include <algorithm>
#include <chrono>

#include "agent/inner.h"
#include "base/abandon.h"
#include "base/address.h"
#include "base/quantity.h"
#include "base/try.h"
#include "identity/files.h"

namespace hawser::runtime {
namespace {

constexpr Duration kServeLook = std::chrono::milliseconds(50);  ///< Until it sees that it is to end.
constexpr std::uint32_t kServeCredit = 64;                      ///< Requests of one peer that wait to be read.
constexpr std::size_t kAnswersMax = 4096;

/// "10.0.0.1:7000, [::1]:7000 (lo)": each without what stands behind it.
std::vector<std::string> places_of(std::string_view readable) {
  std::vector<std::string> places;
  while (!readable.empty()) {
    const std::size_t comma = readable.find(',');
    std::string_view one = readable.substr(0, comma);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    places.emplace_back(one.substr(0, one.find(' ')));
    readable = comma == std::string_view::npos ? std::string_view() : readable.substr(comma + 1);
  }
  return places;
}

bool leaves_host(const std::string& place) {
  const Result<base::HostPort> split = base::parse_host_port(place);
  const Result<base::SocketAddress> address =
      split ? base::numeric_address(*split) : Result<base::SocketAddress>(split.error());
  return address && !base::is_loopback(*address);
}

}  // namespace

void add_seed_backend(AgentOptions& options) {
  const auto is_tcp = [](const BackendSpec& spec) { return base::equal_ignoring_case(spec.name, "tcp"); };
  if (!options.backends.empty() && std::ranges::none_of(options.backends, is_tcp)) options.backends.push_back(tcp());
}

Result<std::unique_ptr<SeedServer>> SeedServer::open(AgentOptions options, std::optional<identity::WorldToken> token) {
  if (options.name.empty()) options.name = identity::name_beneath(options.identity.folder, "seed");
  options.driven = true;  // Its thread turns it all the time, as a driver would.
  options.directory = nullptr;
  options.backend_params["tcp"].try_emplace("listen", "auto");
  add_seed_backend(options);
  Result<Agent> opened =
      token ? agent::inner::open_as(std::move(options), {.key = token->seed_key(), .admission = token->admission()})
            : Agent::open(std::move(options));
  if (!opened) return opened.error();
  Agent agent = std::move(*opened);
  HAWSER_TRY(agent.require_backend("tcp"));
  HAWSER_TRY(agent.open_channel(wire::kSeedChannel, kServeCredit));
  std::unique_ptr<SeedServer> server(new SeedServer(std::move(agent), std::move(token)));
  server->thread_ = std::thread([its = server.get()] { its->run(); });
  return server;
}

Result<std::unique_ptr<SeedServer>> serve_at(std::string_view address, AgentOptions options,
                                             const std::optional<identity::WorldToken>& token) {
  const Result<base::HostPort> place = base::parse_host_port(address);
  if (!place) {
    return Status(Code::kInvalid, "World::open: rank 0 cannot serve the seed at '" + std::string(address) + "'")
        .because(place.error())
        .with_advice("give HOST:PORT, of the host that rank 0 is on");
  }
  options.name.clear();
  options.status_page = "off";
  options.metrics.clear();
  Params& tcp = options.backend_params["tcp"];
  tcp["listen"] = "auto";
  tcp["port"] = std::to_string(place->port);
  Result<std::unique_ptr<SeedServer>> server = SeedServer::open(std::move(options), token);
  if (server) return server;
  return Status(server.error().code(), "World::open: rank 0 cannot serve the seed at " + std::string(address))
      .because(server.error());
}

SeedServer::~SeedServer() {
  if (process_ != ::getpid()) {  // In a forked child there is no such thread to join.
    base::abandon(thread_);
    return;
  }
  ends_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

std::string SeedServer::address(const std::string& host) const {
  for (const BackendReport& report : agent_.backends()) {
    if (report.name != "tcp") continue;
    const std::vector<std::string> places = places_of(report.address);
    if (places.empty()) return {};
    const auto beyond = std::ranges::find_if(places, leaves_host);
    std::string place = beyond != places.end() ? *beyond : places.front();
    if (!host.empty()) {
      const Result<base::HostPort> split = base::parse_host_port(place);
      if (split) place = base::to_string(base::HostPort{.host = host, .port = split->port});
    }
    const std::string ticket = token_ ? std::string() : agent_.ticket();  // Ranks make it from the token.
    return std::string(agent_.name()) + "@" + place + (ticket.empty() ? "" : "#" + ticket);
  }
  return {};
}

void SeedServer::run() {
  while (!ends_.load(std::memory_order_acquire)) {
    (void)agent_.wait(kServeLook);
    // Ends first: a rank that tries again, or its successor, finds its number free.
    while (const std::optional<PeerEvent> event = agent_.take_event()) {
      if (event->kind != PeerEvent::Kind::kDown) continue;
      table_.forget(event->peer.incarnation());
      peers_.erase(event->peer.incarnation());
      proven_.erase(event->peer.incarnation());
    }
    while (const std::optional<Message> message = agent_.take_message(wire::kSeedChannel)) serve(*message);
    send_waiting();
  }
}

void SeedServer::serve(const Message& message) {
  if (message.peer.state() == PeerState::kDown) return;  // Nothing would ever take back what it gets now.
  const auto bytes = std::as_bytes(std::span(message.bytes.data(), message.bytes.size()));
  const Result<wire::SeedMessage> request = wire::decode_seed(bytes);
  if (!request || request->kind == wire::SeedKind::kAnswer) return;  // Nobody whom an answer would help.
  const Incarnation from = message.peer.incarnation();
  peers_[from] = message.peer;
  if (request->kind == wire::SeedKind::kProve) return answer(from, request->id, check_proof(from, request->value));
  if (token_ && !proven_.contains(from)) {
    return answer(from, request->id, Status(Code::kDenied, "this seed serves ranks that prove its token"));
  }
  if (request->kind == wire::SeedKind::kGet) {
    Result<std::optional<std::string>> value = table_.get(request->key, {from, request->id});
    if (!value) return answer(from, request->id, value.error());
    if (value->has_value()) answer(from, request->id, std::move(**value));
    return;
  }
  std::vector<SeedWaiter> waiters;
  const Status set =
      table_.set(request->key, request->value, {.peer = from, .name = std::string(message.peer.name())}, &waiters);
  answer(from, request->id, set.ok() ? Result<std::string>(std::string()) : Result<std::string>(set));
  for (const SeedWaiter& each : waiters) answer(each.peer, each.id, std::string(request->value));
}

/// Its own proof in return. kDenied: the rank has another token.
Result<std::string> SeedServer::check_proof(const Incarnation& rank, std::string_view proof) {
  if (!token_) return Status(Code::kDenied, "this seed has no token");
  const auto its = std::as_bytes(std::span(rank.bytes));
  const Incarnation own = agent_.incarnation();
  const auto ours = std::as_bytes(std::span(own.bytes));
  const auto shown = std::as_bytes(std::span(proof.data(), proof.size()));
  if (!token_->is_proof(shown, identity::WorldToken::Role::kRank, its, ours)) {
    return Status(Code::kDenied, "this rank's token is not the seed's");
  }
  proven_.insert(rank);
  const identity::WorldToken::Mac answer = token_->prove(identity::WorldToken::Role::kSeed, its, ours);
  return std::string(reinterpret_cast<const char*>(answer.data()), answer.size());
}

void SeedServer::answer(const Incarnation& peer, std::uint64_t id, const Result<std::string>& value) {
  constexpr std::size_t kWhyMax = 1024;
  const std::string why = value ? std::string() : std::string(value.error().message().substr(0, kWhyMax));
  std::string bytes = wire::encode(wire::SeedMessage{.kind = wire::SeedKind::kAnswer,
                                                     .id = id,
                                                     .key = {},
                                                     .value = value ? std::string_view(*value) : std::string_view(why),
                                                     .code = value ? Code::kOk : value.error().code()});
  if (waiting_.size() == kAnswersMax) waiting_.pop_front();  // Its rank gives up by its own time.
  waiting_.emplace_back(peer, std::move(bytes));
  send_waiting();
}

void SeedServer::send_waiting() {
  std::erase_if(waiting_, [this](const auto& each) {
    const auto peer = peers_.find(each.first);
    if (peer == peers_.end()) return true;
    const Status sent = peer->second.send(wire::kSeedChannel, std::as_bytes(std::span(each.second))).error();
    return sent.code() != Code::kBusy;
  });
}

}  // namespace hawser::runtime
