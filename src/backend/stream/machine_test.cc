// The machine alone: frames cut anywhere, damaged anywhere, and what stays untouched.

#include "backend/stream/machine.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "backend/stream/frame_writer.h"
#include "backend/stream/machine_driver.h"
#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

constexpr std::size_t kMargin = 4096;
constexpr std::size_t kRegion = 64 * 1024;

RemoteRegionRef ref_of(const RegionEntry& region) {
  RemoteRegionRef ref;
  ref.index = region.index;
  ref.generation = region.generation;
  ref.key = region.key;
  return ref;
}

/// One end: a region with canaries around it, and a machine.
struct End {
  explicit End(unsigned streams = 2)
      : memory(kRegion + 2 * kMargin, std::byte{0xee}),
        regions(4),
        machine(regions, events, nullptr, {.peer = "peer", .streams = streams, .small_max = 4096}) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory.data() + kMargin;
    entry.size = kRegion;
    entry.rights = Rights::kReadWrite;
    region = regions.add(std::move(entry)).value();
    for (unsigned stream = 1; stream < streams; ++stream) machine.open_stream(stream);
  }
  RemoteRegionRef ref() const { return ref_of(*region); }
  /// Registers memory that may be read.
  std::shared_ptr<const RegionEntry> add_readable(std::span<std::byte> bytes) {
    RegionEntry entry;
    entry.key = {3, 4};
    entry.base = bytes.data();
    entry.size = bytes.size();
    entry.rights = Rights::kRead;
    return regions.add(std::move(entry)).value();
  }
  std::string log() {
    std::string text;
    std::array<PortEvent, 8> out;
    for (std::size_t count = events.poll(out); count > 0; count = events.poll(out)) {
      for (const PortEvent& event : std::span(out).first(count)) {
        if (event.kind == PortEvent::Kind::kMessage)
          text += "message " + std::string(base::as_text(event.bytes)) + "\n";
        if (event.kind == PortEvent::Kind::kArrival) text += "arrival " + std::to_string(event.chunk) + "\n";
        if (event.kind == PortEvent::Kind::kChunkDone) {
          text += "done " + std::to_string(event.cookie) + " " + std::string(to_string(event.status.code())) + "\n";
        }
      }
    }
    return text;
  }
  bool canaries_sing() const {
    const auto is_canary = [](std::byte byte) { return byte == std::byte{0xee}; };
    return std::all_of(memory.begin(), memory.begin() + kMargin, is_canary) &&
           std::all_of(memory.end() - kMargin, memory.end(), is_canary);
  }

  std::vector<std::byte> memory;
  RegionTable regions;
  EventQueue events;
  Machine machine;
  std::shared_ptr<const RegionEntry> region;
};

/// What an initiator with all kinds of requests puts on its two streams.
struct Sequence {
  Sequence() {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7);
    RemoteRegionRef ref = target.ref();
    Binding* binding = initiator.machine.bind(ref);
    ref.generation += 5;
    Binding* wrong = initiator.machine.bind(ref);
    add(Operation::kWrite, {{source.data(), 100, 8}}, binding);
    add(Operation::kWrite, {{source.data() + 50, 200, 100}, {source.data() + 7, 400, 30}}, binding);
    add(Operation::kWrite, {{source.data(), 1000, 600}, {source.data(), 3000, 600}, {source.data(), 5000, 600}},
        binding);
    add(Operation::kWrite, {{source.data(), 8000, 3000}}, binding);
    add(Operation::kWrite, {{source.data(), 1, 0}}, binding);
    add(Operation::kWrite, {{source.data(), 16000, 5000}, {source.data() + 9, 22000, 900}}, binding);
    add(Operation::kWrite, {{source.data(), 100, 900}}, wrong);
    add(Operation::kRead, {{back.data(), 100, 900}, {back.data() + 900, 5000, 20}}, binding);
    add(Operation::kRead, {{back.data() + 2000, 16000, 6000}}, binding);
    add(Operation::kRead, {{back.data(), kRegion - 1, 2}}, binding);
    initiator.machine.submit(chunks);
    EXPECT_TRUE(initiator.machine.send(Priority::kBulk, base::as_bytes("first "), base::as_bytes("message")));
    EXPECT_TRUE(initiator.machine.send(Priority::kCritical, {}, {}));
    EXPECT_TRUE(initiator.machine.ping(77));
    for (unsigned stream = 0; stream < 2; ++stream) bytes[stream] = drain(initiator.machine, stream);
  }
  void add(Operation op, std::vector<Piece> pieces, Binding* binding) {
    lists.push_back(std::make_unique<std::vector<Piece>>(std::move(pieces)));
    Chunk chunk;
    chunk.op = op;
    chunk.covered = op == Operation::kWrite;
    chunk.index = static_cast<std::uint32_t>(chunks.size());
    chunk.transfer = 1;
    chunk.cookie = chunks.size();
    chunk.target = binding;
    chunk.pieces = *lists.back();
    for (const Piece& piece : chunk.pieces) chunk.bytes += piece.size;
    chunks.push_back(chunk);
  }

  End target;  ///< Only tells what its region is called.
  End initiator;
  std::vector<std::byte> source = std::vector<std::byte>(8192), back = std::vector<std::byte>(16384);
  std::vector<std::unique_ptr<std::vector<Piece>>> lists;
  std::vector<Chunk> chunks;
  std::vector<std::byte> bytes[2];
};

