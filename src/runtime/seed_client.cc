#include "runtime/seed_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/try.h"
#include "identity/files.h"

namespace hawser::runtime {
namespace {

constexpr Duration kSetPatience = std::chrono::seconds(30);
constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr std::uint32_t kCredit = 16;

Status not_reached(const Status& why) {
  return Status(why.code(), "the world's seed cannot be reached")
      .with_advice("its address is NAME@HOST:PORT#TICKET, as `hawser run` and WorldSeed::address give it")
      .because(why);
}

}  // namespace

Result<std::shared_ptr<SeedClient>> SeedClient::open(std::string_view address, AgentOptions options, Duration timeout) {
  options.name = identity::name_beneath(options.identity.folder, "seed-client");
  options.directory = nullptr;
  options.driven = false;
  options.status_page = "off";
  options.metrics.clear();
  const Instant until = Clock::steady().now() + timeout;
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
  HAWSER_TRY(agent.open_channel(wire::kSeedChannel, kCredit));
  Result<Peer> seed = agent.find_peer(address, timeout);
  if (!seed) return not_reached(seed.error());
  const Duration left = std::max(until - Clock::steady().now(), Duration::zero());
  if (Status status = seed->connect(left); !status.ok()) return not_reached(status);
  return std::shared_ptr<SeedClient>(new SeedClient(std::move(agent), std::move(*seed)));
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
  HAWSER_TRY(seed_.send(wire::kSeedChannel, std::as_bytes(std::span(bytes)), timeout));
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
