#pragma once

// Two ports over a fabric and a network in memory, for tests.
//
// Thread rule: one thread.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backend/stream/memory_network.h"
#include "backend/verbs/backend.h"
#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/mock/mock_backend.h"
#include "backend/verbs/mock/mock_verbs.h"
#include "backend/verbs/port.h"

namespace hawser::backend::verbs {

inline constexpr Duration kStep = std::chrono::microseconds(10);
inline constexpr std::size_t kMemory = 4 << 20;

/// What an agent has of GPUs, and where its devices and its memory are.
struct SideGpus {
  std::shared_ptr<GpuFake> driver;
  hawser::SegmentProvider segments;
  std::shared_ptr<Mlx5> mlx5;
  std::string sysfs_root = "/nowhere";
  std::map<std::string, PciPlace> places = {};  ///< Of the devices that are on PCI.
  /// The NUMA node of the host's memory.
  std::function<int(std::uintptr_t, std::size_t)> node_of = [](std::uintptr_t, std::size_t) { return -1; };
};

/// An agent's worth of things around a port, and what the port reported.
struct Side {
  Side(MockFabric& fabric, stream::MemorySwitch& network, const std::string& name, std::vector<std::string> devices,
       const VerbsOptions& options, std::uint64_t seed, SideGpus its_gpus = {}, std::uint64_t host = 0,
       Duration peer_timeout = std::chrono::milliseconds(750))
      : gpus(std::move(its_gpus)),
        verbs(std::make_shared<MockVerbs>(fabric)),
        memory(kMemory, std::byte{0xee}),
        table(64) {
    identity.name = name;
    identity.incarnation = {seed, seed};
    identity.driven = true;
    context = std::make_unique<Context>(Context{.identity = identity,
                                                .regions = table,
                                                .log = log,
                                                .rng = base::Rng(seed),
                                                .security = Security::kNone,
                                                .heartbeat = std::chrono::milliseconds(250),
                                                .peer_timeout = peer_timeout,
                                                .clock = Clock::steady()});
    std::vector<std::shared_ptr<Nic>> nics;
    for (const std::string& device : devices) nics.push_back(open(fabric, device, options, nics));
    regions = std::make_shared<Regions>(
        nics,
        RegionsOptions{
            .segments = gpus.segments, .mlx5 = gpus.mlx5, .sysfs_root = gpus.sysfs_root, .node_of = gpus.node_of});
    auto switched = std::make_unique<stream::MemoryNetwork>(network, name);
    PortParts parts{.nics = nics,
                    .regions = regions,
                    .control = {},
                    .network = switched.get(),
                    .reopening = reopening(fabric, options),
                    .host = host};
    parts.control =
        stream::make_port(*context, {.backend = "verbs", .connections = 1, .look_turns = 0}, std::move(switched));
    auto opened = VerbsPort::open(*context, options, std::move(parts));
    EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().to_string());
    if (opened) port = *std::move(opened);
  }
  /// A port: "mock0" (its first), "mock0:2".
  std::shared_ptr<Nic> open(MockFabric& fabric, const std::string& name, const VerbsOptions& options,
                            std::span<const std::shared_ptr<Nic>> others = {}) {
    const std::string device = name.substr(0, name.find(':'));
    const std::size_t place = device == name ? 0 : std::stoul(name.substr(device.size() + 1)) - 1;
    infos.push_back(std::make_unique<DeviceInfo>());
    DeviceInfo& info = *infos.back();
    info = mock_device_info(fabric.device(device));
    if (gpus.places.contains(device)) info.pci = gpus.places[device];
    auto nic = open_nic(
        verbs,
        {.device = &info, .port = &info.ports[place], .path = {.mbit_per_s = info.ports[place].mbit_per_s}, .rank = 0},
        options, {.driver = gpus.driver, .sysfs_root = gpus.sysfs_root}, device_among(others, device));
    EXPECT_TRUE(nic.has_value()) << (nic ? "" : nic.error().to_string());
    return *nic;
  }
  /// At once, by the test's thread.
  Reopening reopening(MockFabric& fabric, const VerbsOptions& options) {
    Reopening again = verbs::reopening(verbs, options, {.driver = gpus.driver, .sysfs_root = gpus.sysfs_root}, [&] {
      ++looks;
      std::vector<DeviceInfo> devices;
      for (const auto& device : fabric.devices_) devices.push_back(mock_device_info(*device));
      return devices;
    });
    again.aside = [](const std::function<void()>& job) {
      job();
      return std::shared_ptr<void>();
    };
    return again;
  }
  /// Registers `memory`; its bytes of the card are in `extra`.
  std::shared_ptr<const RegionEntry> add_region(Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory.data();
    entry.size = memory.size();
    entry.rights = rights;
    auto added = *table.add(std::move(entry));
    extra = *regions->add(*added);
    return added;
  }
  void collect(Instant now) {
    port->turn(now, TurnBudget{});
    std::array<PortEvent, 16> events;
    std::size_t count = events.size();
    while (count == events.size()) {  // As the agent: what is left when fewer came waits for the next turn.
      count = port->poll(events);
      for (std::size_t i = 0; i < count; ++i) note(events[i]);
      for (PortEvent& event : events) event = PortEvent();
    }
  }
  void note(const PortEvent& event) {
    switch (event.kind) {
      case PortEvent::Kind::kChunkDone:
        done.emplace_back(event.cookie, event.status);
        if (event.status.ok() && event.uncounted) done_uncounted.push_back(event.cookie);
        break;
      case PortEvent::Kind::kMessage:
        messages.emplace_back(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
        break;
      case PortEvent::Kind::kPathUp:
        ++ups;
        up = event.path;
        session = event.session;
        break;
      case PortEvent::Kind::kPathDown:
        down.push_back(event.status);
        break;
      case PortEvent::Kind::kPathSilent:
        EXPECT_EQ(event.path, up);
        ++silences;
        break;
      case PortEvent::Kind::kPathHeard:
        EXPECT_EQ(event.path, up);
        ++heard;
        break;
      case PortEvent::Kind::kArrival:
        arrivals.emplace_back(event.transfer, event.chunk);
        break;
      case PortEvent::Kind::kRegions:
        ++renewals;
        break;
      case PortEvent::Kind::kUncounted:
        uncounted.push_back(event.transfer);
        break;
    }
  }

  SideGpus gpus;
  std::shared_ptr<MockVerbs> verbs;
  std::vector<std::unique_ptr<DeviceInfo>> infos;
  Identity identity;
  std::vector<std::byte> memory;
  RegionTable table;
  base::Logger log;
  std::unique_ptr<Context> context;
  std::shared_ptr<Regions> regions;
  std::string extra;
  std::unique_ptr<VerbsPort> port;
  std::vector<std::pair<std::uint64_t, Status>> done;
  std::vector<std::uint64_t> done_uncounted;                      ///< Cookies of covered chunks.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> arrivals;  ///< Transfer and chunk.
  std::vector<std::uint64_t> uncounted;                           ///< Transfers.
  std::vector<std::string> messages;
  int silences = 0, heard = 0;
  std::vector<Status> down;
  base::Id128 session;
  Path* up = nullptr;
  int ups = 0;
  int looks = 0;     ///< For a device that is gone.
  int renewals = 0;  ///< Of what is said of regions.
};

class VerbsPair : public ::testing::Test {
 protected:
  void start(std::vector<std::string> a_devices = {"mock0"}, std::vector<std::string> b_devices = {"mock1"}) {
    a = std::make_unique<Side>(fabric, network, "a", a_devices, options, 11, a_gpus, a_host, peer_timeout);
    b = std::make_unique<Side>(fabric, network, "b", b_devices, options, 22, b_gpus, b_host, peer_timeout);
  }
  void TearDown() override {
    a.reset();
    b.reset();
    EXPECT_EQ(fabric.counts, MockCounts{}) << "something leaked";
  }
  Path* open(base::Id128 supersedes = {}) {
    PathTarget target;
    target.peer = target.address = "b";
    target.supersedes = supersedes;
    target.deadline = now + std::chrono::seconds(5);
    auto path = a->port->open_path(target, now);
    EXPECT_TRUE(path.has_value());
    return *path;
  }
  void connect() {
    to_b = open();
    ASSERT_TRUE(run([&] { return a->up != nullptr && b->up != nullptr; }));
    ASSERT_EQ(a->up, to_b);
    mine = a->add_region();
    region = b->add_region();
    binding = bind(*region, b->extra);
    std::iota(reinterpret_cast<std::uint8_t*>(a->memory.data()),
              reinterpret_cast<std::uint8_t*>(a->memory.data()) + kMemory, std::uint8_t{1});
  }
  /// The region as its peer's card has it; `extra` is borrowed.
  static RemoteRegionRef ref_of(const RegionEntry& entry, std::string_view extra) {
    RemoteRegionRef ref;
    ref.index = entry.index;
    ref.generation = entry.generation;
    ref.key = entry.key;
    ref.size = entry.size;
    ref.rights = entry.rights;
    ref.extra = extra;
    return ref;
  }
  Binding* bind(const RegionEntry& entry, std::string_view extra) {
    auto bound = to_b->bind(ref_of(entry, extra));
    EXPECT_TRUE(bound.has_value());
    return bound ? *bound : nullptr;
  }
  void step() {
    a->collect(now);
    b->collect(now);
    now = now + kStep;
  }
  template <typename Done>
  bool run(Done&& finished, int turns = 20000) {
    for (int i = 0; i < turns; ++i) {
      if (finished()) return true;
      step();
    }
    return finished();
  }
  /// Time passes faster.
  template <typename Done>
  bool run_slow(Done&& finished, Duration each = std::chrono::milliseconds(1), int turns = 20000) {
    for (int i = 0; i < turns; ++i) {
      if (finished()) return true;
      step();
      now = now + each;
    }
    return finished();
  }
  /// Only one of the two takes turns.
  template <typename Done>
  bool run_alone(Side& side, Done&& finished, Duration each = kStep, int turns = 20000) {
    for (int i = 0; i < turns && !finished(); ++i) {
      side.collect(now);
      now = now + each;
    }
    return finished();
  }
  Chunk chunk(Operation op, std::span<const Piece> pieces, std::uint64_t cookie) {
    Chunk made;
    made.op = op;
    made.transfer = 100 + cookie;
    made.cookie = cookie;
    made.target = binding;
    made.pieces = pieces;
    for (const Piece& piece : pieces) made.bytes += piece.size;
    return made;
  }
  Submitted submit(Operation op, std::span<const Piece> pieces, std::uint64_t cookie) {
    const Chunk made = chunk(op, pieces, cookie);
    return to_b->submit({&made, 1}, now);
  }
  Status outcome(std::uint64_t cookie) {
    for (const auto& [number, status] : a->done) {
      if (number == cookie) return status;
    }
    return Status(Code::kBusy, "not done");
  }
  bool is_done(std::uint64_t cookie) {
    return std::ranges::any_of(a->done, [cookie](const auto& each) { return each.first == cookie; });
  }

