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
  EXPECT_EQ(pair.opener.connection->handshake().peer_key(), pair.acceptor.keys.public_key());
  EXPECT_EQ(pair.acceptor.connection->handshake().peer_key(), pair.opener.keys.public_key());
  const auto zero = pair.opener.connection->handshake().binding(0),
             four = pair.opener.connection->handshake().binding(4);
  EXPECT_EQ(*zero, *pair.acceptor.connection->handshake().binding(0));
  EXPECT_NE(*zero, *four);
  TestPair other(2);
  ASSERT_TRUE(other.come_up());
  EXPECT_NE(*zero, *other.opener.connection->handshake().binding(0));
  EXPECT_NE(pair.opener.connection->describe().find("QUIC v1"), std::string::npos);
}

TEST_F(QuicConnection, BytesArriveAsTheyWere) {
  for (const std::size_t size : {1u, 100u, 40'000u, 3'000'000u}) {
    TestPair pair(size);
    ASSERT_TRUE(pair.come_up());
    EXPECT_TRUE(carry(pair, stream_bytes(size))) << size;
  }
}

// A short one ends the batch that the kernel takes at once.
TEST_F(QuicConnection, BytesThatAreTakenAsTheyComeAreReadOnceAndInOrder) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    TestPair pair(seed, {.lost = 0.02, .late = 0.1});
    base::Rng rng(seed);
    ASSERT_TRUE(pair.come_up());
    Flow* const flow = pair.opener.connection->open_flow();
    std::vector<std::byte> bytes = stream_bytes(3'000'000), got;
    std::size_t at = 0, taken = 0;
    pair.acceptor.taker = [&](Flow& to, std::span<const std::byte> came) {
      EXPECT_TRUE(to.in.empty()) << "what came before goes first";
      const std::size_t count = rng.chance(0.3) ? 0 : rng.chance(0.5) ? came.size() : rng.below(came.size() + 1);
      got.insert(got.end(), came.begin(), came.begin() + static_cast<std::ptrdiff_t>(count));
      taken += count;
      return count;
    };
    EXPECT_TRUE(pair.run([&] {
      write_some(pair, pair.opener, *flow, bytes, at);
      if (!pair.acceptor.opened.empty() && rng.chance(0.5)) read_some(pair.acceptor, *pair.acceptor.opened[0], got);
      return got.size() >= bytes.size();
    }));
    EXPECT_EQ(got, bytes);
    EXPECT_GT(taken, 0u);
    EXPECT_LT(taken, bytes.size());
    EXPECT_EQ(pair.acceptor.opened[0]->placed, taken);
  }
}

TEST_F(QuicConnection, BytesThatAreTakenAsTheyComeFillNoWindow) {
  TestPair pair(4);
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(8'000'000);
  std::size_t at = 0, taken = 0;
  pair.acceptor.taker = [&](Flow&, std::span<const std::byte> came) { return taken += came.size(), came.size(); };
  EXPECT_TRUE(pair.run([&] {
    write_some(pair, pair.opener, *flow, bytes, at);
    return taken == bytes.size();
  })) << "nobody reads, and no window is full";
}

// As SendQueueTest and the simulator have it for pieces: here the memory changes as soon as it is released.
TEST_F(QuicConnection, LentBytesAreReleasedOnceTheyArrived) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    TestPair pair(seed, {.lost = 0.05, .late = 0.1}, {.is_lent = true});
    ASSERT_TRUE(pair.come_up());
    Flow* const flow = pair.opener.connection->open_flow();
    const std::vector<std::byte> bytes = stream_bytes(1'000'000);
    std::vector<std::byte> memory = bytes, got;
    std::size_t at = 0, released = 0;
    EXPECT_TRUE(pair.run([&] {
      write_some(pair, pair.opener, *flow, memory, at);
      for (; released < pair.opener.connection->released(*flow); ++released) memory[released] ^= std::byte{255};
      if (!pair.acceptor.opened.empty()) read_some(pair.acceptor, *pair.acceptor.opened[0], got);
      return released == bytes.size() && got.size() == bytes.size();
    }));
    EXPECT_EQ(got, bytes);
  }
}

