// Channels of a session over one QUIC connection, in virtual time: what is lost of one of them delays no other.

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "backend/quic/test_pair.h"
#include "backend/stream/machine.h"
#include "base/bytes.h"

namespace hawser::backend::quic {
namespace {

constexpr Duration kOneWay = std::chrono::milliseconds(2), kTick = std::chrono::microseconds(500);

/// What an agent has for its end of the path.
struct LinkEnd {
  explicit LinkEnd(bool is_apart)
      : machine(regions, events, nullptr, {.peer = "peer", .streams = 2, .is_apart = is_apart}) {}
  RegionTable regions{1};
  stream::EventQueue events;
  stream::Machine machine;
};

/// Sends messages on channels, and tells how long each took.
class Channels {
 public:
  Channels(bool is_apart, std::span<const wire::Link> links)
      : pair_(31, {.latency = kOneWay}), from_(is_apart), to_(is_apart) {
    EXPECT_TRUE(pair_.come_up());
    pair_.acceptor.connection->trust();
    pair_.tap = [this](int to, std::vector<std::byte>&) {
      if (to == 1 && to_lose_ > 0) return --to_lose_, false;
      return to == 0 || !is_losing_;
    };
    open(0);
    open(1);
    for (const wire::Link link : links) {
      if (is_apart && stream::has_own_stream(link)) open(stream::stream_of(link));
    }
  }

  /// `is_lost`: the datagram that has it is. It is sent again.
  void say(wire::Link link, bool is_lost) {
    const std::string text = std::to_string(sent_.size()) + ' ' + std::string(100, 'x');
    sent_.push_back({link, pair_.now()});
    ASSERT_TRUE(from_.machine.send(link, base::as_bytes(text), {}));
    is_losing_ = is_lost;
    write();
    pair_.opener.connection->settle(pair_.now());
    is_losing_ = false;
    pair_.run([this] { return read(), false; }, kTick);
  }
  /// A message on each at the same moment. `is_lost`: the first datagram that leaves is.
  void say_both(wire::Link one, wire::Link other, bool is_lost) {
    for (const wire::Link link : {one, other}) {
      const std::string text = std::to_string(sent_.size()) + ' ' + std::string(100, 'x');
      sent_.push_back({link, pair_.now()});
      ASSERT_TRUE(from_.machine.send(link, base::as_bytes(text), {}));
    }
    to_lose_ = is_lost ? 1 : 0;
    write();
    pair_.opener.connection->settle(pair_.now());
    to_lose_ = 0;
    pair_.run([this] { return read(), false; }, kTick);
  }
  /// Until all are there.
  bool finish() {
    return pair_.run([this] { return read(), came_ == sent_.size(); });
  }

  Duration p99(wire::Link link) const {
    std::vector<Duration> times;
    for (const Sent& each : sent_) {
      if (each.link == link) times.push_back(each.took);
    }
    std::ranges::sort(times);
    return times.at(times.size() * 99 / 100);
  }

 private:
  struct Sent {
    wire::Link link;
    Instant at;
    Duration took = Duration::zero();
  };

  void open(unsigned stream) {
    flows_[stream] = pair_.opener.connection->open_flow();
    if (stream == 0) return;
    from_.machine.open_stream(stream);
    to_.machine.open_stream(stream);
  }
  void write() {
    std::array<iovec, 64> parts;
    for (const auto& [stream, flow] : flows_) {
      while (from_.machine.fill(stream, 1 << 16)) {
        const std::size_t count = from_.machine.gather(stream, parts, 1 << 16);
        const std::size_t bytes = pair_.opener.connection->write(*flow, {parts.data(), count}, pair_.now());
        total_[stream] += bytes;
        from_.machine.sent(stream, bytes, total_[stream]);
        if (bytes == 0) break;
      }
    }
  }
  void read() {
    std::array<iovec, 64> parts;
    for (Flow* const opened : pair_.acceptor.opened) {
      const auto found = std::ranges::find_if(flows_, [&](const auto& each) { return each.second->id == opened->id; });
      while (true) {
        const std::size_t count = to_.machine.landing(found->first, parts, 1 << 16);
        const std::size_t bytes = pair_.acceptor.connection->read(*opened, {parts.data(), count});
        if (bytes == 0) break;
        EXPECT_TRUE(to_.machine.received(found->first, bytes).ok());
      }
    }
    std::array<PortEvent, 16> events;
    for (std::size_t count = to_.events.poll(events); count > 0; count = to_.events.poll(events)) {
      for (const PortEvent& event : std::span(events).first(count)) {
        Sent& sent = sent_.at(std::stoul(std::string(base::as_text(event.bytes))));
        sent.took = pair_.now() - sent.at;
        ++came_;
      }
    }
  }