std::multiset<std::string> lines(const std::string& text) {
  std::multiset<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    all.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

TEST(Machine, EverySplitPointGivesTheSame) {
  Sequence sequence;
  End whole;
  ASSERT_TRUE(deliver(whole.machine, 1, sequence.bytes[1]).ok());
  ASSERT_TRUE(deliver(whole.machine, 0, sequence.bytes[0]).ok());
  const auto expected = lines(whole.log());
  EXPECT_EQ(expected.size(), 6u + 2u);
  EXPECT_TRUE(whole.canaries_sing());
  for (unsigned stream = 0; stream < 2; ++stream) {
    const std::span<const std::byte> bytes = sequence.bytes[stream];
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      End end;
      ASSERT_TRUE(deliver(end.machine, 1 - stream, sequence.bytes[1 - stream]).ok());
      ASSERT_TRUE(deliver(end.machine, stream, bytes.first(cut)).ok()) << cut;
      ASSERT_TRUE(deliver(end.machine, stream, bytes.subspan(cut)).ok()) << cut;
      ASSERT_EQ(end.memory, whole.memory) << cut;
      ASSERT_EQ(lines(end.log()), expected) << cut;
    }
  }
}

TEST(Machine, WhatTheNetworkPutsInPlaceIsTheSame) {
  Sequence sequence;
  End whole;
  ASSERT_TRUE(deliver(whole.machine, 1, sequence.bytes[1]).ok());
  ASSERT_TRUE(deliver(whole.machine, 0, sequence.bytes[0]).ok());
  const auto expected = lines(whole.log());
  for (const std::size_t step : {1u, 2u, 3u, 5u, 13u, 100u, 700u, 3000u, 100000u}) {
    End end;
    for (unsigned stream = 0; stream < 2; ++stream) {
      const std::span<const std::byte> bytes = sequence.bytes[stream];
      for (std::size_t at = 0; at < bytes.size(); at += step) {
        const auto next = bytes.subspan(at, std::min(step, bytes.size() - at));
        ASSERT_TRUE(deliver_in_place(end.machine, stream, next).ok()) << step;
      }
    }
    EXPECT_EQ(end.memory, whole.memory) << step;
    EXPECT_EQ(lines(end.log()), expected) << step;
  }
}

TEST(Machine, AnswersComeBackWhereverTheyAreCut) {
  for (std::size_t step : {1u, 2u, 3u, 5u, 13u, 100u, 1000u, 100000u}) {
    Sequence sequence;
    End end;
    for (unsigned stream = 0; stream < 2; ++stream) {
      for (std::size_t at = 0; at < sequence.bytes[stream].size(); at += step) {
        const std::span<const std::byte> bytes(sequence.bytes[stream]);
        ASSERT_TRUE(deliver(end.machine, stream, bytes.subspan(at, std::min(step, bytes.size() - at))).ok());
      }
    }
    for (unsigned stream = 0; stream < 2; ++stream) {
      const std::vector<std::byte> answers = drain(end.machine, stream);
      for (std::size_t at = 0; at < answers.size(); at += step) {
        const std::span<const std::byte> bytes(answers);
        const Status status =
            deliver(sequence.initiator.machine, stream, bytes.subspan(at, std::min(step, bytes.size() - at)));
        ASSERT_TRUE(status.ok()) << status.to_string();
      }
    }
    const auto log = lines(sequence.initiator.log());
    EXPECT_EQ(log.size(), sequence.chunks.size());
    EXPECT_TRUE(log.contains("done 6 denied")) << *log.rbegin();
    EXPECT_TRUE(log.contains("done 9 invalid"));
    EXPECT_TRUE(std::equal(sequence.back.begin() + 2000, sequence.back.begin() + 7000, sequence.source.begin()));
    EXPECT_TRUE(end.machine.has_news());
    EXPECT_EQ(end.machine.take_news().ping_nonce, 77u);
  }
}

// One bit is flipped, or a stretch is cut out or doubled: the machine ends in an error or does something that the same
// peer might have asked for, and nothing outside of the region is touched.
TEST(Machine, DamageStaysInTheRegion) {
  Sequence sequence;
  base::Rng rng(9);
  int corrupt = 0;
  for (int round = 0; round < 4000; ++round) {
    End end;
    static_cast<void>(deliver(end.machine, 1, sequence.bytes[1]));
    std::vector<std::byte> bytes = sequence.bytes[0];
    const std::size_t at = rng.below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (rng.below(3)) {
      case 0:
        *place ^= static_cast<std::byte>(1u << rng.below(8));
        break;
      case 1:
        bytes.erase(place,
                    place + static_cast<std::ptrdiff_t>(rng.below(std::min<std::size_t>(40, bytes.size() - at))));
        break;
      default:
        bytes.insert(place, bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(rng.below(60)));
        break;
    }
    const Status status = deliver(end.machine, 0, bytes);
    corrupt += status.code() == Code::kCorrupt ? 1 : 0;
    ASSERT_TRUE(status.ok() || status.code() == Code::kCorrupt);
    ASSERT_TRUE(end.canaries_sing()) << round;
  }
  EXPECT_GT(corrupt, 400);
}