TEST_F(QuicConnection, AStreamThatIsLeftBeforeItsBytesAreReleasedEndsTheConnection) {
  for (const bool abort : {false, true}) {
    TestPair pair(4, {}, {.is_lent = true});
    ASSERT_TRUE(pair.come_up());
    Flow* const flow = pair.opener.connection->open_flow();
    std::vector<std::byte> memory(100'000);
    const iovec part = {memory.data(), memory.size()};
    ASSERT_GT(pair.opener.connection->write(*flow, {&part, 1}, pair.now()), SendQueue::kLendMin);
    EXPECT_EQ(pair.opener.connection->released(*flow), 0u);
    pair.opener.connection->leave(*flow, abort, pair.now());
    EXPECT_EQ(pair.opener.connection->state(), State::kEnded) << "nothing is sent from that memory again";
    EXPECT_TRUE(pair.run([&] { return pair.acceptor.connection->state() == State::kEnded; }));
  }
}

// A peer that reads much and acknowledges nothing holds memory here while its connection lasts. (A path that waits for
// memory ends sooner; see StreamPath::watch_memory.)
TEST_F(QuicConnection, APeerThatAcknowledgesNothingHoldsLentBytesUntilTheIdleTimeout) {
  TestPair pair(6, {}, {.is_lent = true, .idle_timeout = std::chrono::seconds(5)});
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> memory(100'000);
  pair.tap = [](int to, std::vector<std::byte>&) { return to == 1; };
  const iovec part = {memory.data(), memory.size()};
  const std::size_t taken = pair.opener.connection->write(*flow, {&part, 1}, pair.now());
  EXPECT_FALSE(pair.run([&] { return pair.opener.connection->released(*flow) > 0; }, std::chrono::seconds(4)));
  EXPECT_TRUE(pair.run([&] { return pair.opener.connection->released(*flow) == taken; }, std::chrono::seconds(2)));
  EXPECT_EQ(pair.opener.connection->state(), State::kEnded);
}

// A peer cuts streams off whose bytes are under way, and some are lost. What was lent comes back, and others go on.
TEST_F(QuicConnection, LentBytesOfStreamsThatThePeerResetsAreReleased) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    TestPair pair(seed, {.lost = 0.1, .late = 0.1}, {.is_lent = true});
    ASSERT_TRUE(pair.come_up());
    for (int i = 0; i < 8; ++i) {
      Flow* const flow = pair.opener.connection->open_flow();
      ASSERT_NE(flow, nullptr);
      const std::size_t known = pair.acceptor.opened.size();
      std::vector<std::byte> memory = stream_bytes(200'000);
      std::size_t at = 0;
      ASSERT_TRUE(pair.run([&] {
        write_some(pair, pair.opener, *flow, memory, at);
        return pair.acceptor.opened.size() > known;
      }));
      pair.acceptor.connection->leave(*pair.acceptor.opened[known], true, pair.now());
      EXPECT_TRUE(pair.run([&] { return pair.opener.connection->released(*flow) == at; })) << seed;
      std::ranges::fill(memory, std::byte{0});
      pair.opener.connection->leave(*flow, true, pair.now());
      ASSERT_EQ(pair.opener.connection->state(), State::kUp) << pair.opener.connection->why().to_string();
    }
    EXPECT_TRUE(carry(pair, stream_bytes(200'000))) << seed;
  }
}

TEST_F(QuicConnection, AConnectionThatHasEndedRefersToNothing) {
  TestPair pair(5, {}, {.is_lent = true});
  ASSERT_TRUE(pair.come_up());
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> memory(100'000);
  const iovec part = {memory.data(), memory.size()};
  const std::size_t taken = pair.opener.connection->write(*flow, {&part, 1}, pair.now());
  pair.opener.connection->fail(Status(Code::kDisconnected, "gone"));
  EXPECT_EQ(pair.opener.connection->released(*flow), taken);
}

TEST_F(QuicConnection, DatagramsAreFullThoughTheirBytesLieInSeveralChunks) {
  constexpr std::size_t kBytes = 3'000'000, kHead = 64;
  for (const std::size_t datagram : {std::size_t{1452}, std::size_t{16'384}, std::size_t{40'000}}) {
    TestPair pair(21, {}, {.datagram_max = datagram, .is_probed = false, .is_paced = false});
    ASSERT_TRUE(pair.come_up());
    std::size_t count = 0;
    pair.tap = [&](int to, std::vector<std::byte>&) { return count += to == 1, true; };
    ASSERT_TRUE(carry(pair, stream_bytes(kBytes))) << datagram;
    // Beside full ones there is the last one of what `write` took each time.
    EXPECT_LE(count, kBytes / (datagram - kHead) + kBytes / 100'000) << datagram;
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
  EXPECT_LE(held, 7 * (usual.stream_window + SendQueue::kUnackedMax));
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
  std::size_t bulk_at = 0, got_bulk = 0, got_words = 0;
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
          if (flow->id == messages.id) got_words += got.size();  // One may come in two datagrams.
          if (got_words == word.size() * (times.size() + 1) && std::exchange(is_under_way, false)) {
            times.push_back(pair.now() - sent_at);
          }
        }
        return times.size() == kMessages;
      },
      std::chrono::seconds(60));
  EXPECT_EQ(times.size(), kMessages) << "lost: " << lost << "; " << pair.opener.connection->why().to_string() << "; "
                                     << pair.acceptor.connection->why().to_string() << "; "
                                     << pair.opener.connection->condition();
  EXPECT_GT(got_bulk, much.size()) << "there was bulk all the while";
  std::ranges::sort(times);
  return times.empty() ? Duration::max() : times[times.size() * 99 / 100];
}

// A lost datagram delays only the streams whose bytes it held, but for the network's share: after a loss the connection
// may send nothing for up to a round trip. The bound is of virtual time, so a busy machine changes nothing.
TEST_F(QuicConnection, LostBulkDelaysAMessageByOneRoundTripAtMost) {
  constexpr Duration kRoundTrip = 2 * kLatency;
  const Duration quiet = message_p99_beside_bulk(0);
  EXPECT_GE(quiet, kLatency);
  EXPECT_LE(quiet, kLatency + std::chrono::microseconds(50)) << "pacing, which later versions of ngtcp2 do to the ns";
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

TEST_F(QuicConnection, WhoLeavesAFullWindowUnreadLetsTheOtherEnd) {
  TestPair pair(14);
  ASSERT_TRUE(pair.come_up());
  pair.acceptor.connection->trust();
  Flow* const flow = pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(300'000);
  std::size_t at = 0;
  const auto stalls = [&] {
    write_some(pair, pair.opener, *flow, bytes, at);
    if (pair.acceptor.opened.empty()) return false;
    return pair.acceptor.opened[0]->in.size() == pair.acceptor.opened[0]->window.size();
  };
  ASSERT_TRUE(pair.run(stalls)) << "nobody reads, so the window fills";
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

/// Bytes of both ends, each of which writes and reads on all of its streams as it can.
bool exchange_all(TestPair& pair, std::size_t streams, std::size_t bytes, base::Rng& rng) {
  std::vector<std::byte> much = stream_bytes(bytes);
  struct End {
    TestPair::Side* side;
    Flow* flow = nullptr;
    std::size_t at = 0;
    std::vector<std::byte> got;
  };
  std::vector<End> ends;
  for (std::size_t i = 0; i < streams; ++i) ends.push_back({&pair.opener, pair.opener.connection->open_flow()});
  const auto go_on = [&] {
    for (std::size_t i = ends.size() - streams; i < pair.acceptor.opened.size(); ++i) {
      ends.push_back({&pair.acceptor, pair.acceptor.opened[i]});
    }
    std::size_t done = 0;
    for (End& end : ends) {
      write_some(pair, *end.side, *end.flow, much, end.at);
      if (rng.chance(0.3)) read_some(*end.side, *end.flow, end.got);
      if (end.got.size() == bytes && end.at == bytes) ++done;
    }
    return done == 2 * streams;
  };
  for (int i = 0; i < 10'000; ++i) {  // Somebody has to read the last ones, though nothing else happens.
    if (pair.run(go_on, std::chrono::milliseconds(2))) return true;
  }
  return false;
}

// ngtcp2 0.12 widened the windows of streams by itself, and forgot what it had told the peer.
TEST_F(QuicConnection, WindowsGrowWhileBothEndsSendAndReadAsTheyCan) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TestPair pair(seed, {.lost = 0.02, .latency = std::chrono::milliseconds(2)}, {.stream_window = 1 << 20});
    ASSERT_TRUE(pair.come_up());
    pair.acceptor.connection->trust();
    base::Rng rng(seed);
    ASSERT_TRUE(exchange_all(pair, 2, 1'000'000, rng))
        << "seed " << seed << ": " << pair.opener.connection->why().to_string() << ", "
        << pair.acceptor.connection->why().to_string();
    for (const auto& flow : pair.acceptor.connection->flows()) EXPECT_EQ(flow->window.size(), 1u << 20);
  }
}

/// Not every network takes it.
bool is_long(const std::vector<std::byte>& bytes) { return bytes.size() > 1200; }

// A network that takes smaller datagrams than it did when they were probed, and a peer that says that it is there.
TEST_F(QuicConnection, WhereLargeDatagramsArriveNoMoreSmallOnesGo) {
  for (const bool is_probed : {true, false}) {
    TestPair pair(31, {.latency = std::chrono::milliseconds(2)},
                  {.is_probed = is_probed, .keep_alive = std::chrono::milliseconds(100)});
    ASSERT_TRUE(pair.come_up());
    pair.acceptor.connection->trust();
    std::size_t long_ones = 0;
    pair.tap = [&](int, std::vector<std::byte>& bytes) {
      if (is_long(bytes)) ++long_ones;
      return true;
    };
    ASSERT_TRUE(carry(pair, stream_bytes(300'000)));
    ASSERT_GT(long_ones, 100u) << is_probed;
    std::size_t since = 0;
    pair.tap = [&](int, std::vector<std::byte>& bytes) {
      if (is_long(bytes)) ++since;
      return !is_long(bytes);
    };
    const Instant began = pair.now();
    EXPECT_TRUE(carry(pair, stream_bytes(1'000'000), std::chrono::seconds(30))) << is_probed;
    EXPECT_LT(pair.now() - began, std::chrono::seconds(3));
    EXPECT_LT(since, 200u);
  }
}

// Before, both went on for ever, and no user heard of it.
TEST_F(QuicConnection, WhatIsNotAcknowledgedForTheIdleTimeoutEndsItThoughThePeerIsHeard) {
  TestPair pair(32, {}, {.idle_timeout = std::chrono::seconds(4), .keep_alive = std::chrono::milliseconds(100)});
  ASSERT_TRUE(pair.come_up());
  pair.acceptor.connection->trust();
  ASSERT_TRUE(carry(pair, stream_bytes(1000)));
  // Only words of the peer's that the opener has to answer come, and none of its answers but those.
  pair.tap = [&](int to, std::vector<std::byte>& bytes) { return to == 0 || bytes.size() < 60; };
  const Instant began = pair.now();
  EXPECT_FALSE(carry(pair, stream_bytes(1'000'000), std::chrono::seconds(20)));
  EXPECT_EQ(pair.opener.connection->state(), State::kEnded);
  EXPECT_NE(pair.opener.connection->why().to_string().find("stands still"), std::string::npos)
      << pair.opener.connection->why().to_string();
  EXPECT_LT(pair.now() - began, std::chrono::seconds(21));
}

// ---- Other addresses.

class QuicMove : public QuicConnection {
 protected:
  static base::SocketAddress at(const char* host, std::uint16_t port) {
    return base::numeric_address({host, port}).value();
  }
  static const base::SocketAddress& opener_of(const TestPair& pair) { return pair.acceptor.connection->route().remote; }
  /// Both sides send `bytes` to each other; the opener a word every 250 ms beside, as sessions do. `step` is called
  /// with how many bytes have come in all. Whether all came, as they were.
  static bool exchange(TestPair& pair, std::vector<std::byte> bytes, const std::function<void(std::size_t)>& step) {
    Flow &there = *pair.opener.connection->open_flow(), &words = *pair.opener.connection->open_flow();
    std::vector<std::byte> hello = stream_bytes(1), told, to_acceptor, to_opener;
    std::size_t at = 0, back_at = 0, said = 0;
    Instant word_at = pair.now();
    const bool is_done = pair.run(
        [&] {
          if (pair.now() >= word_at) word_at = pair.now() + std::chrono::milliseconds(250), said = 0;
          write_some(pair, pair.opener, words, hello, said);
          write_some(pair, pair.opener, there, bytes, at);
          for (Flow* flow : pair.acceptor.opened) {
            if (flow->id == words.id) read_some(pair.acceptor, *flow, told);
            if (flow->id != there.id) continue;
            read_some(pair.acceptor, *flow, to_acceptor);
            write_some(pair, pair.acceptor, *flow, bytes, back_at);
          }
          read_some(pair.opener, there, to_opener);
          step(to_acceptor.size() + to_opener.size());
          return to_acceptor.size() >= bytes.size() && to_opener.size() >= bytes.size();
        },
        std::chrono::seconds(60));
    return is_done && to_acceptor == bytes && to_opener == bytes;
  }
  /// Up, and let in.
  static bool meet(TestPair& pair) {
    if (!pair.come_up()) return false;
    pair.acceptor.connection->trust();
    return carry(pair, stream_bytes(1000));
  }
};

TEST_F(QuicMove, ATransferGoesOnWhereTheOpenersHostGetsAnotherAddress) {
  TestPair pair(20);
  ASSERT_TRUE(meet(pair));
  const base::SocketAddress other = at("10.0.0.3", 1001);
  Instant moved_at = Instant::max(), followed_at = Instant::max();
  EXPECT_TRUE(exchange(pair, stream_bytes(6'000'000), [&](std::size_t came) {
    if (came > 1'000'000 && moved_at == Instant::max()) pair.home = other, moved_at = pair.now();
    if (is_same_address(opener_of(pair), other)) followed_at = std::min(followed_at, pair.now());
  }));
  ASSERT_NE(followed_at, Instant::max());
  EXPECT_LT(followed_at - moved_at, std::chrono::milliseconds(100));
  EXPECT_TRUE(is_same_address(pair.opener.connection->route().local, other));
  EXPECT_NE(pair.acceptor.connection->describe().find("10.0.0.3:1001"), std::string::npos);
  pair.run([] { return false; }, std::chrono::seconds(5));
  for (const TestPair::Side* side : {&pair.opener, &pair.acceptor}) {  // What the new route takes was probed again.
    EXPECT_NE(side->connection->condition().find("datagrams of 1444 bytes"), std::string::npos)
        << side->connection->condition();
  }
}

// An opener that only reads has nothing to be answered but its heartbeats.
TEST_F(QuicMove, WhoOnlyReadsGoesOn) {
  TestPair pair(21);
  ASSERT_TRUE(meet(pair));
  Flow& flow = *pair.opener.connection->open_flow();
  std::vector<std::byte> word = stream_bytes(1), bytes = stream_bytes(3'000'000), got;
  std::size_t said = 0, at_byte = 0;
  Instant word_at = pair.now();
  const std::size_t known = pair.acceptor.opened.size();
  EXPECT_TRUE(pair.run([&] {
    if (pair.now() >= word_at) word_at = pair.now() + std::chrono::milliseconds(250), said = 0;
    write_some(pair, pair.opener, flow, word, said);
    if (pair.acceptor.opened.size() > known) {
      write_some(pair, pair.acceptor, *pair.acceptor.opened[known], bytes, at_byte);
    }
    read_some(pair.opener, flow, got);
    if (got.size() > 1'000'000) pair.home = at("10.0.0.3", 1001);
    return got.size() >= bytes.size();
  }));
  EXPECT_EQ(got, bytes);
  EXPECT_TRUE(is_same_address(opener_of(pair), pair.home));
}

TEST_F(QuicMove, ManyMovesInBadWeatherLoseNothing) {
  for (std::uint64_t seed = 30; seed < 42; ++seed) {
    TestPair pair(seed, {.lost = 0.03, .doubled = 0.03, .changed = 0.02, .cut = 0.01, .late = 0.1});
    ASSERT_TRUE(meet(pair)) << seed;
    for (std::uint16_t move = 1; move <= 6; ++move) {
      EXPECT_TRUE(exchange(pair, stream_bytes(200'000),
                           [&](std::size_t came) {
                             if (came < 100'000u) return;
                             if (move % 2 == 0) {  // Something between them exchanges addresses, and then other ones.
                               pair.seen = at("10.9.0.1", static_cast<std::uint16_t>(5000 + move));
                             } else {
                               pair.home = at("10.0.0.3", static_cast<std::uint16_t>(1000 + move));
                             }
                           }))
          << seed << ", move " << move << ": " << pair.opener.connection->why().to_string();
      pair.run([] { return false; }, std::chrono::seconds(5));  // Two at once may be too much for a connection.
      EXPECT_TRUE(is_same_address(opener_of(pair), pair.seen.value_or(pair.home))) << seed << ", move " << move;
    }
  }
}

TEST_F(QuicMove, ATranslatorThatTakesAnotherPortIsFollowed) {
  TestPair pair(22);
  ASSERT_TRUE(meet(pair));
  const base::SocketAddress before = at("192.0.2.1", 4000), after = at("192.0.2.1", 4001);
  pair.seen = before;
  ASSERT_TRUE(carry(pair, stream_bytes(100'000)));
  ASSERT_TRUE(is_same_address(opener_of(pair), before));
  const Instant began = pair.now();
  EXPECT_TRUE(exchange(pair, stream_bytes(3'000'000), [&](std::size_t came) {
    if (came > 1'000'000) pair.seen = after;
  }));
  EXPECT_TRUE(is_same_address(opener_of(pair), after));
  EXPECT_TRUE(is_same_address(pair.opener.connection->route().local, pair.home)) << "it has not moved";
  EXPECT_LT(pair.now() - began, std::chrono::seconds(5));
}

// ngtcp2 0.12 had stopped its timer, because it may not send much to an address that has not answered, and what was
// under way filled the first window, which counts meanwhile.
TEST_F(QuicMove, AnAcceptorThatStandsStillWhileItChecksAnAddressGoesOnOrEndsIt) {
  TestPair pair(33, {.latency = std::chrono::milliseconds(2)}, {.keep_alive = std::chrono::milliseconds(200)});
  ASSERT_TRUE(meet(pair));
  Flow& flow = *pair.opener.connection->open_flow();
  std::vector<std::byte> word = stream_bytes(1), bytes = stream_bytes(3'000'000), told, got;
  std::size_t said = 0, at_byte = 0;
  const auto go_on = [&](std::size_t until) {
    return [&, until] {
      write_some(pair, pair.opener, flow, word, said);
      for (Flow* its : pair.acceptor.opened) {
        if (its->id != flow.id) continue;
        read_some(pair.acceptor, *its, told);
        write_some(pair, pair.acceptor, *its, bytes, at_byte);
      }
      read_some(pair.opener, flow, got);
      return got.size() >= until || pair.acceptor.connection->state() == State::kEnded;
    };
  };
  ASSERT_TRUE(pair.run(go_on(1'000'000)));
  pair.seen = at("10.0.0.1", 4001);
  pair.tap = [](int to, std::vector<std::byte>&) { return to == 1; };
  static_cast<void>(pair.run(go_on(bytes.size()), std::chrono::seconds(2)));
  pair.tap = nullptr;
  EXPECT_TRUE(pair.run(go_on(bytes.size()), std::chrono::seconds(20)));
  const Connection& acceptor = *pair.acceptor.connection;
  const bool is_told = acceptor.why().to_string().find("stands still") != std::string::npos;
  EXPECT_TRUE(got == bytes || (acceptor.state() == State::kEnded && is_told)) << acceptor.why().to_string();
}

// A stranger on the way can copy a datagram and send it from another address, before the datagram itself arrives.
TEST_F(QuicMove, ADatagramThatSomebodySendsFromElsewhereMovesNothing) {
  for (const bool is_first : {true, false}) {
    TestPair pair(23);
    ASSERT_TRUE(meet(pair));
    const base::SocketAddress stranger = at("203.0.113.9", 999);
    std::size_t spoofed = 0, sent_there = 0, count = 0;
    pair.tap = [&](int to, std::vector<std::byte>& bytes) {
      if (to == 0 || ++count % 50 != 0) return true;
      spoofed += bytes.size();
      pair.spoof(stranger, bytes);
      return is_first;  // The acceptor gets it once more, or not by its own way at all.
    };
    pair.astray = [&](const base::SocketAddress& address, std::size_t bytes) {
      if (is_same_address(address, stranger)) sent_there += bytes;
    };
    EXPECT_TRUE(exchange(pair, stream_bytes(2'000'000), [&](std::size_t) {
      EXPECT_TRUE(is_same_address(opener_of(pair), pair.home)) << "it followed an address that has not answered";
    })) << is_first;
    EXPECT_GT(spoofed, 10'000u);
    EXPECT_GT(sent_there, 0u) << "the address was asked";
    EXPECT_LE(sent_there, 3 * spoofed) << "RFC 9000, section 8.1";
  }
}

// With datagrams of a size that was given, ngtcp2 (0.12, 1.11) stopped the process here.
TEST_F(QuicMove, WhoIsBackBeforeTheOtherAddressHasAnsweredGoesOnWithoutProbesToo) {
  TestPair pair(29, {}, {.is_probed = false});
  ASSERT_TRUE(meet(pair));
  const base::SocketAddress stranger = at("203.0.113.9", 999);
  std::size_t count = 0;
  pair.tap = [&](int to, std::vector<std::byte>& bytes) {
    if (to == 1 && ++count % 50 == 0) pair.spoof(stranger, bytes);
    return true;
  };
  EXPECT_TRUE(exchange(pair, stream_bytes(500'000), [](std::size_t) {}));
  EXPECT_GE(count, 50u);
  EXPECT_TRUE(is_same_address(opener_of(pair), pair.home));
}

TEST_F(QuicMove, WhatIsChangedOrOldOrInventedIsNotEvenAskedAbout) {
  TestPair pair(24);
  ASSERT_TRUE(meet(pair));
  const base::SocketAddress stranger = at("203.0.113.9", 999);
  std::size_t sent_there = 0, spoofed = 0;
  std::vector<std::vector<std::byte>> heard;
  pair.tap = [&](int to, std::vector<std::byte>& bytes) {
    if (to == 1 && heard.size() < 100) heard.push_back(bytes);
    return true;
  };
  pair.astray = [&](const base::SocketAddress&, std::size_t bytes) { sent_there += bytes; };
  EXPECT_TRUE(exchange(pair, stream_bytes(500'000), [&](std::size_t came) {
    if (came < 100'000 || spoofed == heard.size()) return;
    std::vector<std::byte> bytes = heard[spoofed++];
    pair.spoof(stranger, bytes);  // Old.
    bytes.back() ^= std::byte{1};
    pair.spoof(stranger, bytes);
    randombytes_buf(bytes.data() + 1 + kIdBytes, bytes.size() - 1 - kIdBytes);
    pair.spoof(stranger, bytes);
  }));
  EXPECT_GT(spoofed, 10u);
  EXPECT_EQ(sent_there, 0u);
  EXPECT_TRUE(is_same_address(opener_of(pair), pair.home));
}

// Otherwise anybody who is answered at all could have others' addresses written to.
TEST_F(QuicMove, AnOpenerThatHasProvenNothingCannotMove) {
  TestPair pair(25);
  ASSERT_TRUE(pair.come_up());
  ASSERT_TRUE(carry(pair, stream_bytes(1000)));
  const base::SocketAddress before = pair.home;
  std::size_t astray = 0;
  pair.home = at("10.0.0.3", 1001);
  pair.astray = [&](const base::SocketAddress& address, std::size_t) {
    if (!is_same_address(address, before)) ++astray;
  };
  pair.seen = before;  // So that what the acceptor says to it arrives.
  std::vector<std::vector<std::byte>> heard;
  pair.tap = [&](int to, std::vector<std::byte>& bytes) {
    if (to == 0) return true;
    pair.spoof(pair.home, bytes);
    return false;
  };
  EXPECT_FALSE(carry(pair, stream_bytes(1000), std::chrono::seconds(2)));
  EXPECT_EQ(astray, 0u);
  EXPECT_TRUE(is_same_address(opener_of(pair), before));
}

TEST_F(QuicMove, AnOpenerThatTheAcceptorHasNotConfirmedYetCannotMove) {
  TestPair pair(26);
  ASSERT_TRUE(pair.run([&] { return pair.opener.connection->state() == State::kUp; }));
  const Route there = {.local = at("10.0.0.3", 1001), .remote = pair.opener.connection->route().remote};
  EXPECT_FALSE(pair.opener.connection->move_to(there, pair.now()));
  EXPECT_TRUE(is_same_address(pair.opener.connection->route().local, pair.home));
  ASSERT_TRUE(pair.come_up());
  EXPECT_TRUE(carry(pair, stream_bytes(1000)));
}

TEST_F(QuicMove, APeerThatIsGoneIsGivenUpThoughAddressesChange) {
  TestPair pair(27, {}, {.idle_timeout = std::chrono::seconds(15)});
  ASSERT_TRUE(meet(pair));
  pair.weather().lost = 1;
  Flow& flow = *pair.opener.connection->open_flow();
  std::vector<std::byte> bytes = stream_bytes(100'000);
  std::size_t sent = 0;
  std::uint16_t port = 2000;
  EXPECT_TRUE(pair.run([&] {
    write_some(pair, pair.opener, flow, bytes, sent);
    if (pair.opener.connection->is_unanswered()) pair.home = at("10.0.0.3", ++port);
    return pair.opener.connection->state() == State::kEnded;
  }));
  EXPECT_GE(port, 2003) << "it tried until the acceptor's ids were used up";
}

// Looking for another address costs calls of the kernel: an opener that is answered, or asks nothing, has no reason.
TEST_F(QuicMove, OneLostDatagramIsNoReasonToLookForAnotherAddress) {
  TestPair pair(27, {.latency = std::chrono::milliseconds(20)});
  ASSERT_TRUE(meet(pair));
  bool has_looked = false;
  const auto look = [&] { return has_looked = has_looked || pair.opener.connection->is_unanswered(); };
  pair.run(look, std::chrono::seconds(30));
  EXPECT_FALSE(has_looked) << "nothing is waited for";
  Flow& flow = *pair.opener.connection->open_flow();
  std::vector<std::byte> word = stream_bytes(2);
  const iovec first = {word.data(), 1}, second = {word.data() + 1, 1};
  int lost = 0, to_lose = 1;
  pair.tap = [&](int to, std::vector<std::byte>&) { return to == 0 || ++lost > to_lose; };
  EXPECT_EQ(pair.opener.connection->write(flow, {&first, 1}, pair.now()), 1u);
  pair.run(look, std::chrono::seconds(30));
  EXPECT_FALSE(has_looked) << "it asked once";
  EXPECT_GT(lost, to_lose);
  lost = 0, to_lose = 1000;
  const Instant began = pair.now();
  EXPECT_EQ(pair.opener.connection->write(flow, {&second, 1}, pair.now()), 1u);
  EXPECT_TRUE(pair.run(look, std::chrono::seconds(30)));
  EXPECT_GT(lost, 2) << "it asked twice";
  EXPECT_LT(pair.now() - began, std::chrono::milliseconds(500));
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
