#pragma once

// TestRanks, for tests: the peers of a world of three without agents, and a mailbox of one rank, whose words are kept.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "runtime/mailbox.h"

namespace hawser::runtime {

inline constexpr Instant kMoment = Instant::from_ns(1'000'000);

/// Keeps what is said to whom.
class KeepingCarrier final : public agent::Carrier {
 public:
  agent::Sent carry(agent::Session& session, std::uint32_t, std::span<const std::byte> head,
                    std::span<const std::byte> body) override {
    said.emplace_back(&session, std::string(base::as_text(head)) + std::string(base::as_text(body)));
    return agent::Sent::kYes;
  }
  void release_message(agent::Session&, std::uint32_t, std::size_t) override {}
  void serve(agent::Session&, Instant) override {}
  agent::Session* session_with(const Peer& peer, Status*) override { return core_of(peer)->session(); }
  bool can_fetch(agent::Session&) const override { return false; }
  bool fetch(agent::Session&, std::uint64_t, std::span<std::byte>) override { return false; }
  Instant now() const override { return moment; }
  void note_deadline() override {}
  void note_end() override {}

  Instant moment = kMoment;
  std::vector<std::pair<agent::Session*, std::string>> said;
};

class TestRanks : public testing::Test {
 protected:
  TestRanks() {
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      auto core = std::make_shared<agent::PeerCore>(std::weak_ptr<agent::Core>(), "rank", base::Id128{rank, 4});
      core->use().session = std::make_unique<agent::Session>(core, proto::NotifyLimits{}, inbox_, services_);
      cores_.push_back(core);
      ranks_.emplace_back(core);
    }
  }
  ~TestRanks() override {
    for (const auto& core : cores_) core->use().session.reset();  // A session and its peer own each other.
  }
  /// What that rank has been told.
  std::vector<wire::RuntimeMessage> told(std::size_t rank) {
    std::size_t work = 0;
    (void)mailbox_.pump(*cores_[rank]->session(), &work);
    std::vector<wire::RuntimeMessage> all;
    for (const auto& [session, bytes] : carrier_.said) {
      if (session == cores_[rank]->session()) all.push_back(wire::decode_runtime(base::as_bytes(bytes)).value());
    }
    return all;
  }

  KeepingCarrier carrier_;
  agent::Inbox inbox_{16};
  Mailbox mailbox_{carrier_};
  std::array<agent::Service*, 1> services_{&mailbox_};
  std::vector<std::shared_ptr<agent::PeerCore>> cores_;
  std::vector<Peer> ranks_;
};

}  // namespace hawser::runtime
