#include "wire/queue_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

QueuePairEndpoint endpoint() {
  QueuePairEndpoint end;
  end.number = 0x123456;
  end.psn = 0xabcdef;
  end.lid = 7;
  end.gid[0] = std::byte{0xfe};
  end.gid[15] = std::byte{0x01};
  end.mtu = 5;
  end.reads_in = 16;
  end.reads_out = 4;
  return end;
}

std::vector<QueuePairMessage> samples() {
  RdmaPorts ports;
  ports.ports.push_back({.device = "rxe0",
                         .number = 1,
                         .transport = 1,
                         .layer = 2,
                         .mtu = 3,
                         .gid_type = 3,
                         .gid_prefix = 24,
                         .mbit_per_s = 100});
  RdmaPorts with_receives = ports;
  with_receives.receives = 32;
  with_receives.receive_bytes = 2048;
  RdmaPorts with_immediates = with_receives;
  with_immediates.immediates = 24;
  RdmaPorts with_host = with_immediates;
  with_host.host = 0x0123456789abcdef;
  RdmaPorts with_gids = with_host;
  with_gids.ports[0].gids = {{.bytes = endpoint().gid, .type = 3, .prefix = 64}, {.type = 2}};
  QueuePairEndpoint datagrams = endpoint();
  datagrams.qkey = 0x11223344;
  datagrams.proof_address = 0x5566;
  datagrams.proof_key = 0x77;
  return {ports,
          QueuePairConnect{.pair = 1, .epoch = 9, .local = 0, .remote = 2, .pairs = 4, .endpoint = endpoint()},
          QueuePairAccept{.pair = 1, .epoch = 9, .endpoint = endpoint()},
          QueuePairReady{.pair = 3, .epoch = 1},
          QueuePairBroken{.pair = 0, .epoch = 2, .code = Code::kTimedOut, .reason = "no answer"},
          with_receives,
          MessagesReceived{.received = 0x0102030405060708},
          with_immediates,
          ImmediatesCounted{.pair = 2, .epoch = 5, .counted = 0x0102},
          with_host,
          QueuePairConnect{.pair = 1, .epoch = 9, .local = 0, .remote = 2, .pairs = 4, .endpoint = datagrams},
          QueuePairAccept{.pair = 1, .epoch = 9, .endpoint = datagrams},
          with_gids};
}

TEST(QueuePairWire, GoldenVectors) {
  const std::vector<QueuePairMessage> all = samples();
  EXPECT_EQ(hex(encode(all[0])), "0101010472786530010102030000" + std::string(32, '0') + "03186400000000000000");
  EXPECT_EQ(hex(encode(all[1])), "02010900000000020456341200efcdab000700fe000000000000000000000000000001051004");
  EXPECT_EQ(hex(encode(all[2])), "03010900000056341200efcdab000700fe000000000000000000000000000001051004");
  EXPECT_EQ(hex(encode(all[3])), "040301000000");
  EXPECT_EQ(hex(encode(all[4])), "05000200000006096e6f20616e73776572");
  EXPECT_EQ(hex(encode(all[5])), hex(encode(all[0])) + "200000080000");
  EXPECT_EQ(hex(encode(all[6])), "070807060504030201");
  EXPECT_EQ(hex(encode(all[7])), hex(encode(all[5])) + "1800");
  EXPECT_EQ(hex(encode(all[8])), "0802050000000201000000000000");
  EXPECT_EQ(hex(encode(all[9])), hex(encode(all[7])) + "efcdab8967452301");
  const std::string datagrams = "44332211665500000000000077000000";
  EXPECT_EQ(hex(encode(all[10])), hex(encode(all[1])) + datagrams);
  EXPECT_EQ(hex(encode(all[11])), hex(encode(all[2])) + datagrams);
  const std::string gids =
      "02"
      "fe000000000000000000000000000001"
      "0340" +
      std::string(32, '0') + "0200";
  EXPECT_EQ(hex(encode(all[12])), hex(encode(all[9])) + gids);
  const auto head = encode_head({.sequence = 0x1122, .received = 3});
  EXPECT_EQ(hex({reinterpret_cast<const char*>(head.data()), head.size()}), "0622110000000000000300000000000000");
}