// A frame with a trailer is acknowledged by what that says, one without may be before its padding came.
TEST(Machine, AnAcknowledgementMayComeBeforeThePaddingWasSent) {
  for (const std::uint64_t size : {99u, 4001u}) {  // Copied into the frame, and referred to.
    const bool has_trailer = size > kInlineMax;
    End initiator(1), target(1);
    std::vector<std::byte> source(size, std::byte{5});
    const Piece piece{.local = source.data(), .remote = 0, .size = size};
    Chunk chunk;
    chunk.cookie = 42;
    chunk.target = initiator.machine.bind(target.ref());
    chunk.pieces = {&piece, 1};
    chunk.bytes = size;
    ASSERT_EQ(initiator.machine.submit({&chunk, 1}), 1u);
    ASSERT_TRUE(initiator.machine.fill(0, 1 << 20));
    std::array<iovec, 8> parts;
    const std::size_t count = initiator.machine.gather(0, parts, 1 << 20);
    std::vector<std::byte> bytes;
    for (const iovec& part : std::span(parts).first(count)) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      bytes.insert(bytes.end(), from, from + part.iov_len);
    }
    bytes.resize(bytes.size() - 1);
    initiator.machine.sent(0, bytes.size(), bytes.size());
    ASSERT_TRUE(deliver(target.machine, 0, bytes).ok());
    const std::vector<std::byte> answer = drain(target.machine, 0);
    EXPECT_EQ(answer.empty(), has_trailer);
    const Status acked = deliver(initiator.machine, 0, answer);
    EXPECT_TRUE(acked.ok()) << size << ": " << acked.to_string();
    const std::vector<std::byte> last = drain(initiator.machine, 0);
    EXPECT_EQ(last.size(), 1u);
    ASSERT_TRUE(deliver(target.machine, 0, last).ok());
    ASSERT_TRUE(deliver(initiator.machine, 0, drain(target.machine, 0)).ok());
    EXPECT_EQ(initiator.log(), "done 42 ok\n");
  }
}

TEST(Machine, AFloodOfReadsIsCorrupt) {
  End end, peer;
  std::vector<std::byte> back(16);
  const Piece piece{back.data(), 0, 8};
  Chunk chunk;
  chunk.op = Operation::kRead;
  chunk.transfer = 1;
  chunk.target = peer.machine.bind(end.ref());
  chunk.pieces = {&piece, 1};
  chunk.bytes = 8;
  std::uint32_t taken = 0;
  while (peer.machine.submit({&chunk, 1}) == 1) ++taken;
  EXPECT_EQ(taken, kReadsMax);
  const std::vector<std::byte> bytes = drain(peer.machine, 0);
  ASSERT_TRUE(deliver(end.machine, 0, bytes).ok());
  const std::size_t bind_size = wire::lead_size(28);
  const std::size_t read_size = (bytes.size() - bind_size) / taken;
  EXPECT_EQ(deliver(end.machine, 0, std::span(bytes).subspan(bind_size, read_size)).code(), Code::kCorrupt);
}

TEST(Machine, BulkLeavesRoomToSmallChunks) {
  std::vector<std::byte> local(1 << 20);
  const Piece large{local.data(), 0, local.size()}, small{local.data(), 0, 8};
  for (const Operation op : {Operation::kWrite, Operation::kRead}) {
    End end, peer;
    Chunk chunk;
    chunk.op = op;
    chunk.transfer = 1;
    chunk.target = peer.machine.bind(end.ref());
    chunk.pieces = {&large, 1};
    chunk.bytes = large.size;
    std::uint32_t taken = 0;
    while (peer.machine.submit({&chunk, 1}) == 1) ++taken;
    EXPECT_GT(taken, 50u);
    chunk.pieces = {&small, 1};
    chunk.bytes = small.size;
    EXPECT_EQ(peer.machine.submit({&chunk, 1}), 1u);
  }
}

