// A backend that is added while peers are in session: they hear of it, and of what it says of regions that are there.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/card_store.h"
#include "agent/open.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "backend/tcp/factory.h"
#include "backend/test_wrapped.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// Comes before tcp, and reaches a region only by what its owner's card says of it.
class Late final : public backend::WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  Result<std::string> add_region(const backend::RegionEntry& entry) override {
    auto ignored = WrappedBackend::add_region(entry);
    if (!ignored) return ignored;
    return "extra of " + entry.name;
  }
};

backend::Factory late_factory() {
  return backend::wrapping("late", 50, backend::tcp_factory(), [](std::unique_ptr<backend::Backend> inner) {
    return std::make_unique<Late>(std::move(inner));
  });
}

Agent open_late(const std::string& name) {
  AgentOptions options;
  options.name = name;
  options.backends = {{"tcp", {{"listen", "127.0.0.1"}}}};
  return std::move(open_with(std::move(options), {late_factory(), backend::tcp_factory()}).value());
}

std::string address_of(const Agent& agent) {
  const std::string address = agent.backends().front().address;
  return address.substr(0, address.find(','));
}

class LateBackend : public testing::Test {
 protected:
  LateBackend() {
    EXPECT_TRUE(driver_.attach(there_).ok());
    region_ = there_.add_region({.name = "kv", .bytes = memory_}).value();
    peer_ = here_.find_peer("there@" + address_of(there_), 20s).value();
  }

  bool eventually(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < end) {
      static_cast<void>(here_.poll());
      if (done()) return true;
    }
    return false;
  }

  /// What the card that is known of `there` says of its region for the backend.
  std::string extra(std::string_view backend) {
    PeerCore& peer = *core_of(peer_);
    const base::MutexLock lock(peer.use().mutex);
    const wire::CardRegion* region = peer.use().card->find_name("kv");
    return region == nullptr ? "no region" : std::string(peer.use().card->extra(*region, backend));
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(4096);
  Driver driver_ = Driver::start().value();
  Agent there_ = open_late("there"), here_ = open_late("here");
  Region region_;
  Peer peer_;
};

TEST_F(LateBackend, PeersInSessionHearWhatItSaysOfRegionsThatAreThere) {
  ASSERT_TRUE(eventually([&] { return extra("late").empty(); }));
  ASSERT_TRUE(there_.add_backend({"late", {}}).ok());
  EXPECT_TRUE(eventually([&] { return extra("late") == "extra of kv"; })) << extra("late");
}

TEST_F(LateBackend, AChangedCardIsHintedAtInQueues) {
  CompletionQueue queue = here_.make_queue(16).value();
  std::array<Completion, 16> entries;
  static_cast<void>(queue.poll(entries));
  while (here_.take_event()) {
  }
  ASSERT_TRUE(there_.add_backend({"late", {}}).ok());
  std::size_t hints = 0;
  EXPECT_TRUE(eventually([&] {
    const std::size_t taken = queue.poll(entries);
    for (std::size_t i = 0; i < taken; ++i) hints += entries[i].kind == CompletionKind::kPeer ? 1 : 0;
    return hints > 0;
  }));
  const auto event = here_.take_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, PeerEvent::Kind::kCardChanged);
}

/// What is done each time that the backend is told of a region, and what it knows.
struct Told {
  std::function<void()> then;
  int added = 0, removed = 0;
};

/// While it is told of a region the next is registered.
class Chased final : public backend::WrappedBackend {
 public:
  Chased(std::unique_ptr<backend::Backend> inner, Told& told) : WrappedBackend(std::move(inner)), told_(told) {}
  Result<std::string> add_region(const backend::RegionEntry& entry) override {
    ++told_.added;
    if (told_.then) told_.then();
    return WrappedBackend::add_region(entry);
  }
  void remove_region(const backend::RegionEntry& entry) override {
    ++told_.removed;
    WrappedBackend::remove_region(entry);
  }

 private:
  Told& told_;
};

TEST(LateBackendAlone, ThatIsNeverToldOfAllIsGivenUp) {
  Told told;
  const backend::Factory tcp = backend::tcp_factory();
  const backend::Factory chased = backend::wrapping(
      "chased", 50, tcp,
      [&told](std::unique_ptr<backend::Backend> inner) { return std::make_unique<Chased>(std::move(inner), told); });
  AgentOptions options;
  options.name = "alone";
  options.backends = {{"tcp", {}}};
  options.limits.regions = 4096;
  Agent agent = std::move(open_with(std::move(options), {chased, tcp}).value());
  std::vector<std::byte> memory(64);
  std::vector<Region> regions;
  const auto add = [&] {
    if (regions.size() < 2000) regions.push_back(agent.add_region({.bytes = memory}).value());
  };
  add();
  told.then = add;
  const Status busy = agent.add_backend({"chased", {}});
  EXPECT_EQ(busy.code(), Code::kBusy) << busy.to_string();
  EXPECT_NE(busy.to_string().find("regions are registered faster"), std::string::npos) << busy.to_string();
  EXPECT_LT(regions.size(), 2000U) << "it went on as long as there were more";
  EXPECT_EQ(told.removed, told.added) << "it gives back what it was told of";
  EXPECT_FALSE(agent.has_backend("chased"));
  told = {};
  EXPECT_TRUE(agent.add_backend({"chased", {}}).ok()) << "once they come no more";
  EXPECT_EQ(told.added, static_cast<int>(regions.size()));
  EXPECT_TRUE(agent.has_backend("chased"));
}

}  // namespace
}  // namespace hawser::agent