TEST(QueuePairWire, WhatIsDecodedIsWhatWasSaid) {
  for (const QueuePairMessage& message : samples()) {
    const std::string bytes = encode(message);
    const auto again = decode_queue_pair(base::as_bytes(bytes));
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(again->index(), message.index());
    EXPECT_EQ(encode(*again), bytes);
  }
}

TEST(QueuePairWire, EveryCutIsAnError) {
  // Where earlier forms of the ports and of the endpoints end.
  const std::vector<QueuePairMessage> all = samples();
  const std::array<std::size_t, 4> ports = {encode(all[0]).size(), encode(all[5]).size(), encode(all[7]).size(),
                                            encode(all[9]).size()};
  const std::array<std::size_t, 2> endpoints = {encode(all[1]).size(), encode(all[2]).size()};
  for (const QueuePairMessage& message : samples()) {
    feed_every_cut(encode(message), [&](std::span<const std::byte> bytes) {
      const bool whole = message.index() == 0   ? std::ranges::count(ports, bytes.size()) > 0
                         : message.index() <= 2 ? endpoints[message.index() - 1] == bytes.size()
                                                : false;
      EXPECT_EQ(decode_queue_pair(bytes).has_value(), whole) << bytes.size();
    });
  }
  const auto head = encode_head({.sequence = 1, .received = 0});
  for (std::size_t size = 0; size < head.size(); ++size) EXPECT_FALSE(decode_head(std::span(head).first(size)));
}

TEST(QueuePairWire, ReceivesAreOptionalAndBounded) {
  const auto decoded = decode_queue_pair(base::as_bytes(encode(samples()[0])));
  EXPECT_EQ(std::get<RdmaPorts>(*decoded).receives, 0u) << "a release that has none tells none";
  RdmaPorts ports = std::get<RdmaPorts>(samples()[5]);
  ports.receives = kReceivesMax + 1;
  EXPECT_FALSE(decode_queue_pair(base::as_bytes(encode(ports))));
  ports.receives = 1;
  ports.receive_bytes = kMessageHeadSize;
  EXPECT_FALSE(decode_queue_pair(base::as_bytes(encode(ports))));
  ports.receive_bytes = kReceiveBytesMax + 1;
  EXPECT_FALSE(decode_queue_pair(base::as_bytes(encode(ports))));
  ports.receives = ports.receive_bytes = 0;
  ports.immediates = 7;
  EXPECT_EQ(std::get<RdmaPorts>(*decode_queue_pair(base::as_bytes(encode(ports)))).immediates, 7u);
  ports.immediates = kReceivesMax + 1;
  EXPECT_FALSE(decode_queue_pair(base::as_bytes(encode(ports))));
}

TEST(QueuePairWire, C20_TheKeyOfDatagramsAndTheHostAreOptional) {
  const auto connect = decode_queue_pair(base::as_bytes(encode(samples()[1])));
  EXPECT_EQ(std::get<QueuePairConnect>(*connect).endpoint.qkey, 0u) << "a reliable connection has none";
  const auto datagrams = decode_queue_pair(base::as_bytes(encode(samples()[11])));
  const QueuePairEndpoint& told = std::get<QueuePairAccept>(*datagrams).endpoint;
  EXPECT_EQ(told.qkey, 0x11223344u);
  EXPECT_EQ(told.proof_address, 0x5566u);
  EXPECT_EQ(told.proof_key, 0x77u);
  EXPECT_EQ(std::get<RdmaPorts>(*decode_queue_pair(base::as_bytes(encode(samples()[7])))).host, 0u);
  RdmaPorts ports;
  ports.host = 5;
  const auto alone = decode_queue_pair(base::as_bytes(encode(ports)));
  ASSERT_TRUE(alone);
  EXPECT_EQ(std::get<RdmaPorts>(*alone).host, 5u) << "also without receives and immediates";
}