TEST(Machine, MessagesWaitForTheLane) {
  End end, peer;
  std::size_t sent = 0;
  std::vector<std::byte> bytes;
  for (; sent < 3 * EventQueue::kMessagesMax; ++sent) {
    ASSERT_TRUE(peer.machine.send(Priority::kRealtime, base::as_bytes("x"), {}));
    const auto more = drain(peer.machine, 0);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  ASSERT_TRUE(deliver(end.machine, 0, bytes).ok());
  EXPECT_FALSE(end.machine.wants(0));
  EXPECT_EQ(lines(end.log()).size(), EventQueue::kMessagesMax);
  ASSERT_TRUE(end.machine.begin_turn().ok());
  EXPECT_EQ(lines(end.log()).size(), EventQueue::kMessagesMax);
}

TEST(Machine, BulkMessagesWaitForTheLaneToo) {
  End end, peer;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i <= EventQueue::kMessagesMax; ++i) {
    ASSERT_TRUE(peer.machine.send(Priority::kBulk, base::as_bytes("x"), {}));
    const auto more = drain(peer.machine, 1);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  ASSERT_TRUE(deliver(end.machine, 1, bytes).ok());
  EXPECT_FALSE(end.machine.wants(1));
  EXPECT_TRUE(end.machine.awaits_poll());
  EXPECT_EQ(lines(end.log()).size(), EventQueue::kMessagesMax);
  ASSERT_TRUE(end.machine.begin_turn().ok());
  EXPECT_TRUE(end.machine.wants(1));
  EXPECT_FALSE(end.machine.awaits_poll());
  EXPECT_EQ(end.log(), "message x\n");
}

TEST(Machine, BulkStepsAsideForMessagesThatSomebodyWaitsFor) {
  End end, peer;
  const auto send_is_small = [&](wire::Link link, Haste haste, unsigned stream) {
    EXPECT_TRUE(peer.machine.send(link, base::as_bytes("x"), {}, haste));
    const bool is_small = peer.machine.take_small();
    EXPECT_TRUE(deliver(end.machine, stream, drain(peer.machine, stream)).ok());
    EXPECT_EQ(end.machine.take_small(), is_small) << "both ends know";
    return is_small;
  };
  EXPECT_TRUE(send_is_small(Priority::kRealtime, Haste::kUsual, 0));
  EXPECT_FALSE(send_is_small(Priority::kRealtime, Haste::kAside, 0));
  EXPECT_FALSE(send_is_small(Priority::kCritical, Haste::kAside, 0));
  EXPECT_FALSE(send_is_small(Priority::kBulk, Haste::kUsual, 1));
  EXPECT_EQ(lines(end.log()).size(), 4u) << "all came";
}

TEST(Machine, BulkIsUnderWayFromItsSubmitToItsAcknowledgement) {
  std::vector<std::byte> local(8192);
  for (const std::uint64_t size : {std::uint64_t{4096}, std::uint64_t{4097}}) {
    const bool is_bulk = size > 4096;
    End end, peer;
    const Piece piece{local.data(), 0, size};
    Chunk chunk{.op = Operation::kWrite, .transfer = 1, .target = peer.machine.bind(end.ref()), .bytes = size};
    chunk.pieces = {&piece, 1};
    EXPECT_FALSE(peer.machine.moves_bulk());
    ASSERT_EQ(peer.machine.submit({&chunk, 1}), 1u);
    EXPECT_EQ(peer.machine.moves_bulk(), is_bulk);
    const unsigned stream = is_bulk ? 1 : 0;
    ASSERT_TRUE(deliver(end.machine, 0, drain(peer.machine, 0)).ok());
    const auto bytes = drain(peer.machine, stream);
    EXPECT_EQ(peer.machine.moves_bulk(), is_bulk) << "the target has not answered";
    const std::size_t half = bytes.size() / 2;
    ASSERT_TRUE(deliver(end.machine, stream, std::span(bytes).first(half)).ok());
    EXPECT_EQ(end.machine.moves_bulk(), is_bulk);
    ASSERT_TRUE(deliver(end.machine, stream, std::span(bytes).subspan(half)).ok());
    EXPECT_FALSE(end.machine.moves_bulk());
    end.machine.flush();
    ASSERT_TRUE(deliver(peer.machine, 0, drain(end.machine, 0)).ok());
    EXPECT_FALSE(peer.machine.moves_bulk());
  }
}

TEST(Machine, ABulkMessageOvertakesNone) {
  End end, peer;
  ASSERT_TRUE(peer.machine.send(Priority::kRealtime, base::as_bytes("before"), {}));
  ASSERT_TRUE(peer.machine.send(Priority::kBulk, base::as_bytes("bulk"), {}));
  ASSERT_TRUE(peer.machine.send(Priority::kBulk, {}, {}));
  ASSERT_TRUE(deliver(end.machine, 1, drain(peer.machine, 1)).ok());
  EXPECT_EQ(end.log(), "");
  EXPECT_FALSE(end.machine.wants(1)) << "what is behind it waits, too";
  EXPECT_FALSE(end.machine.awaits_poll()) << "the lane cannot help";
  ASSERT_TRUE(deliver(end.machine, 0, drain(peer.machine, 0)).ok());
  EXPECT_EQ(end.log(), "message before\nmessage bulk\nmessage \n");
  EXPECT_TRUE(end.machine.wants(1));
}

TEST(Machine, AnUrgentMessageOvertakesBulk) {
  End end, peer;
  ASSERT_TRUE(peer.machine.send(Priority::kBulk, base::as_bytes("bulk"), {}));
  ASSERT_TRUE(peer.machine.send(Priority::kCritical, base::as_bytes("urgent"), {}));
  ASSERT_TRUE(deliver(end.machine, 0, drain(peer.machine, 0)).ok());
  EXPECT_EQ(end.log(), "message urgent\n");
  ASSERT_TRUE(deliver(end.machine, 1, drain(peer.machine, 1)).ok());
  EXPECT_EQ(end.log(), "message bulk\n");
}

TEST(Machine, AGoodbyeWaitsForBulkMessages) {
  End end, peer;
  ASSERT_TRUE(peer.machine.send(Priority::kBulk, base::as_bytes("bulk"), {}));
  peer.machine.bye(Code::kDisconnected, "closed");
  EXPECT_TRUE(peer.machine.has_last_words());
  ASSERT_TRUE(deliver(end.machine, 0, drain(peer.machine, 0)).ok());
  EXPECT_TRUE(peer.machine.has_last_words()) << "the message is on the other stream";
  EXPECT_FALSE(end.machine.has_news());
  EXPECT_TRUE(end.machine.awaits_words());
  EXPECT_FALSE(end.machine.take_news().bye.has_value());
  ASSERT_TRUE(deliver(end.machine, 1, drain(peer.machine, 1)).ok());
  EXPECT_FALSE(peer.machine.has_last_words());
  ASSERT_TRUE(end.machine.has_news());
  const ControlNews news = end.machine.take_news();
  ASSERT_TRUE(news.bye.has_value());
  EXPECT_EQ(news.bye->reason, "closed");
  EXPECT_FALSE(end.machine.has_news());
  EXPECT_FALSE(end.machine.awaits_words());
}

TEST(Machine, AGoodbyeWaitsForNothingOnceNoMoreCanCome) {
  End end, peer;
  ASSERT_TRUE(peer.machine.send(Priority::kBulk, base::as_bytes("bulk"), {}));
  peer.machine.bye(Code::kDisconnected, "closed");
  ASSERT_TRUE(deliver(end.machine, 0, drain(peer.machine, 0)).ok());
  EXPECT_FALSE(end.machine.take_news().bye.has_value());
  EXPECT_TRUE(end.machine.take_news(true).bye.has_value());
}

/// A write that waits for a stream of bulk.
struct LargeWrite {
  static constexpr std::size_t kSize = 8192;
  LargeWrite(End& from, const End& to) {
    const Chunk chunk{.cookie = 1, .target = from.machine.bind(to.ref()), .pieces = {&piece, 1}, .bytes = kSize};
    EXPECT_EQ(from.machine.submit({&chunk, 1}), 1U);
  }
  std::vector<std::byte> source = std::vector<std::byte>(kSize);
  Piece piece{source.data(), 0, kSize};
};

TEST(Machine, NothingBeginsAfterAGoodbye) {
  End end, peer;
  const LargeWrite write(peer, end);
  peer.machine.bye(Code::kDisconnected, "closed");
  EXPECT_TRUE(drain(peer.machine, 1).empty());
}

TEST(Machine, BulkMessagesLeaveChunksTheirTurn) {
  End end, peer;
  const LargeWrite write(peer, end);
  const std::vector<std::byte> message(kMessagesAhead / 8);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(peer.machine.send(Priority::kBulk, message, {}));
    // The stream takes what there is before it runs dry.
    std::array<iovec, 64> parts;
    const std::size_t count = peer.machine.gather(1, parts, 1 << 20);
    std::uint64_t size = 0;
    for (const iovec& part : std::span(parts).first(count)) size += part.iov_len;
    peer.machine.sent(1, size, UINT64_MAX);
    if (i < 8) {
      EXPECT_EQ(size, message.size() + wire::lead_size(wire::kAheadSize)) << i;
    } else {
      EXPECT_GT(size, message.size() + LargeWrite::kSize) << "the chunk goes before this message";
    }
  }
}

