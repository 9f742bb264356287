#pragma once

// TestHost: one agent's shm without the agent, for tests: identity, regions, backend and port, and what the port told.
//
// Thread rule: one thread. Lifetime: paths and messages live as long as the host.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/shm/backend.h"
#include "base/format.h"
#include "base/test_folder.h"

namespace hawser::backend::shm {

/// For sockets, whose paths must be short.
struct TestFolder : base::TestFolder {
  TestFolder() : base::TestFolder("/tmp/hawser-test") {}
};

/// To hosts that are driven; others are not asked.
inline constexpr Duration kTestHeartbeat = std::chrono::milliseconds(20);
inline constexpr Duration kTestPeerTimeout = 10 * kTestHeartbeat;

class TestHost {
 public:
  TestHost(const std::string& name, const std::string& folder, Options options = {}, bool is_driven = false) {
    identity_.name = name;
    identity_.driven = is_driven;
    identity_.incarnation = base::random_id128();
    options.socket_dir = folder;
    const Context context{identity_,      regions_,         log_,           base::Rng(1), Security::kDefault,
                          kTestHeartbeat, kTestPeerTimeout, Clock::steady()};
    backend_ = std::move(ShmBackend::open(context, std::move(options))).value();
    port_ = std::move(backend_->open_port()).value();
  }
  ~TestHost() { close(); }

  const Identity& identity() const { return identity_; }
  Backend& backend() { return *backend_; }
  Port& port() { return *port_; }
  RegionTable& regions() { return regions_; }
  bool is_closed() const { return port_ == nullptr; }

  void close() {
    port_.reset();
    backend_.reset();
  }
  /// As a process that dies leaves it: nobody is told, no file is removed.
  void leak() {
    static_cast<void>(port_.release());
    static_cast<void>(backend_.release());
  }

  /// One turn of the lane.
  /// A turn of its own size, so that tests can count turns.
  void turn(const TurnBudget& budget = {.copy_bytes = 256 * 1024}) { turn_at(Clock::steady().now(), budget); }
  void turn_at(Instant now, const TurnBudget& budget = {.copy_bytes = 256 * 1024}) {
    port_->turn(now, budget);
    PortEvent events[16];
    const std::size_t count = port_->poll(events);
    for (std::size_t i = 0; i < count; ++i) take(events[i]);
  }

  std::shared_ptr<const RegionEntry> allocate(std::size_t size, Rights rights = Rights::kReadWrite) {
    auto arena = Arena::create(size, rights, HugePages::kOff).value();
    RegionEntry entry;
    entry.key = base::random_id128();
    entry.base = arena->bytes().data();
    entry.size = size;
    entry.rights = rights;
    entry.arena = std::move(arena);
    return add(std::move(entry));
  }
  /// A grant for one transfer of that peer alone.
  std::shared_ptr<const RegionEntry> grant_once(std::size_t size, const base::Id128& holder) {
    auto arena = Arena::create(size, Rights::kReadWrite, HugePages::kOff).value();
    RegionEntry entry;
    entry.key = base::random_id128();
    entry.base = arena->bytes().data();
    entry.size = size;
    entry.rights = Rights::kReadWrite;
    entry.arena = std::move(arena);
    entry.listed = false;
    entry.is_grant = true;
    entry.holder = holder;
    entry.once = std::make_shared<SingleUse>();
    return add(std::move(entry));
  }
  std::uint64_t barriers() const { return static_cast<const ShmBackend&>(*backend_).gates().barriers(); }
  std::shared_ptr<const RegionEntry> add_foreign(std::span<std::byte> bytes, Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = base::random_id128();
    entry.base = bytes.data();
    entry.size = bytes.size();
    entry.rights = rights;
    return add(std::move(entry));
  }
  /// Foreign memory whose whole pages are adopted, or not: see its `pages`.
  std::shared_ptr<const RegionEntry> adopt(std::span<std::byte> bytes, Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = base::random_id128();
    entry.base = bytes.data();
    entry.size = bytes.size();
    entry.rights = rights;
    entry.pages = ForeignPages::hold(bytes, rights, true);
    return add(std::move(entry));
  }
  /// What a peer's card would tell of it.
  RemoteRegionRef ref(const RegionEntry& entry) {
    return {entry.index, entry.generation, entry.key, entry.size, entry.rights, entry.device, extras_[entry.index]};
  }