TEST(QueuePairWire, GidsAreOptionalAndBounded) {
  EXPECT_TRUE(std::get<RdmaPorts>(*decode_queue_pair(base::as_bytes(encode(samples()[9])))).ports[0].gids.empty());
  RdmaPorts ports = std::get<RdmaPorts>(samples()[0]);
  ports.ports.push_back(ports.ports[0]);
  ports.ports[1].gids.resize(kGidsMax + 1, {.type = 3});
  const auto alone = decode_queue_pair(base::as_bytes(encode(ports)));
  ASSERT_TRUE(alone) << "also without receives, immediates and a host";
  EXPECT_TRUE(std::get<RdmaPorts>(*alone).ports[0].gids.empty());
  EXPECT_EQ(std::get<RdmaPorts>(*alone).ports[1].gids.size(), kGidsMax) << "no more are told";
  EXPECT_EQ(std::get<RdmaPorts>(*alone).ports[1].gids[7].type, 3);
  std::string bytes = encode(samples()[9]);
  bytes += static_cast<char>(kGidsMax + 1);
  bytes += std::string(18 * (kGidsMax + 1), '\0');
  EXPECT_FALSE(decode_queue_pair(base::as_bytes(bytes)));
}

TEST(QueuePairWire, ANumberedMessageHasItsHead) {
  const auto bytes = encode_head({.sequence = 7, .received = 5});
  const auto head = decode_head(bytes);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->sequence, 7u);
  EXPECT_EQ(head->received, 5u);
  EXPECT_FALSE(decode_head(encode_head({.sequence = 0, .received = 5})));
  EXPECT_FALSE(decode_queue_pair(bytes)) << "it is no handshake";
}

TEST(QueuePairWire, ValuesOutsideTheirBoundsAreErrors) {
  QueuePairConnect connect{.pair = 1, .epoch = 9, .pairs = 4, .endpoint = endpoint()};
  const auto refused = [](const QueuePairMessage& message) {
    return !decode_queue_pair(base::as_bytes(encode(message)));
  };
  EXPECT_FALSE(refused(connect));
  for (const auto spoil : std::initializer_list<void (*)(QueuePairConnect&)>{
           [](QueuePairConnect& c) { c.pair = 4; }, [](QueuePairConnect& c) { c.pairs = kPairsMax + 1; },
           [](QueuePairConnect& c) { c.epoch = 0; }, [](QueuePairConnect& c) { c.endpoint.number = 1u << 24; },
           [](QueuePairConnect& c) { c.endpoint.psn = 1u << 24; }, [](QueuePairConnect& c) { c.endpoint.mtu = 6; },
           [](QueuePairConnect& c) { c.endpoint.mtu = 0; }, [](QueuePairConnect& c) { c.local = kPortsMax; },
           [](QueuePairConnect& c) { c.remote = kPortsMax; }}) {
    QueuePairConnect bad = connect;
    spoil(bad);
    EXPECT_TRUE(refused(bad));
  }
}

TEST(QueuePairWire, AnotherVersionOrKindSaysSo) {
  std::string ports = encode(samples()[0]);
  ports[1] = 2;
  EXPECT_EQ(decode_queue_pair(base::as_bytes(ports)).error().code(), Code::kUnsupported);
  const std::string unknown(1, '\x2a');
  EXPECT_EQ(decode_queue_pair(base::as_bytes(unknown)).error().code(), Code::kUnsupported);
}

TEST(QueuePairWire, BytesBehindABodyAreSkipped) {
  for (const QueuePairMessage& message : samples()) {
    const std::string more = message.index() <= 2 ? std::string(32, '\0') : "more";  // The newer forms are read.
    EXPECT_TRUE(decode_queue_pair(base::as_bytes(encode(message) + more)));
  }
}

}  // namespace
}  // namespace hawser::wire