  static std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
  bool say(Path* path, const std::string& text) { return path->send(Priority::kCritical, bytes(text), {}); }
  /// Both ways, `count` messages each, of sizes up to `largest`; `between` is called every so often. All come in order.
  template <typename Between>
  void exchange(int count, std::size_t largest, Between&& between) {
    base::Rng rng(largest + static_cast<std::size_t>(count));
    std::vector<std::string> from_a, from_b;
    const auto next = [&](std::vector<std::string>& sent, Path* path) {
      const std::string text = std::to_string(sent.size()) + std::string(rng.below(largest), 'x');
      if (static_cast<int>(sent.size()) < count && say(path, text)) sent.push_back(text);
    };
    ASSERT_TRUE(run_slow(
        [&] {
          for (int i = static_cast<int>(rng.below(8)); i > 0; --i) next(from_a, to_b);
          for (int i = static_cast<int>(rng.below(8)); i > 0; --i) next(from_b, b->up);
          between(rng);
          return static_cast<int>(b->messages.size()) >= count && static_cast<int>(a->messages.size()) >= count;
        },
        std::chrono::microseconds(100)))
        << a->messages.size() << " " << b->messages.size() << " " << to_b->describe() << " " << b->up->describe();
    EXPECT_EQ(b->messages, from_a);
    EXPECT_EQ(a->messages, from_b);
    EXPECT_TRUE(a->down.empty() && b->down.empty());
  }
  std::size_t by_queue_pair(Path* path) {
    const std::string text = path->describe();
    const std::size_t end = text.find(" messages sent");
    return end == std::string::npos ? 0 : std::stoul(text.substr(text.rfind(' ', end - 1)));
  }

  MockFabric fabric{{"mock0", "mock1", "mock2", "mock3"}};
  stream::MemorySwitch network;
  VerbsOptions options;
  Duration peer_timeout = std::chrono::milliseconds(750);  ///< Three heartbeats: who falls silent is given up at once.
  SideGpus a_gpus, b_gpus;
  std::uint64_t a_host = 1, b_host = 2;
  std::unique_ptr<Side> a, b;
  Path* to_b = nullptr;
  std::shared_ptr<const RegionEntry> mine, region;
  Binding* binding = nullptr;
  Instant now = Instant::min() + std::chrono::seconds(1000);
};

}  // namespace hawser::backend::verbs