  PathTarget target(TestHost& peer) {
    addresses_.push_back(std::make_unique<std::string>(peer.backend().address()));
    return {peer.identity().name, peer.identity().incarnation, *addresses_.back(), {}, Instant::max()};
  }
  Path* open(const PathTarget& target) { return port_->open_path(target, Clock::steady().now()).value(); }

  struct Up {
    bool inbound = false;
    std::string peer;
    base::Id128 session;
  };
  std::map<const Path*, Up> ups;
  std::map<const Path*, Status> downs, silent;
  std::map<std::uint64_t, Status> done;  ///< By cookie.
  std::vector<std::string> messages;
  Path* inbound = nullptr;  ///< The last path that a peer opened.

 private:
  std::shared_ptr<const RegionEntry> add(RegionEntry entry) {
    auto added = regions_.add(std::move(entry)).value();
    extras_[added->index] = backend_->add_region(*added).value();
    return added;
  }
  void take(PortEvent& event) {
    switch (event.kind) {
      case PortEvent::Kind::kChunkDone:
        done[event.cookie] = event.status;
        break;
      case PortEvent::Kind::kMessage:
        messages.emplace_back(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
        break;
      case PortEvent::Kind::kPathUp:
        ups[event.path] = {event.inbound, event.peer->name, event.session};
        if (event.inbound) inbound = event.path;
        break;
      case PortEvent::Kind::kPathDown:
        downs[event.path] = event.status;
        break;
      case PortEvent::Kind::kPathSilent:
        silent[event.path] = event.status;
        break;
      case PortEvent::Kind::kPathHeard:
        silent.erase(event.path);
        break;
      case PortEvent::Kind::kArrival:
      case PortEvent::Kind::kRegions:
      case PortEvent::Kind::kUncounted:
        ADD_FAILURE() << "shm carries no arrivals";
        break;
    }
  }

  Identity identity_;
  RegionTable regions_{1024};
  base::Logger log_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Port> port_;
  std::map<std::uint32_t, std::string> extras_;
  std::vector<std::unique_ptr<std::string>> addresses_;
};

/// Turns all hosts until `done`; false when that takes more than `patience`.
inline bool turn_until(std::initializer_list<TestHost*> hosts, const std::function<bool()>& done,
                       Duration patience = std::chrono::seconds(10)) {
  const Instant give_up = Clock::steady().now() + patience;
  while (!done()) {
    for (TestHost* host : hosts) host->turn();
    if (Clock::steady().now() > give_up) return false;
  }
  return true;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// A path from `a` to `b`, up at both ends.
inline Path* connect(TestHost& a, TestHost& b) {
  Path* path = a.open(a.target(b));
  b.inbound = nullptr;
  const bool is_up =
      turn_until({&a, &b}, [&] { return a.downs.contains(path) || (a.ups.contains(path) && b.inbound); });
  EXPECT_TRUE(is_up && a.ups.contains(path)) << (a.downs.contains(path) ? a.downs[path].to_string() : "no answer");
  return path;
}

inline Chunk chunk_of(Operation op, Binding* target, std::span<const Piece> pieces, std::uint64_t cookie,
                      std::uint64_t transfer = 1) {
  Chunk chunk;
  chunk.op = op;
  chunk.transfer = transfer;
  chunk.cookie = cookie;
  chunk.target = target;
  chunk.pieces = pieces;
  for (const Piece& piece : pieces) chunk.bytes += piece.size;
  return chunk;
}

/// Submits one chunk and waits for its end.
inline Status transfer(TestHost& a, TestHost& b, Path* path, const Chunk& chunk) {
  a.done.erase(chunk.cookie);
  const Submitted submitted = path->submit({&chunk, 1}, Clock::steady().now());
  if (submitted.done == 1) return {};
  if (submitted.taken == 0) return Status(Code::kBusy, "not taken");
  if (!turn_until({&a, &b}, [&] { return a.done.contains(chunk.cookie); }))
    return Status(Code::kTimedOut, "never ended");
  return a.done[chunk.cookie];
}

}  // namespace hawser::backend::shm
