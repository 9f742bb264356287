// A process is killed in the midst of messages: what its peer is told that it had taken, it had taken.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::uint32_t kChannel = 16;
constexpr std::uint64_t kQuiet = 100, kBurst = 600;
/// What may have been taken from a ring beyond what is told, at most: the last messages of one look.
constexpr std::uint64_t kUntoldMax = 64;

std::optional<PeerEvent> down_event(Agent& agent) {
  std::optional<PeerEvent> found;
  eventually([&] {
    while (auto event = agent.take_event()) {
      if (event->kind == PeerEvent::Kind::kDown) found = std::move(event);
    }
    return found.has_value();
  });
  return found;
}

TEST_P(RealTest, WhatAKilledProcessHadTakenIsTold) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, std::size_t{60'000}}) {
    Here here(GetParam(), quick("here"));
    PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=0"));
    process.ask("channel " + std::to_string(kChannel) + " 4096");
    const Peer peer = here.meet(process);
    must(peer.connect(kPatience));
    const std::vector<std::byte> bytes(size, std::byte{7});
    std::uint64_t sent = 0;
    const auto send = [&] {
      const Result<std::uint64_t> number = peer.send(kChannel, bytes);
      if (!number) return number.error().code();
      EXPECT_EQ(*number, ++sent);
      return Code::kOk;
    };
    ASSERT_TRUE(eventually([&] {
      while (sent < kQuiet && send() == Code::kOk) continue;
      return sent == kQuiet && peer.acknowledged(kChannel) == kQuiet;
    })) << peer.acknowledged(kChannel)
        << " of " << sent << " are acknowledged";
    process.send("hold");
    for (std::uint64_t i = 0; i < kBurst; ++i) (void)send();
    const std::uint64_t taken = std::stoull(process.answer());
    const Instant later = now() + 100ms;
    eventually([&] { return now() >= later; });  // What it told has come.
    (void)send();
    process.kill();
    const std::optional<PeerEvent> event = down_event(here.agent());
    ASSERT_TRUE(event);
    ASSERT_EQ(event->acknowledged.size(), 1u);
    EXPECT_EQ(event->acknowledged, peer.acknowledged());
    const Acknowledged told = event->acknowledged.front();
    EXPECT_EQ(told.channel, kChannel);
    EXPECT_GE(told.number, kQuiet);
    EXPECT_LE(told.number, taken) << "of " << sent << " messages of " << size << " bytes";
    // Over a network a polled agent's last acknowledgements leave with its next turn, which never came.
    if (GetParam().backend == "shm") {
      EXPECT_LE(taken, told.number + kUntoldMax) << "of " << sent << " messages of " << size << " bytes";
    }
  }
}

}  // namespace
}  // namespace hawser::real
