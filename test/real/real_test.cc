#include "real_test.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/inside.h"

namespace hawser::real {

bool eventually(const std::function<bool()>& done, Duration timeout) {
  const Instant deadline = now() + timeout;
  while (!done()) {
    if (now() >= deadline) return done();
    std::this_thread::sleep_for(50us);
  }
  return true;
}

/// Agents over verbs run in an emulated machine, where a handshake between processes may take a second.
constexpr Duration kEmulatedTimeout = 4s;

std::vector<Way> ways() {
  return {{"shm_allocated", "shm", true},      {"shm_foreign", "shm", false},
          {"shm_adopted", "shm", false, true}, {"tcp", "tcp", false},
          {"verbs", "verbs", false},           {"verbs_cable", "verbs", false, false, "rxe0", "rxe1"}};
}

Duration Way::peer_timeout(Duration wanted) const {
  return backend == "verbs" ? std::max(wanted, kEmulatedTimeout) : wanted;
}

Here::Here(const Way& way, const AgentOptions& its_options) : way_(way) {
  AgentOptions options = its_options;
  if (options.backends.empty()) options.backends = {way.spec_here()};
  options.peer_timeout = way.peer_timeout(options.peer_timeout);
  options.driven = true;
  options.adopt = way.adopts;
  driver_.emplace(must(Driver::start()));
  agent_.emplace(must(Agent::open(std::move(options))));
  must(driver_->attach(*agent_));
}

Here::~Here() {
  if (!core_of(*agent_)) return;
  // The memory outlives what may touch it.
  (void)agent_->close(5s);
  (void)driver_->detach(*agent_);
}

Memory& Here::add(const std::string& name, std::size_t size) {
  auto memory = std::make_unique<Memory>();
  if (way_.allocated) {
    memory->region = must(agent_->allocate({.name = name, .size = size}));
    memory->bytes = memory->region.bytes();
  } else {
    memory->storage.resize(size);
    memory->bytes = memory->storage;
    memory->region = must(agent_->add_region({.name = name, .bytes = memory->bytes, .device = {}}));
  }
  memory_.emplace_back(name, std::move(memory));
  return *memory_.back().second;
}

Memory& Here::memory(const std::string& name) {
  const auto found =
      std::find_if(memory_.rbegin(), memory_.rend(), [&](const auto& each) { return each.first == name; });
  if (found == memory_.rend()) throw std::runtime_error("no memory " + name);
  return *found->second;
}

Peer Here::meet(PeerProcess& process, std::string* name_there) {
  const std::string name = process.know(must(agent_->card()));
  if (name_there != nullptr) *name_there = name;
  return must(agent_->add_peer(process.card()));
}

Plan Here::plan_write(const Peer& peer, const std::string& ours, const std::string& theirs, std::size_t size) {
  return must(agent_->plan_write(peer, {{memory(ours).region.range(0, size)}}, {{peer.range(theirs, 0, size)}}));
}

Plan Here::plan_read(const Peer& peer, const std::string& theirs, const std::string& ours, std::size_t size) {
  return must(agent_->plan_read(peer, {{peer.range(theirs, 0, size)}}, {{memory(ours).region.range(0, size)}}));
}

std::optional<Duration> Here::await_event(PeerEvent::Kind kind, const Peer& peer, Instant from, Duration timeout) {
  const bool seen = eventually(
      [&] {
        while (const auto event = agent_->take_event()) {
          if (event->kind == kind && event->peer.incarnation() == peer.incarnation()) return true;
        }
        return false;
      },
      timeout);
  if (!seen) return std::nullopt;
  return now() - from;
}

AgentOptions quick(const std::string& name) {
  AgentOptions options;
  options.name = name;
  options.heartbeat = 1s;
  options.peer_timeout = 1s;
  options.default_deadline = kPatience;
  options.log.level = LogLevel::kError;
  return options;
}

std::string peer_line(const Way& way, const std::string& name, const std::string& more) {
  return name + " backend=" + way.backend + (way.adopts ? " adopt=1 " : " ") +
         (way.devices_there.empty() ? "" : "devices=" + way.devices_there + " ") + more +
         (way.backend == "verbs" ? " heartbeat_ms=1000 timeout_ms=4000" : " heartbeat_ms=1000 timeout_ms=1000");
}

testing::AssertionResult all_are(std::span<const std::byte> bytes, std::byte value) {
  const auto wrong = std::ranges::find_if(bytes, [&](std::byte byte) { return byte != value; });
  if (wrong == bytes.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << wrong - bytes.begin() << " is " << static_cast<int>(*wrong);
}

Status finish(Transfer& transfer, Duration timeout) { return transfer.wait(timeout); }

void print_time(const std::string& what, Duration time) {
  std::printf("             %s: %.2f ms\n", what.c_str(), static_cast<double>(time.count()) / 1e6);
}

}  // namespace hawser::real