TEST(Machine, BulkMessagesHaveOneStreamOrTheFirst) {
  EventQueue events;
  RegionTable regions(1);
  Machine peer(regions, events, nullptr, {.peer = "peer", .streams = 3, .small_max = 4096});
  ASSERT_TRUE(peer.send(Priority::kBulk, base::as_bytes("early"), {}));
  peer.open_stream(2);
  peer.open_stream(1);
  ASSERT_TRUE(peer.send(Priority::kBulk, base::as_bytes("late"), {}));
  End end(3);
  const auto late = drain(peer, 2);
  ASSERT_TRUE(deliver(end.machine, 2, late).ok());
  EXPECT_EQ(end.log(), "") << "it waits for the one that went on stream 0";
  ASSERT_TRUE(deliver(end.machine, 0, drain(peer, 0)).ok());
  EXPECT_EQ(end.log(), "message early\nmessage late\n");
  EXPECT_TRUE(drain(peer, 1).empty());
  EXPECT_EQ(deliver(end.machine, 1, late).code(), Code::kCorrupt) << "they keep the stream of the first";
}

TEST(Machine, ABulkMessageTellsWhatIsBeforeIt) {
  End plain, peer;
  ASSERT_TRUE(peer.machine.send(Priority::kRealtime, base::as_bytes("x"), {}));
  EXPECT_EQ(deliver(plain.machine, 1, drain(peer.machine, 0)).code(), Code::kCorrupt);
  End telling;
  ASSERT_TRUE(peer.machine.send(Priority::kBulk, base::as_bytes("x"), {}));
  EXPECT_EQ(deliver(telling.machine, 0, drain(peer.machine, 1)).code(), Code::kCorrupt);
}

TEST(Machine, AnUnboundRegionIsNamedNoMore) {
  End end, peer;
  Piece piece{peer.memory.data(), 0, 8};
  Chunk chunk;
  chunk.transfer = 1;
  chunk.pieces = {&piece, 1};
  chunk.bytes = 8;
  for (int round = 0; round < 100; ++round) {
    chunk.target = peer.machine.bind(end.ref());
    ASSERT_EQ(peer.machine.submit({&chunk, 1}), 1u);
    peer.machine.unbind(end.region->index, end.region->generation);
    ASSERT_TRUE(deliver(end.machine, 0, drain(peer.machine, 0)).ok());
    ASSERT_TRUE(deliver(peer.machine, 0, drain(end.machine, 0)).ok());
    EXPECT_EQ(peer.log(), "done 0 ok\n");
  }
}

/// A machine that writes and one that is written to, with streams whose bytes are delivered when the test says so.
struct Given {
  explicit Given(std::uint64_t size, bool again = false) : source(size, std::byte{5}), piece{source.data(), 0, size} {
    chunk.covered = true;
    chunk.again = again;
    chunk.index = 7;
    chunk.transfer = 1;
    chunk.cookie = 42;
    chunk.target = initiator.machine.bind(target.ref());
    chunk.pieces = {&piece, 1};
    chunk.bytes = size;
    EXPECT_EQ(initiator.machine.submit({&chunk, 1}), 1u);
  }
  /// The next bytes of the initiator's stream 1, at most `most`.
  std::vector<std::byte> take(std::size_t most) {
    std::vector<std::byte> bytes;
    std::array<iovec, 64> parts;
    while (bytes.size() < most && initiator.machine.fill(1, most - bytes.size())) {
      const std::size_t count = initiator.machine.gather(1, parts, most - bytes.size());
      std::size_t sent = 0;
      for (const iovec& part : std::span(parts).first(count)) {
        const auto* from = static_cast<const std::byte*>(part.iov_base);
        bytes.insert(bytes.end(), from, from + part.iov_len);
        sent += part.iov_len;
      }
      total += sent;
      initiator.machine.sent(1, sent, total);
    }
    return bytes;
  }
  void answer() { ASSERT_TRUE(deliver(initiator.machine, 0, drain(target.machine, 0)).ok()); }
  bool is_touched() const {
    return std::any_of(target.memory.begin(), target.memory.end(), [](std::byte b) { return b != std::byte{0xee}; });
  }

