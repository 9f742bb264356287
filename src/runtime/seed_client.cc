#include "runtime/seed_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "agent/inner.h"
#include "base/address.h"
#include "base/fd.h"
#include "base/host_id.h"
#include "base/try.h"
#include "identity/files.h"
#include "runtime/seed_server.h"

namespace hawser::runtime {
namespace {

constexpr Duration kSetPatience = std::chrono::seconds(30);
constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr std::uint32_t kCredit = 16;
constexpr std::array kPausesBetweenTries = {Duration(std::chrono::milliseconds(50)),
                                            Duration(std::chrono::milliseconds(200)),
                                            Duration(std::chrono::milliseconds(800))};

Status not_reached(const Status& why) {
  return Status(why.code(), "the world's seed cannot be reached")
      .with_advice("its address is NAME@HOST:PORT#TICKET, as `hawser run` and WorldSeed::address give it")
      .because(why);
}

Status another_token(std::string_view where) {
  return Status(Code::kDenied, "the world's seed " + std::string(where) + " does not have the token of this rank")
      .with_advice("give the seed and all ranks the same token (WorldOptions::token_file, HAWSER_TOKEN_FILE)");
}

bool takes_connections(const base::SocketAddress& place, Duration patience) {
  const base::Fd fd(::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  if (::connect(fd.get(), place.get(), place.size) == 0) return true;
  pollfd one = {.fd = fd.get(), .events = POLLOUT, .revents = 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  if (errno != EINPROGRESS || ::poll(&one, 1, static_cast<int>(ms)) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

/// Somebody listens there. An agent to which the token cannot be proven answers nothing at all.
bool is_listening(std::string_view address) {
  constexpr Duration kPatience = std::chrono::seconds(1);  // It was there a moment ago.
  address.remove_prefix(std::min(address.find('@') + 1, address.size()));
  const Result<std::string> resolved = agent::inner::resolve(address, Clock::steady().now() + kPatience);
  if (!resolved) return false;
  for (std::string_view rest = *resolved; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const Result<base::HostPort> place = base::parse_host_port(rest.substr(0, comma));
    const auto numeric = place ? base::numeric_address(*place) : Result<base::SocketAddress>(place.error());
    if (numeric && takes_connections(*numeric, kPatience)) return true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

Status not_let_in(std::string_view address, const Status& why) {
  if (why.code() == Code::kUnsupported) return not_reached(why);  // It was not asked: something is missing here.
  return is_listening(address) ? another_token(address).because(why) : not_reached(why);
}

/// A seed that does not let somebody in and one that is overrun look alike: the connection ends without a word. So it
/// is asked some times.
Result<Peer> find_seed(Agent& agent, std::string_view address, Instant until) {
  const Clock& clock = Clock::steady();
  const auto left = [&] { return std::max(until - clock.now(), Duration::zero()); };
  Result<Peer> seed = agent.find_peer(address, left());
  for (const Duration pause : kPausesBetweenTries) {
    if (seed || seed.error().code() != Code::kDisconnected || left() <= pause) break;
    for (const Instant next = clock.now() + pause; clock.now() < next;) (void)agent.wait(next - clock.now());
    seed = agent.find_peer(address, left());
  }
  return seed;
}

/// By which the seed's errors name this rank's process: the host's name is part of it.
std::string client_name() {
  const std::string host = base::host_name();
  return identity::one_of_many(host.empty() ? "seed-client" : "seed-client-" + host);
}

}  // namespace

Result<std::shared_ptr<SeedClient>> SeedClient::open(std::string_view address, AgentOptions options, Duration timeout,
                                                     const std::optional<identity::WorldToken>& token) {
  if (token && address.find('#') != std::string_view::npos) {
    return Status(Code::kInvalid, "the world's seed: its address has a ticket, and a token is given, too")
        .with_advice("leave out the '#' and what follows it");
  }
  if (token && options.security == Security::kNone) {
    return Status(Code::kInvalid,
                  "the world's seed: with security `none` nobody proves anything, and a token counts "
                  "for nothing")
        .with_advice("leave security as it is, or the token out");
  }
  std::string typed(address.find('@') == std::string_view::npos ? "@" : "");  // Whatever its name is.
  typed += address;
  if (token) typed = agent::inner::address_with(typed, {.key = token->seed_key(), .admission = token->admission()});
  options.name = identity::name_beneath(options.identity.folder, client_name());
  options.directory = nullptr;
  options.driven = false;
  add_seed_backend(options);
  options.status_page = "off";
  options.metrics.clear();
  const Instant until = Clock::steady().now() + timeout;
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
  HAWSER_TRY(agent.open_channel(wire::kSeedChannel, kCredit));
  Result<Peer> seed = find_seed(agent, typed, until);
  if (!seed) return token ? not_let_in(address, seed.error()) : not_reached(seed.error());
  const Duration left = std::max(until - Clock::steady().now(), Duration::zero());
  if (Status status = seed->connect(left); !status.ok()) return not_reached(status);
  std::shared_ptr<SeedClient> client(new SeedClient(std::move(agent), std::move(*seed)));
  if (token) HAWSER_TRY(client->prove(*token, std::max(until - Clock::steady().now(), Duration::zero())));
  return client;
}

Result<std::shared_ptr<SeedClient>> SeedClient::open_patiently(std::string_view address, const AgentOptions& options,
                                                               Duration timeout,
                                                               const std::optional<identity::WorldToken>& token) {
  constexpr Duration kTry = std::chrono::seconds(2), kPause = std::chrono::milliseconds(20);
  const Instant until = Clock::steady().now() + timeout;
  for (;;) {
    const Duration left = std::max(until - Clock::steady().now(), Duration::zero());
    Result<std::shared_ptr<SeedClient>> client = open(address, options, std::min(left, kTry), token);
    if (client || left <= kPause) return client;
    const Code code = client.error().code();
    const bool may_come = code == Code::kDisconnected || code == Code::kTimedOut || code == Code::kNotFound;
    if (!may_come) return client;
    (void)::poll(nullptr, 0, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPause).count()));
  }
}

/// Both ends show that they have it: whoever answers on this host as the same user was asked for nothing else.
Status SeedClient::prove(const identity::WorldToken& token, Duration timeout) {
  const Incarnation own = agent_.incarnation(), its = seed_.incarnation();
  const auto rank = std::as_bytes(std::span(own.bytes)), seed = std::as_bytes(std::span(its.bytes));
  const identity::WorldToken::Mac mac = token.prove(identity::WorldToken::Role::kRank, rank, seed);
  const std::string_view proof(reinterpret_cast<const char*>(mac.data()), mac.size());
  const Result<std::string> answer = ask({.kind = wire::SeedKind::kProve, .key = "token", .value = proof}, timeout);
  if (!answer) {
    return answer.error().code() == Code::kDenied ? another_token(seed_.name()).because(answer.error())
                                                  : answer.error();
  }
  const auto shown = std::as_bytes(std::span(answer->data(), answer->size()));
  if (token.is_proof(shown, identity::WorldToken::Role::kSeed, rank, seed)) return {};
  return another_token(seed_.name());
}

Status SeedClient::set(std::string_view key, std::string_view value) {
  if (key.size() > wire::kSeedKeyMax || value.size() > wire::kSeedValueMax) {
    return Status(Code::kInvalid, "a seed takes keys of " + std::to_string(wire::kSeedKeyMax) +
                                      " bytes and values of " + std::to_string(wire::kSeedValueMax) + ", not " +
                                      std::to_string(key.size()) + " and " + std::to_string(value.size()));
  }
  return ask({.kind = wire::SeedKind::kSet, .key = key, .value = value}, kSetPatience).status();
}

Result<std::string> SeedClient::get(std::string_view key, Duration timeout) {
  return ask({.kind = wire::SeedKind::kGet, .key = key}, timeout);
}

Result<std::string> SeedClient::ask(wire::SeedMessage question, Duration timeout) {
  question.id = ++asked_;
  const Instant until = Clock::steady().now() + timeout;
  const std::string bytes = wire::encode(question);
  HAWSER_TRY(seed_.send(wire::kSeedChannel, std::as_bytes(std::span(bytes)), timeout).error());
  for (;;) {
    while (const std::optional<Message> message = agent_.take_message(wire::kSeedChannel)) {
      const auto told = wire::decode_seed(std::as_bytes(std::span(message->bytes.data(), message->bytes.size())));
      if (!told || told->kind != wire::SeedKind::kAnswer || told->id != question.id) continue;  // Of one given up.
      if (told->code != Code::kOk) return Status(told->code, "the seed says: " + std::string(told->value));
      return std::string(told->value);
    }
    if (seed_.state() == PeerState::kDown) return Status(Code::kDisconnected, "the world's seed is gone");
    const Duration left = until - Clock::steady().now();
    if (left <= Duration::zero()) {
      return Status(Code::kTimedOut, "nobody has left '" + std::string(question.key) + "' at the seed in time");
    }
    (void)agent_.wait(std::min(left, kLook));
  }
}

WorldStore SeedClient::store_of(const std::shared_ptr<SeedClient>& client) {
  return {.set = [client](const std::string& key, const std::string& value) { return client->set(key, value); },
          .get = [client](const std::string& key, Duration timeout) { return client->get(key, timeout); }};
}

}  // namespace hawser::runtime
