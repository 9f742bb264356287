#pragma once

// TestSeat, for tests: the seat of rank 0 with its agent and mailbox, alone in its world or beside a rank 1 that does
// nothing, and requests whose operations are kept. Nobody drives the agent: whoever waits turns it.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/accord.h"
#include "runtime/failure_desk.h"
#include "runtime/rank_seat.h"
#include "runtime/requests.h"
#include "runtime/roster.h"

namespace hawser::runtime {

class TestSeat : public testing::Test {
 protected:
  static constexpr std::uint64_t kWorld = 5;

  /// Of 1 or 2 ranks.
  explicit TestSeat(std::uint32_t size = 1) {
    seat_ = RankSeat::open(options("lone"), std::nullopt).value();
    std::vector<Peer> peers{seat_->agent.self()};
    if (size == 2) {
      other_ = Agent::open(options("other")).value();
      peers.push_back(seat_->agent.add_peer(other_.card().value()).value());
    }
    roster_.set_root_ranks(size == 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{0});
    roster_.open(std::move(peers));
    requests_.open({.seat = seat_.get(), .patience = std::chrono::seconds(5), .handle = [this](auto operation) {
                      begun_.push_back(std::move(operation));
                      return Request();
                    }});
    accord_.emplace(kWorld, "lone", 0, roster_.peers(), *seat_->mailbox);
    failures_.open({.world = kWorld,
                    .name = "lone",
                    .roster = &roster_,
                    .mailbox = seat_->mailbox.get(),
                    .accord = &*accord_,
                    .heartbeat = std::chrono::seconds(1),
                    .peer_timeout = std::chrono::seconds(5)},
                   {.end_collectives = [](const Status&, Instant) {},
                    .end_waits_for = [](std::uint32_t, const Status&, Instant) {},
                    .end_calls = [](const Peer&) {},
                    .failed = [this] { ++failed_; },
                    .excluded = [](const Status&) {}});
  }
  ~TestSeat() override { static_cast<void>(seat_->agent.close(std::chrono::seconds(5))); }

  /// The operation of the last request.
  Operation& last() { return *begun_.back(); }
  /// It has ended, with that.
  Status end_of(Operation& operation) {
    const auto over = [&] { return operation.final.load(); };
    const Instant until = agent::inner::now(seat_->agent) + std::chrono::seconds(5);
    EXPECT_TRUE(agent::inner::wait_until(seat_->agent, over, until));
    return operation.status;
  }

  static AgentOptions options(const char* name) {
    AgentOptions options{.name = name, .backends = {{"loopback", {}}}};
    options.status_page = "off";
    return options;
  }

  std::shared_ptr<RankSeat> seat_;
  Agent other_;
  Roster roster_;
  Requests requests_;
  std::optional<Accord> accord_;
  FailureDesk failures_;
  int failed_ = 0;
  std::vector<std::shared_ptr<Operation>> begun_;
};

}  // namespace hawser::runtime