  TestPair pair_;
  LinkEnd from_, to_;
  std::map<unsigned, Flow*> flows_;
  std::map<unsigned, std::uint64_t> total_;
  std::vector<Sent> sent_;
  std::size_t came_ = 0;
  bool is_losing_ = false;
  int to_lose_ = 0;  ///< So many of the next datagrams.
};

class QuicLinks : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (const auto library = ngtcp2(); !library) GTEST_SKIP() << library.error().to_string();
  }
  /// Messages on `one` and `other` by turns, each datagram with one on `one` lost by that chance: how long those on
  /// `other` take, the 99th percentile.
  static Duration p99_of_other(wire::Link one, wire::Link other, double lost, bool is_apart = true) {
    const std::array links = {one, other};
    Channels channels(is_apart, links);
    base::Rng rng(17);
    for (int i = 0; i < 1000; ++i) {
      channels.say(one, static_cast<double>(rng.below(1'000'000)) < lost * 1e6);
      channels.say(other, false);
    }
    EXPECT_TRUE(channels.finish());
    if (lost > 0) {
      EXPECT_GT(channels.p99(one), 2 * kOneWay) << "its messages were lost";
    }
    return channels.p99(other);
  }
};

TEST_F(QuicLinks, WhatIsLostOfOneChannelDelaysNoOther) {
  const auto on = [](std::uint32_t channel) { return wire::Link(Priority::kRealtime, channel); };
  const wire::Link bulk_one(Priority::kBulk, 16), bulk_other(Priority::kBulk, 17), critical(Priority::kCritical);
  const std::pair<wire::Link, wire::Link> cases[] = {{on(16), on(17)},       {on(18), on(19)},
                                                     {on(16), critical},     {critical, on(16)},
                                                     {bulk_one, bulk_other}, {Priority::kRealtime, critical}};
  for (const auto& [one, other] : cases) {
    const Duration undisturbed = p99_of_other(one, other, 0);
    EXPECT_GE(undisturbed, kOneWay);
    for (const double lost : {0.02, 0.2}) {
      const Duration disturbed = p99_of_other(one, other, lost);
      EXPECT_LE(disturbed.count(), undisturbed.count() * 3 / 2)
          << "links " << one.index() << " and " << other.index() << ", lost: " << lost;
    }
  }
}

// New bytes of two streams are never in one datagram.
TEST_F(QuicLinks, MessagesThatGoAtOnceAreNotLostTogether) {
  const wire::Link one(Priority::kRealtime, 16), other(Priority::kRealtime, 17);
  const auto p99_of_both = [&](bool is_lossy) {
    const std::array links = {one, other};
    Channels channels(true, links);
    base::Rng rng(18);
    for (int i = 0; i < 1000; ++i) channels.say_both(one, other, is_lossy && rng.below(5) == 0);
    EXPECT_TRUE(channels.finish());
    return std::pair(channels.p99(one), channels.p99(other));
  };
  const auto [undisturbed_one, undisturbed] = p99_of_both(false);
  const auto [disturbed_one, disturbed] = p99_of_both(true);
  EXPECT_LE(disturbed.count(), undisturbed.count() * 3 / 2);
  EXPECT_GT(disturbed_one, 2 * kOneWay) << "its messages were lost";
}

// So that the test above can fail: as it was before links had streams, and as it is within a group.
TEST_F(QuicLinks, WhatIsLostOfAStreamDelaysAllThatIsOnIt) {
  const wire::Link one(Priority::kRealtime, 16), other(Priority::kRealtime, 17);
  EXPECT_GT(p99_of_other(one, other, 0.2, false).count(), p99_of_other(one, other, 0, false).count() * 3 / 2);
  EXPECT_EQ(one, wire::Link(Priority::kRealtime, 20)) << "of the same group";
}

}  // namespace
}  // namespace hawser::backend::quic