  End initiator, target;
  std::vector<std::byte> source;
  Piece piece;
  Chunk chunk;
  std::uint64_t total = 0;
};

// Version 1 copied the rest of the payload and had no word for a write that was given up midway: it arrived.
TEST(Trials, AVoidWriteCountsAsNoArrival) {
  Given given(40000);
  const std::vector<std::byte> first = given.take(10000);
  given.initiator.machine.cancel(1);
  std::fill(given.source.begin(), given.source.end(), std::byte{0x77});  // Quiet from now on.
  const std::vector<std::byte> rest = given.take(1 << 20);
  EXPECT_GE(rest.size(), 30000u) << "the frame is completed";
  ASSERT_TRUE(deliver(given.target.machine, 1, first).ok());
  ASSERT_TRUE(deliver(given.target.machine, 1, rest).ok());
  EXPECT_EQ(given.target.log(), "");
  EXPECT_EQ(std::count(given.target.memory.begin(), given.target.memory.end(), std::byte{0x77}), 0);
  std::array<PortEvent, 8> events;
  given.answer();
  ASSERT_EQ(given.initiator.events.poll(events), 1u);
  EXPECT_EQ(events[0].status.code(), Code::kCancelled);
  EXPECT_EQ(events[0].status.buffer(), BufferState::kPartlyWritten);
  EXPECT_FALSE(given.initiator.machine.awaits_memory());
}

// The bulk is still in a socket, and the answer comes all the same, by the first stream. What comes late lands nowhere.
TEST(Trials, AGivenUpWriteIsFencedByAnAnswer) {
  for (const std::size_t sent : {100u, 20000u, 1u << 20}) {
    Given given(40000);
    const std::vector<std::byte> first = given.take(sent);
    given.initiator.machine.cancel(1);
    ASSERT_TRUE(deliver(given.target.machine, 0, drain(given.initiator.machine, 0)).ok());
    given.answer();
    EXPECT_EQ(given.initiator.log(), "done 42 cancelled\n") << sent;
    EXPECT_FALSE(given.initiator.machine.awaits_memory());
    ASSERT_TRUE(deliver(given.target.machine, 1, first).ok());
    ASSERT_TRUE(deliver(given.target.machine, 1, given.take(1 << 20)).ok());
    EXPECT_FALSE(given.is_touched()) << sent;
    EXPECT_EQ(given.target.log(), "");
    given.answer();
    EXPECT_EQ(given.initiator.log(), "");
    EXPECT_EQ(given.initiator.machine.chunks_in_flight(), 0u);
  }
}

TEST(Trials, AGivenUpWriteIsStoppedWhereItIs) {
  Given given(40000);
  ASSERT_TRUE(deliver(given.target.machine, 1, given.take(20000)).ok());
  given.initiator.machine.cancel(1);
  ASSERT_TRUE(deliver(given.target.machine, 0, drain(given.initiator.machine, 0)).ok());
  const std::vector<std::byte> frozen = given.target.memory;
  given.answer();
  std::array<PortEvent, 8> events;
  ASSERT_EQ(given.initiator.events.poll(events), 1u);
  EXPECT_EQ(events[0].status.buffer(), BufferState::kPartlyWritten);
  ASSERT_TRUE(deliver(given.target.machine, 1, given.take(1 << 20)).ok());
  EXPECT_EQ(given.target.memory, frozen);
  given.answer();
  EXPECT_EQ(given.initiator.machine.chunks_in_flight(), 0u);
}

// Nobody answers: the write ends as unknown, its memory is quiet, the path goes on, and nothing newer is written to
// where its bytes may still land.
TEST(Trials, AWriteThatNobodyAnswersEndsAsUnknown) {
  Given given(40000);
  const std::vector<std::byte> first = given.take(20000);
  given.initiator.machine.cancel(1);
  EXPECT_TRUE(given.initiator.machine.next_memory_period());
  EXPECT_EQ(given.initiator.log(), "") << "its first period has just begun";
  EXPECT_TRUE(given.initiator.machine.next_memory_period());
  std::array<PortEvent, 8> events;
  ASSERT_EQ(given.initiator.events.poll(events), 1u);
  EXPECT_EQ(events[0].status.buffer(), BufferState::kUnknown);
  EXPECT_TRUE(events[0].unsettled);
  EXPECT_FALSE(given.initiator.machine.awaits_memory());
  Chunk next = given.chunk;
  next.transfer = 2;
  EXPECT_EQ(given.initiator.machine.submit({&next, 1}), 0u);
  EXPECT_NE(given.initiator.machine.last_full().find("without the peer's answer"), std::string_view::npos);
  ASSERT_TRUE(deliver(given.target.machine, 0, drain(given.initiator.machine, 0)).ok());
  given.answer();
  EXPECT_EQ(given.initiator.machine.submit({&next, 1}), 1u);
  ASSERT_TRUE(deliver(given.target.machine, 1, first).ok());
  ASSERT_TRUE(deliver(given.target.machine, 1, given.take(1 << 20)).ok());
  given.answer();
  EXPECT_EQ(given.initiator.log(), "done 42 ok\n");
  EXPECT_EQ(given.target.log(), "arrival 7\n");
}

