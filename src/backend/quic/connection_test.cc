#include "backend/quic/connection.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "backend/quic/test_pair.h"
#include "base/test_folder.h"

namespace hawser::backend::quic {
namespace {

using State = Connection::State;

class QuicConnection : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (const auto library = ngtcp2(); !library) GTEST_SKIP() << library.error().to_string();
  }
};

std::vector<std::byte> stream_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761u >> 11);
  return bytes;
}

/// Writes as much of `bytes` from `at` as it takes.
void write_some(TestPair& pair, TestPair::Side& side, Flow& flow, std::vector<std::byte>& bytes, std::size_t& at) {
  if (at == bytes.size() || !flow.reset.ok()) return;
  const iovec part = {bytes.data() + at, bytes.size() - at};
  at += side.connection->write(flow, {&part, 1}, pair.now());
}

void read_some(TestPair::Side& side, Flow& flow, std::vector<std::byte>& bytes) {
  std::array<std::byte, 5000> room;
  const iovec part = {room.data(), room.size()};
  while (const std::size_t count = side.connection->read(flow, {&part, 1})) {
    bytes.insert(bytes.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

/// `bytes` go from the opener to the acceptor, as the first of that stream. Whether all arrived, as they were.
bool carry_on(TestPair& pair, Flow& flow, std::vector<std::byte> bytes, Duration patience) {
  const std::size_t known = pair.acceptor.opened.size();
  std::size_t at = 0;
  std::vector<std::byte> got;
  const bool done = pair.run(
      [&] {
        write_some(pair, pair.opener, flow, bytes, at);
        if (pair.acceptor.opened.size() > known) read_some(pair.acceptor, *pair.acceptor.opened[known], got);
        return got.size() >= bytes.size();
      },
      patience);
  return done && got == bytes;
}

/// On a new stream.
bool carry(TestPair& pair, std::vector<std::byte> bytes, Duration patience = std::chrono::seconds(60)) {
  Flow* const flow = pair.opener.connection->open_flow();
  return flow != nullptr && carry_on(pair, *flow, std::move(bytes), patience);
}

TEST_F(QuicConnection, BothEndsLearnTheOthersKeyAndShareANumberForEachStream) {
  TestPair pair(1);
  ASSERT_TRUE(pair.come_up());
  EXPECT_EQ(pair.opener.connection->tls().peer_key(), pair.acceptor.keys.public_key());
  EXPECT_EQ(pair.acceptor.connection->tls().peer_key(), pair.opener.keys.public_key());
  const auto zero = pair.opener.connection->tls().binding(0), four = pair.opener.connection->tls().binding(4);
  EXPECT_EQ(*zero, *pair.acceptor.connection->tls().binding(0));
  EXPECT_NE(*zero, *four);
  TestPair other(2);
  ASSERT_TRUE(other.come_up());
  EXPECT_NE(*zero, *other.opener.connection->tls().binding(0));
  EXPECT_NE(pair.opener.connection->describe().find("QUIC v1"), std::string::npos);
}

TEST_F(QuicConnection, BytesArriveAsTheyWere) {
  for (const std::size_t size : {1u, 100u, 40'000u, 3'000'000u}) {
    TestPair pair(size);
    ASSERT_TRUE(pair.come_up());
    EXPECT_TRUE(carry(pair, stream_bytes(size))) << size;
  }
}

TEST_F(QuicConnection, NothingTheWireDoesChangesWhatArrives) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    TestPair pair(seed, {.lost = 0.05, .doubled = 0.05, .changed = 0.03, .cut = 0.02, .late = 0.1});
    ASSERT_TRUE(pair.come_up()) << "seed " << seed << ": " << pair.opener.connection->why().to_string();
    EXPECT_TRUE(carry(pair, stream_bytes(400'000)))
        << "seed " << seed << ": " << pair.opener.connection->why().to_string();
  }
}

TEST_F(QuicConnection, AStreamThatNobodyReadsHoldsNoOtherBack) {
  TestPair pair(3);
  ASSERT_TRUE(pair.come_up());
  Flow& stuck = *pair.opener.connection->open_flow();
  std::vector<std::byte> much = stream_bytes(4'000'000);
  std::size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    write_some(pair, pair.opener, stuck, much, at);
    pair.run([] { return false; }, std::chrono::milliseconds(5));
  }
  EXPECT_LT(at, much.size()) << "its window bounds what lies at a peer that does not read";
  EXPECT_TRUE(carry(pair, stream_bytes(100'000)));
}

/// How much of `bytes` the opener's streams bring under way while nobody reads them.
std::size_t stall(TestPair& pair, std::span<Flow* const> flows, std::vector<std::byte>& bytes) {
  std::vector<std::size_t> at(flows.size());
  for (int i = 0; i < 100; ++i) {
    for (std::size_t s = 0; s < flows.size(); ++s) write_some(pair, pair.opener, *flows[s], bytes, at[s]);
    pair.run([] { return false; }, std::chrono::milliseconds(5));
  }
  std::size_t total = 0;
  for (const std::size_t each : at) total += each;
  return total;
}

/// Streams whose windows have grown, because they were read fast.
std::vector<Flow*> grown(TestPair& pair, std::size_t count, const std::vector<std::byte>& bytes) {
  std::vector<Flow*> flows;
  for (std::size_t s = 0; s < count; ++s) {
    flows.push_back(pair.opener.connection->open_flow());
    EXPECT_TRUE(carry_on(pair, *flows.back(), bytes, std::chrono::seconds(60))) << s;
  }
  return flows;
}

// A tensor that nobody takes at the moment fills its own stream's window, and never the connection's.
TEST_F(QuicConnection, StreamsThatAreNotReadAnyMoreHoldNoOtherBack) {
  TestPair pair(5);
  ASSERT_TRUE(pair.come_up());
  pair.acceptor.connection->trust();
  std::vector<std::byte> much = stream_bytes(6'000'000);
  const auto stuck = grown(pair, 7, much);
  const std::size_t held = stall(pair, stuck, much);
  const ConnectionOptions usual;
  EXPECT_GT(held, usual.window / 2) << "it is worth bounding";
  EXPECT_LE(held, 7 * (usual.stream_window + Flow::kUnackedMax));
  const Instant before = pair.now();
  EXPECT_TRUE(carry(pair, stream_bytes(100'000), std::chrono::seconds(2)));
  EXPECT_LT(pair.now() - before, std::chrono::milliseconds(100));
}

constexpr Duration kLatency = std::chrono::microseconds(500);

/// How long small messages on the first stream take while the second carries bulk, of whose datagrams `lost` are lost:
/// the 99th percentile, in virtual time.
Duration message_p99_beside_bulk(double lost) {
  constexpr std::size_t kMessages = 400;
  constexpr Duration kEvery = std::chrono::milliseconds(2);
  TestPair pair(7, {.latency = kLatency});
  EXPECT_TRUE(pair.come_up());
  pair.acceptor.connection->trust();
  base::Rng rng(8);
  pair.tap = [&](int to, std::vector<std::byte>& bytes) {
    const bool is_bulk = to == 1 && bytes.size() > 1000;
    return !is_bulk || static_cast<double>(rng.below(1'000'000)) >= lost * 1e6;
  };
  Flow &messages = *pair.opener.connection->open_flow(), &bulk = *pair.opener.connection->open_flow();
  std::vector<std::byte> word = stream_bytes(8), much = stream_bytes(1 << 20), got;
  std::vector<Duration> times;
  std::size_t bulk_at = 0, got_bulk = 0;
  Instant sent_at = pair.now();
  bool is_under_way = false, is_waiting = false;
  pair.run(
      [&] {
        std::size_t at = 0;
        if (!is_under_way && pair.now() >= sent_at + kEvery) sent_at = pair.now(), is_under_way = is_waiting = true;
        if (is_waiting) {  // First, as paths do it.
          write_some(pair, pair.opener, messages, word, at);
          is_waiting = at == 0;
        }
        if (bulk_at == much.size()) bulk_at = 0;
        write_some(pair, pair.opener, bulk, much, bulk_at);
        for (Flow* flow : pair.acceptor.opened) {
          got.clear();
          read_some(pair.acceptor, *flow, got);
          if (flow->id == bulk.id) got_bulk += got.size();
          if (flow->id == messages.id && got.size() == word.size() && std::exchange(is_under_way, false)) {
            times.push_back(pair.now() - sent_at);
          }
        }
        return times.size() == kMessages;
      },
      std::chrono::seconds(60));
  EXPECT_EQ(times.size(), kMessages);
  EXPECT_GT(got_bulk, much.size()) << "there was bulk all the while";
  std::ranges::sort(times);
  return times.empty() ? Duration::max() : times[times.size() * 99 / 100];
}

// What is lost of one stream delays no other one, but for the network's share: after a loss the connection may send
// nothing for up to a round trip. The bound is of virtual time, so a busy machine changes nothing.
TEST_F(QuicConnection, LostBulkDelaysAMessageByOneRoundTripAtMost) {
  constexpr Duration kRoundTrip = 2 * kLatency;
  const Duration quiet = message_p99_beside_bulk(0);
  EXPECT_EQ(quiet, kLatency);
  for (const double lost : {0.01, 0.05}) EXPECT_LE(message_p99_beside_bulk(lost), quiet + kRoundTrip) << lost;
}

TEST_F(QuicConnection, WhatAPeerThatIsKnownSendsUnreadIsBounded) {
  const ConnectionOptions options = {.window = 1 << 20, .stream_window = 1 << 20, .unread_max = 2 << 20};
  TestPair pair(6, {}, options);
  ASSERT_TRUE(pair.come_up());
  pair.acceptor.connection->trust();
  std::vector<std::byte> much = stream_bytes(5'000'000);
  const auto stuck = grown(pair, 10, much);
  static_cast<void>(stall(pair, stuck, much));
  std::size_t unread = 0;
  for (const auto& flow : pair.acceptor.connection->flows()) unread += flow->in.size();
  EXPECT_GT(unread, options.unread_max / 2);
  EXPECT_LE(unread, options.unread_max + options.window);
  const auto read_all = [&] {
    for (Flow* flow : pair.acceptor.opened) {
      std::vector<std::byte> got;
      read_some(pair.acceptor, *flow, got);
    }
    pair.acceptor.connection->settle(pair.now());
    return false;
  };
  pair.run(read_all, std::chrono::seconds(2));  // It goes on once they are read.
  EXPECT_TRUE(carry(pair, stream_bytes(300'000)));
}

TEST_F(QuicConnection, WhatItDoesIsLoggedByBothEndsWhereThatIsAskedFor) {
  const base::TestFolder folder("hawser-qlog");
  {
    TestPair pair(10, {}, {.qlog = folder.path()});
    ASSERT_TRUE(pair.come_up());
    ASSERT_TRUE(carry(pair, stream_bytes(100'000)));
    pair.opener.connection->close(pair.now(), false);
    pair.run([&] { return pair.acceptor.connection->state() == State::kEnded; });
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const char* const name : {"connection_started", "handshake_complete", "datagrams_sent", "datagrams_received",
                                   "data_moved", "metrics_updated", "connection_closed"}) {
      EXPECT_NE(text.find(name), std::string::npos) << entry.path() << ": " << name;
    }
    ++files;
  }
  EXPECT_EQ(files, 2);
}

TEST_F(QuicConnection, APeerThatHasForgottenItSaysSo) {
  TestPair pair(9);
  ASSERT_TRUE(pair.come_up());
  ASSERT_TRUE(carry(pair, stream_bytes(1000)));
  std::vector<std::byte> noise(ConnectionIds::kAnswerBytes, std::byte{0x42});
  pair.opener.connection->take(pair.opener.connection->route(), noise, pair.now());
  EXPECT_EQ(pair.opener.connection->state(), State::kUp) << "a stranger's word";
  pair.acceptor.connection.reset();
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(1000);
  std::size_t at = 0;
  write_some(pair, pair.opener, *flow, bytes, at);
  const Instant before = pair.now();
  ASSERT_TRUE(pair.run([&] { return pair.opener.connection->state() == State::kEnded; }));
  EXPECT_LT(pair.now() - before, std::chrono::milliseconds(10));
  EXPECT_EQ(pair.opener.connection->why().code(), Code::kDisconnected);
  EXPECT_NE(pair.opener.connection->why().to_string().find("does not know"), std::string::npos);
}

TEST_F(QuicConnection, WhatAStrangerSendsUnreadIsBounded) {
  TestPair pair(4);
  ASSERT_TRUE(pair.come_up());
  std::vector<std::vector<std::byte>> much(kStreamsPerConnection, stream_bytes(2'000'000));
  std::vector<std::size_t> at(kStreamsPerConnection);
  std::vector<Flow*> flows;
  for (unsigned i = 0; i < kStreamsPerConnection; ++i) {
    flows.push_back(pair.opener.connection->open_flow());
    ASSERT_NE(flows.back(), nullptr) << i;
  }
  EXPECT_EQ(pair.opener.connection->open_flow(), nullptr) << "one more than the peer allows";
  for (int i = 0; i < 20; ++i) {
    for (unsigned s = 0; s < kStreamsPerConnection; ++s) write_some(pair, pair.opener, *flows[s], much[s], at[s]);
    pair.run([] { return false; }, std::chrono::milliseconds(5));
  }
  std::size_t held = 0;
  for (const Flow* flow : pair.acceptor.opened) held += flow->in.size();
  EXPECT_GT(held, 0u);
  EXPECT_LE(held, 128u * 1024);
}

TEST_F(QuicConnection, AnEndAfterTheLastByteIsSeenBehindIt) {
  TestPair pair(5, {.lost = 0.1});
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(50'000), got;
  std::size_t at = 0;
  ASSERT_TRUE(pair.run([&] {
    write_some(pair, pair.opener, *flow, bytes, at);
    return at == bytes.size();
  }));
  pair.opener.connection->leave(*flow, false, pair.now());
  EXPECT_TRUE(pair.run([&] {
    if (pair.acceptor.opened.empty()) return false;
    read_some(pair.acceptor, *pair.acceptor.opened[0], got);
    return pair.acceptor.opened[0]->has_ended && got.size() == bytes.size();
  }));
  EXPECT_EQ(got, bytes);
  EXPECT_TRUE(pair.acceptor.opened[0]->reset.ok());
  EXPECT_TRUE(pair.run([&] { return pair.opener.connection->is_delivered(); }));
}

TEST_F(QuicConnection, WhoHasLeftReadsPastWhatComesSoThatTheOtherCanEnd) {
  TestPair pair(13);
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(300'000);
  std::size_t at = 0;
  write_some(pair, pair.opener, *flow, bytes, at);
  ASSERT_TRUE(pair.run([&] { return !pair.acceptor.opened.empty(); }));
  pair.acceptor.connection->leave(*pair.acceptor.opened[0], false, pair.now());
  EXPECT_TRUE(pair.run([&] {
    write_some(pair, pair.opener, *flow, bytes, at);
    return at == bytes.size() && flow->is_flushed() && flow->has_ended;
  }));
  EXPECT_TRUE(flow->reset.ok());
}

TEST_F(QuicConnection, AnAbortedStreamIsResetAtTheOtherEndAndTheOthersGoOn) {
  TestPair pair(6);
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(1000);
  std::size_t at = 0;
  write_some(pair, pair.opener, *flow, bytes, at);
  ASSERT_TRUE(pair.run([&] { return !pair.acceptor.opened.empty(); }));
  pair.opener.connection->leave(*flow, true, pair.now());
  EXPECT_TRUE(pair.run([&] { return !pair.acceptor.opened[0]->reset.ok(); }));
  EXPECT_EQ(pair.acceptor.opened[0]->reset.code(), Code::kDisconnected);
  EXPECT_TRUE(carry(pair, stream_bytes(1000)));
}

TEST_F(QuicConnection, AClosedConnectionEndsAtBothEnds) {
  TestPair pair(7);
  ASSERT_TRUE(pair.come_up());
  ASSERT_TRUE(carry(pair, stream_bytes(10)));
  pair.opener.connection->close(pair.now(), true);
  EXPECT_EQ(pair.opener.connection->state(), State::kEnded);
  ASSERT_TRUE(pair.run([&] { return pair.acceptor.connection->state() == State::kEnded; }));
  EXPECT_EQ(pair.acceptor.connection->why().code(), Code::kDisconnected);
  EXPECT_FALSE(pair.acceptor.opened[0]->reset.ok());
  EXPECT_EQ(pair.acceptor.ids, 0) << "an id was not given back";
}

TEST_F(QuicConnection, APeerThatFallsSilentIsGivenUpAfterTheIdleTimeout) {
  TestPair pair(8, {}, {.idle_timeout = std::chrono::seconds(2)});
  ASSERT_TRUE(pair.come_up());
  pair.weather().lost = 1;
  EXPECT_TRUE(pair.run([&] { return pair.opener.connection->state() == State::kEnded; }));
  EXPECT_EQ(pair.opener.connection->why().code(), Code::kDisconnected);
}

TEST_F(QuicConnection, AHandshakeThatNobodyAnswersEndsInTime) {
  TestPair pair(9, {.lost = 1}, {.handshake_timeout = std::chrono::seconds(3)});
  ASSERT_TRUE(pair.run([&] { return pair.opener.connection->state() == State::kEnded; }));
  EXPECT_EQ(pair.opener.connection->why().code(), Code::kTimedOut);
}

TEST_F(QuicConnection, WhatTheKernelDoesNotTakeNowGoesLater) {
  TestPair pair(10);
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(20'000), got;
  std::size_t at = 0;
  pair.opener.is_full = true;
  write_some(pair, pair.opener, *flow, bytes, at);
  EXPECT_TRUE(pair.opener.connection->is_blocked());
  pair.opener.is_full = false;
  pair.opener.connection->on_writable(pair.now());
  EXPECT_TRUE(pair.run([&] {
    write_some(pair, pair.opener, *flow, bytes, at);
    if (!pair.acceptor.opened.empty()) read_some(pair.acceptor, *pair.acceptor.opened[0], got);
    return got == bytes;
  }));
}

// ---- Before anything is proven.

class QuicDoor : public QuicConnection {
 protected:
  Doorkeeper keeper(TestPair& pair, const base::Id128& secret, bool has_identity = false) {
    return Doorkeeper(pair.acceptor.set.library,
                      {.secret = secret, .key = pair.acceptor.keys.public_key(), .has_identity = has_identity});
  }
  const base::Id128 secret_ = base::random_id128();
};

TEST_F(QuicDoor, WhoeverDoesNotShowTheCardGetsNoAnswer) {
  TestPair pair(11, {}, {.handshake_timeout = std::chrono::seconds(3)});
  Doorkeeper door = keeper(pair, secret_);
  pair.keeper = &door;
  int answers = 0;
  pair.tap = [&answers](int to, std::vector<std::byte>&) {
    if (to == 0) ++answers;
    return true;
  };
  ASSERT_TRUE(pair.run([&] { return pair.opener.connection->state() == State::kEnded; }));
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(pair.acceptor.connection, nullptr);
}

TEST_F(QuicDoor, AStrangerWhoMayShowAnIdentityHasToProveItsAddressFirst) {
  TestPair pair(12);
  Doorkeeper door = keeper(pair, secret_, true);
  pair.keeper = &door;
  EXPECT_TRUE(pair.come_up());
  EXPECT_TRUE(carry(pair, stream_bytes(1000)));
}

}  // namespace
}  // namespace hawser::backend::quic
