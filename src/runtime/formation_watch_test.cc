#include "runtime/formation_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/bytes.h"
#include "base/inside.h"

namespace hawser::runtime {
namespace {

using wire::RuntimeKind;
using wire::RuntimeMessage;

constexpr Instant kWatchNow = Instant::from_ns(1'000'000);

/// Keeps what is said, each with the peer's name before it.
class WatchCarrier final : public agent::Carrier {
 public:
  agent::Sent carry(agent::Session& session, std::uint32_t, std::span<const std::byte> head,
                    std::span<const std::byte> body) override {
    const std::string bytes = std::string(base::as_text(head)) + std::string(base::as_text(body));
    const Result<RuntimeMessage> message = wire::decode_runtime(base::as_bytes(bytes));
    EXPECT_TRUE(message && message->kind == RuntimeKind::kTopology);
    said.push_back(session.peer->name + ": " + std::string(base::as_text(body)));
    world = message ? message->world : 0;
    return agent::Sent::kYes;
  }
  void release_message(agent::Session&, std::uint32_t, std::size_t) override {}
  void serve(agent::Session&, Instant) override {}
  agent::Session* session_with(const Peer& peer, Status*) override { return core_of(peer)->session(); }
  bool can_fetch(agent::Session&) const override { return false; }
  bool fetch(agent::Session&, std::uint64_t, std::span<std::byte>) override { return false; }
  Instant now() const override { return kWatchNow; }
  void note_deadline() override {}
  void note_end() override {}

  std::vector<std::string> said;
  std::uint64_t world = 0;
};

class FormationWatchTest : public testing::Test {
 protected:
  FormationWatchTest() {
    for (const char* name : {"a", "b"}) {
      cores_.push_back(std::make_shared<agent::PeerCore>(std::weak_ptr<agent::Core>(), name, base::Id128{5, 6}));
      cores_.back()->use().session =
          std::make_unique<agent::Session>(cores_.back(), proto::NotifyLimits{}, inbox_, services_);
    }
  }
  ~FormationWatchTest() override {
    for (const auto& core : cores_) core->use().session.reset();
  }
  Peer peer(std::size_t i) const { return Peer(cores_[i]); }
  std::vector<std::string> said() {
    for (const auto& core : cores_) {
      std::size_t work = 0;
      (void)mailbox_.pump(*core->session(), &work);
    }
    return std::exchange(carrier_.said, {});
  }
  void hear(std::size_t from, std::string_view topology) {
    wire::RuntimeBuffer buffer;
    const RuntimeMessage message{
        .kind = RuntimeKind::kTopology, .world = carrier_.world, .body = base::as_bytes(topology)};
    const std::string bytes = std::string(base::as_text(wire::encode(message, buffer))) + std::string(topology);
    EXPECT_TRUE(
        mailbox_.on_message(*cores_[from]->session(), wire::kRuntimeChannel, base::as_bytes(bytes), kWatchNow).ok());
  }

  WatchCarrier carrier_;
  agent::Inbox inbox_{16};
  Mailbox mailbox_{carrier_};
  std::array<agent::Service*, 1> services_{&mailbox_};
  std::vector<std::shared_ptr<agent::PeerCore>> cores_;
  std::vector<Status> told_;
  FormationWatch watch_{mailbox_, "w", "hypercube", [this](const Status& why) { told_.push_back(why); }};
};

TEST_F(FormationWatchTest, TheSameTopologyIsNoNews) {
  watch_.know(peer(0));
  EXPECT_TRUE(said().empty());
  watch_.tell(peer(0));
  EXPECT_EQ(said(), std::vector<std::string>{"a: hypercube"});
  hear(0, "hypercube");
  EXPECT_FALSE(watch_.has_failed());
  EXPECT_TRUE(said().empty());
}

TEST_F(FormationWatchTest, AnotherOneFailsOnceAndIsPassedOn) {
  watch_.know(peer(0));
  watch_.tell(peer(0));
  (void)said();
  hear(1, "regular:2");
  hear(1, "full");
  EXPECT_TRUE(watch_.has_failed());
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(watch_.status().code(), Code::kInvalid);
  EXPECT_NE(watch_.status().to_string().find("'b' opens the world with the topology regular:2, this rank with "
                                             "hypercube"),
            std::string::npos)
      << watch_.status().to_string();
  EXPECT_EQ(said(), (std::vector<std::string>{"a: regular:2", "b: hypercube"}));
  watch_.know(peer(1));
  EXPECT_EQ(said(), std::vector<std::string>{"b: regular:2"}) << "a rank that is reached later on";
}

TEST_F(FormationWatchTest, WhatIsNotCommonIsSaid) {
  const auto text = [](Topology topology, RecoveryPolicy recovery, std::optional<Quorum> quorum) {
    WorldOptions options;
    options.topology = std::move(topology);
    options.recovery = recovery;
    options.quorum = quorum;
    return settings_of(options);
  };
  EXPECT_EQ(text({}, RecoveryPolicy::kManual, Quorum::kNone), "full");
  EXPECT_EQ(text({}, RecoveryPolicy::kManual, Quorum::kMajority), "full, quorum majority");
  EXPECT_EQ(text({}, RecoveryPolicy::kAutomatic, Quorum::kMajority), "full, recovery automatic");
  EXPECT_EQ(text(Topology::hypercube(), RecoveryPolicy::kAutomatic, Quorum::kNone),
            "hypercube, recovery automatic, quorum none");
  EXPECT_EQ(text({}, RecoveryPolicy::kAbort, Quorum::kNone), "full, recovery abort");
  EXPECT_FALSE(watch_.is_common());
  EXPECT_TRUE(FormationWatch(mailbox_, "v", "full", [](const Status&) {}).is_common());
}

TEST_F(FormationWatchTest, ManyEdgesHaveAShortMark) {
  std::vector<Topology::Edge> edges;
  for (std::uint32_t i = 1; i < 500; ++i) edges.emplace_back(i - 1, i);
  const auto mark = [&](const std::string& world) {
    WorldOptions options;
    options.topology = Topology::of_edges(edges);
    options.recovery = RecoveryPolicy::kAutomatic;
    FormationWatch watch(mailbox_, world, settings_of(options), [](const Status&) {});
    watch.tell(peer(0));
    return said().at(0);
  };
  const std::string first = mark("v");
  EXPECT_LE(first.size(), wire::kTopologyTextMax);
  EXPECT_NE(first.find("499 edges"), std::string::npos) << first;
  EXPECT_EQ(mark("u"), first);
  edges.back() = {0, 499};
  EXPECT_NE(mark("t"), first) << "of as many, but other ones";
}

}  // namespace
}  // namespace hawser::runtime