// It had landed by a path that was lost, and was counted: filler behind what was sent of it again tore the bytes that
// the peer was told of.
TEST(Trials, AWriteThatIsSentAgainIsNeverTorn) {
  for (const std::size_t sent : {std::size_t{100}, std::size_t{10'000}, std::size_t{39'999}}) {
    Given given(40'000, true);
    std::fill_n(given.target.memory.begin() + kMargin, 40'000, std::byte{5});  // As it landed the first time.
    const std::vector<std::byte> first = given.take(sent);
    given.initiator.machine.cancel(1);
    std::fill(given.source.begin(), given.source.end(), std::byte{0x77});  // The memory is the user's again.
    ASSERT_TRUE(deliver(given.target.machine, 1, first).ok());
    ASSERT_TRUE(deliver(given.target.machine, 1, given.take(1 << 20)).ok());
    EXPECT_EQ(std::count(given.target.memory.begin(), given.target.memory.end(), std::byte{5}), 40'000) << sent;
    EXPECT_EQ(given.target.log(), "arrival 7\n") << sent;
    given.answer();
    std::array<PortEvent, 8> events;
    ASSERT_EQ(given.initiator.events.poll(events), 1u) << sent;
    EXPECT_EQ(events[0].status.code(), Code::kCancelled);
    EXPECT_EQ(events[0].status.buffer(), BufferState::kComplete);
    EXPECT_FALSE(given.initiator.machine.awaits_memory());
    EXPECT_EQ(given.initiator.machine.chunks_in_flight(), 0u);
  }
}

// A read in several frames: after its cancel the list of its pieces is the user's again, and was looked at with each
// frame that still came.
TEST(Trials, DataOfACancelledReadLooksAtNoPiece) {
  constexpr std::uint64_t kLarge = 4 * wire::kDataMax;
  for (const std::size_t before : {std::size_t{0}, std::size_t{300'000}, std::size_t{2 * wire::kDataMax}}) {
    End reader, owner;
    std::vector<std::byte> large(kLarge, std::byte{0x33});
    std::vector<std::byte> back(kLarge, std::byte{0x11});
    const auto region = owner.add_readable(large);
    auto pieces = std::make_unique<std::vector<Piece>>();
    for (std::uint64_t at = 0; at < kLarge; at += 4096) pieces->push_back({back.data() + at, at, 4096});
    Chunk chunk;
    chunk.op = Operation::kRead;
    chunk.transfer = 1;
    chunk.cookie = 42;
    chunk.target = reader.machine.bind(ref_of(*region));
    chunk.pieces = *pieces;
    chunk.bytes = kLarge;
    ASSERT_EQ(reader.machine.submit({&chunk, 1}), 1u);
    ASSERT_TRUE(deliver(owner.machine, 0, drain(reader.machine, 0)).ok());
    const std::vector<std::byte> answer = drain(owner.machine, 1);
    ASSERT_GT(answer.size(), kLarge);
    ASSERT_TRUE(deliver(reader.machine, 1, std::span(answer).first(before)).ok());
    reader.machine.cancel(1);
    EXPECT_EQ(reader.log(), "done 42 cancelled\n") << before;
    std::ranges::fill(*pieces, Piece{nullptr, 0, 1});
    pieces.reset();  // AddressSanitizer sees who reads it.
    std::ranges::fill(back, std::byte{0x77});
    ASSERT_TRUE(deliver(reader.machine, 1, std::span(answer).subspan(before)).ok()) << before;
    EXPECT_EQ(std::ranges::count(back, std::byte{0x77}), static_cast<std::ptrdiff_t>(kLarge)) << before;
    EXPECT_EQ(reader.log(), "") << before;
    EXPECT_EQ(reader.machine.chunks_in_flight(), 0u) << before;
  }
}

// Answers of 16 MiB to a reader that does not read were copied whole when their region closed.
TEST(Trials, AnswersOfAClosedRegionAreNotCopied) {
  constexpr std::uint64_t kLarge = 16u << 20;
  End reader, owner;
  std::vector<std::byte> large(kLarge, std::byte{0x33});
  std::vector<std::byte> back(kLarge);
  const auto region = owner.add_readable(large);
  const Piece piece{back.data(), 0, kLarge};
  Chunk chunk;
  chunk.op = Operation::kRead;
  chunk.transfer = 1;
  chunk.target = reader.machine.bind(ref_of(*region));
  chunk.pieces = {&piece, 1};
  chunk.bytes = kLarge;
  std::size_t asked = 0;
  for (; reader.machine.submit({&chunk, 1}) == 1; ++asked) ++chunk.cookie;
  EXPECT_EQ(asked, 4u);
  ASSERT_TRUE(deliver(owner.machine, 0, drain(reader.machine, 0)).ok());
  std::array<iovec, 256> parts;
  ASSERT_TRUE(owner.machine.fill(1, 1 << 20));
  const std::size_t begun = 300000;  // Into the second frame.
  std::vector<std::byte> bytes;
  for (const iovec& part : std::span(parts).first(owner.machine.gather(1, parts, begun))) {
    const auto* from = static_cast<const std::byte*>(part.iov_base);
    bytes.insert(bytes.end(), from, from + part.iov_len);
  }
  owner.machine.sent(1, bytes.size(), bytes.size());
  owner.regions.close(region->index, region->generation);
  EXPECT_TRUE(owner.machine.region_quiet(region->index, region->generation));
  std::uint64_t rest = 0;
  std::uint64_t total = bytes.size();
  while (owner.machine.fill(1, 1 << 20)) {
    std::size_t size = 0;
    for (const iovec& part : std::span(parts).first(owner.machine.gather(1, parts, 1 << 20))) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      EXPECT_TRUE(from < large.data() || from >= large.data() + kLarge);
      bytes.insert(bytes.end(), from, from + part.iov_len);
      size += part.iov_len;
    }
    rest += size;
    total += size;
    owner.machine.sent(1, size, total);
  }
  EXPECT_LE(rest, wire::kDataMax + 1024) << "what has begun, and no more";
  ASSERT_TRUE(deliver(reader.machine, 1, bytes).ok());
  ASSERT_TRUE(deliver(reader.machine, 0, drain(owner.machine, 0)).ok());
  std::array<PortEvent, 8> events;
  ASSERT_EQ(reader.events.poll(events), asked);
  for (const PortEvent& event : std::span(events).first(asked)) EXPECT_EQ(event.status.code(), Code::kDenied);
}

// The region closes when one frame of an answer is gone and the next has not begun: a frame of no bytes says so.
TEST(Trials, AnAnswerEndsBetweenItsFrames) {
  End reader(1), owner(1);
  std::vector<std::byte> large(1 << 20, std::byte{0x33}), back(1 << 20);
  const auto region = owner.add_readable(large);
  const Piece piece{back.data(), 0, back.size()};
  Chunk chunk;
  chunk.op = Operation::kRead;
  chunk.transfer = 1;
  chunk.target = reader.machine.bind(ref_of(*region));
  chunk.pieces = {&piece, 1};
  chunk.bytes = back.size();
  ASSERT_EQ(reader.machine.submit({&chunk, 1}), 1u);
  ASSERT_TRUE(deliver(owner.machine, 0, drain(reader.machine, 0)).ok());
  ASSERT_TRUE(owner.machine.fill(0, 1));
  std::array<iovec, 64> parts;
  std::vector<std::byte> bytes;
  for (const iovec& part : std::span(parts).first(owner.machine.gather(0, parts, 1 << 20))) {
    const auto* from = static_cast<const std::byte*>(part.iov_base);
    bytes.insert(bytes.end(), from, from + part.iov_len);
  }
  owner.machine.sent(0, bytes.size(), bytes.size());
  owner.regions.close(region->index, region->generation);
  EXPECT_TRUE(owner.machine.region_quiet(region->index, region->generation));
  const std::vector<std::byte> last = drain(owner.machine, 0);
  EXPECT_LE(last.size(), 64u);
  bytes.insert(bytes.end(), last.begin(), last.end());
  ASSERT_TRUE(deliver(reader.machine, 0, bytes).ok());
  std::array<PortEvent, 8> events;
  ASSERT_EQ(reader.events.poll(events), 1u);
  EXPECT_EQ(events[0].status.code(), Code::kDenied);
  EXPECT_EQ(events[0].status.buffer(), BufferState::kPartlyWritten);
  EXPECT_EQ(back[wire::kDataMax - 1], std::byte{0x33});
  EXPECT_EQ(back[wire::kDataMax], std::byte{0});
}

std::vector<std::byte> bind_frame(const wire::Bind& bind) {
  Outlet outlet;
  FrameWriter frame(outlet, {.type = wire::FrameType::kBind, .meta_size = 28});
  wire::encode_bind(frame.meta(), bind);
  std::array<iovec, 4> parts;
  EXPECT_EQ(outlet.gather(parts, 1 << 20), 1u);
  const auto* from = static_cast<const std::byte*>(parts[0].iov_base);
  return {from, from + parts[0].iov_len};
}

// A session could make its peer remember 65,536 regions that it has not got.
TEST(Trials, BindsCostNothingThatTheirRegionsDoNot) {
  End end;
  wire::Bind bind;
  for (bind.binding = 0; bind.binding < 100'000; ++bind.binding) {
    bind.index = bind.binding;
    ASSERT_TRUE(deliver(end.machine, 0, bind_frame(bind)).ok());
  }
  EXPECT_EQ(end.machine.bindings(), 0u);
  bind.index = end.region->index;
  bind.generation = end.region->generation;
  bind.key = end.region->key;
  Status status;
  for (; status.ok() && bind.binding < 200'000; ++bind.binding) status = deliver(end.machine, 0, bind_frame(bind));
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_LE(end.machine.bindings(), kBindingsFree + 2);
}

// An honest peer of an owner whose regions come and go has bindings of those that are gone, and is not blamed.
TEST(Trials, BindingsOfClosedRegionsGiveWay) {
  End end;
  wire::Bind bind;
  for (bind.binding = 1; bind.binding < 1000; ++bind.binding) {
    RegionEntry entry;
    entry.key = {bind.binding, 9};
    entry.base = end.memory.data();
    entry.size = 10;
    const auto region = end.regions.add(std::move(entry)).value();
    bind.index = region->index;
    bind.generation = region->generation;
    bind.key = region->key;
    ASSERT_TRUE(deliver(end.machine, 0, bind_frame(bind)).ok()) << bind.binding;
    end.regions.close(region->index, region->generation);
    end.regions.remove(region->index, region->generation);
  }
  EXPECT_LE(end.machine.bindings(), kBindingsFree + 4);
}

}  // namespace
}  // namespace hawser::backend::stream
