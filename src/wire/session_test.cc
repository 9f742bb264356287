#include "wire/session.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "wire/runtime.h"
#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

using Bytes = std::span<const std::byte>;

template <typename M>
std::string message(const M& value, std::string_view body = {}) {
  std::array<std::byte, kHeadMax> buffer;
  return std::string(base::as_text(encode(value, HeadBuffer(buffer)))) + std::string(body);
}

/// A message with an acknowledgement in front.
std::string acked(const Ack& ack, std::string_view message) {
  std::array<std::byte, kHeadMax> buffer;
  return std::string(base::as_text(encode_acked(ack, HeadBuffer(buffer)))) + std::string(message);
}

Envelope envelope_of(std::string_view bytes) { return open_envelope(base::as_bytes(bytes)).value(); }

// Runs the decoder of the envelope's kind. The outcome is a code.
Code decode_any(Bytes bytes) {
  const Result<Envelope> envelope = open_envelope(bytes);
  if (!envelope) return envelope.error().code();
  const auto code = [](const auto& result) { return result.error().code(); };
  switch (envelope->kind) {
    case SessionKind::kArrive:
      return code(decode_arrive(*envelope));
    case SessionKind::kSend:
      return code(decode_send(*envelope));
    case SessionKind::kCardRequest:
      return code(decode_card_request(*envelope));
    case SessionKind::kCardPart:
      return code(decode_card_part(*envelope));
    case SessionKind::kAck:
      return code(decode_ack(*envelope));
    case SessionKind::kCredit:
      return code(decode_credit(*envelope));
    case SessionKind::kWelcome:
      return code(decode_welcome(*envelope));
    case SessionKind::kBye:
      return code(decode_bye(*envelope));
    case SessionKind::kAcked:
      break;
  }
  return Code::kFailed;
}

Arrive full_arrive() {
  Arrive arrive;
  arrive.place.seq = 300;
  arrive.transfer = 0x1122334455667788;
  arrive.chunks = 9;
  arrive.oldest = 5;
  arrive.signal = SignalBump{1, 2, {0x0102030405060708, 0x090a0b0c0d0e0f10}, 64, 1};
  arrive.notify = base::as_bytes("hi");
  return arrive;
}

constexpr std::array<std::uint64_t, kLinks> kReceived = {1, 3, 300, 0, 0, 0, 4, 5};

std::string two_channels() {
  return encode_credits(std::vector<Credit>{{.channel = 16, .limits = {64, 1 << 22}},
                                            {.channel = 300, .priority = Priority::kBulk, .limits = {1, 2}}});
}

std::vector<std::string> samples() {
  Arrive bare;
  bare.place.seq = 1;
  bare.notify = Bytes{};
  return {message(full_arrive(), "hi"),
          message(bare),
          message(Send{{Priority::kCritical, 2}, 16, {}}, "hello"),
          message(Send{{{Priority::kRealtime, 19}, 2}, 19, {}}, "hello"),
          message(CardRequest{{Priority::kRealtime, 3}, 77}),
          message(CardPart{{Priority::kBulk, 4}, 78, 1000, 990, {}}, "0123456789"),
          message(Ack{{Priority::kBulk, 17}, 500}),
          message(Credit{1, Priority::kRealtime, {1024, 1 << 20}}),
          message(Welcome{0x0102030405060708, 0x1112131415161718, 7, kReceived, {1024, 1 << 20}, {}}, two_channels()),
          message(Bye{Code::kDenied, {}}, "no right"),
          acked({Priority::kBulk, 500}, message(Send{{Priority::kCritical, 2}, 16, {}}, "hello"))};
}

TEST(Session, GoldenVectors) {
  const std::vector<std::string> golden = {
      "21ac020f88776655443322110905000000000000000102100f0e0d0c0b0a09080706050403020140016869",
      "210101",
      "02021068656c6c6f",
      "a2021368656c6c6f",
      "23034d",
      "c4044ee807de0730313233343536373839",
      "e5f403",
      "0601018008808040",
      "0708070605040302011817161514131211070103ac02000000040580088080400210014080808002ac02020102",
      "08096e6f207269676874",
      "c9f40302021068656c6c6f",
  };
  const std::vector<std::string> encoded = samples();
  ASSERT_EQ(encoded.size(), golden.size());
  for (std::size_t i = 0; i < golden.size(); ++i) EXPECT_EQ(hex(encoded[i]), golden[i]) << i;
}

TEST(Session, ArriveRoundTrip) {
  const std::string bytes = message(full_arrive(), "hi");
  const Envelope envelope = envelope_of(bytes);
  EXPECT_EQ(envelope.kind, SessionKind::kArrive);
  EXPECT_EQ(envelope.place, (Place{Priority::kRealtime, 300}));
  const Arrive got = decode_arrive(envelope).value();
  EXPECT_EQ(got.place, envelope.place);
  EXPECT_EQ(got.transfer, 0x1122334455667788u);
  EXPECT_EQ(got.chunks, 9u);
  EXPECT_EQ(got.oldest, 5u);
  ASSERT_TRUE(got.signal);
  EXPECT_EQ(got.signal->region, 1u);
  EXPECT_EQ(got.signal->generation, 2u);
  EXPECT_EQ(got.signal->key, (base::Id128{0x0102030405060708, 0x090a0b0c0d0e0f10}));
  EXPECT_EQ(got.signal->offset, 64u);
  EXPECT_EQ(got.signal->add, 1u);
  ASSERT_TRUE(got.notify);
  EXPECT_EQ(base::as_text(*got.notify), "hi");
}

TEST(Session, AnEmptyNotificationIsPresentAndNoneIsNot) {
  Arrive arrive;
  arrive.place.seq = 1;
  arrive.transfer = 8;
  std::string bytes = message(arrive);
  EXPECT_FALSE(decode_arrive(envelope_of(bytes)).value().notify);
  EXPECT_EQ(decode_arrive(envelope_of(bytes)).value().chunks, 0u);
  arrive.notify = Bytes{};
  bytes = message(arrive);
  const Arrive got = decode_arrive(envelope_of(bytes)).value();
  ASSERT_TRUE(got.notify);
  EXPECT_TRUE(got.notify->empty());
}

TEST(Session, ACancelledTransferBringsNothing) {
  Arrive arrive;
  arrive.place.seq = 1;
  arrive.transfer = 8;
  arrive.oldest = 9;
  arrive.cancelled = true;
  const std::string bytes = message(arrive);
  const Arrive got = decode_arrive(envelope_of(bytes)).value();
  EXPECT_TRUE(got.cancelled);
  EXPECT_EQ(got.transfer, 8u);
  EXPECT_EQ(got.oldest, 9u);
  arrive.notify = Bytes{};
  EXPECT_EQ(decode_any(base::as_bytes(message(arrive))), Code::kCorrupt);
  arrive.notify.reset();
  arrive.transfer = 0;
  EXPECT_EQ(decode_any(base::as_bytes(message(arrive))), Code::kCorrupt);
}

TEST(Session, TheLongestHeadFits) {
  Arrive arrive;
  arrive.place.seq = arrive.transfer = arrive.oldest = UINT64_MAX;
  arrive.chunks = kChunksMax;
  arrive.signal = SignalBump{UINT32_MAX, UINT32_MAX, {UINT64_MAX, UINT64_MAX}, UINT64_MAX, UINT64_MAX};
  const std::string bytes = message(arrive);
  EXPECT_LE(bytes.size(), kHeadMax);
  const Arrive got = decode_arrive(envelope_of(bytes)).value();
  EXPECT_EQ(got.signal->add, UINT64_MAX);
  EXPECT_EQ(got.chunks, kChunksMax);
}

TEST(Session, OtherKindsRoundTrip) {
  const std::vector<std::string> all = samples();
  const Send send = decode_send(envelope_of(all[2])).value();
  EXPECT_EQ(send.place, (Place{Priority::kCritical, 2}));
  EXPECT_EQ(send.channel, 16u);
  EXPECT_EQ(base::as_text(send.bytes), "hello");
  EXPECT_EQ(decode_send(envelope_of(all[3]))->place, (Place{{Priority::kRealtime, 19}, 2}));
  const CardRequest request = decode_card_request(envelope_of(all[4])).value();
  EXPECT_EQ(request.place, (Place{Priority::kRealtime, 3}));
  EXPECT_EQ(request.since_revision, 77u);
  const CardPart part = decode_card_part(envelope_of(all[5])).value();
  EXPECT_EQ(part.revision, 78u);
  EXPECT_EQ(part.total, 1000u);
  EXPECT_EQ(part.offset, 990u);
  EXPECT_EQ(base::as_text(part.bytes), "0123456789");
  EXPECT_EQ(decode_ack(envelope_of(all[6])).value().up_to, 500u);
  EXPECT_EQ(decode_ack(envelope_of(all[6])).value().link, Link(Priority::kBulk, 17));
  const Credit credit = decode_credit(envelope_of(all[7])).value();
  EXPECT_EQ(credit.channel, 1u);
  EXPECT_EQ(credit.limits, (CreditLimits{1024, 1 << 20}));
  const Welcome welcome = decode_welcome(envelope_of(all[8])).value();
  EXPECT_EQ(welcome.session, 0x0102030405060708u);
  EXPECT_EQ(welcome.peer_session, 0x1112131415161718u);
  EXPECT_EQ(welcome.revision, 7u);
  EXPECT_EQ(welcome.received, kReceived);
  EXPECT_EQ(welcome.notify, (CreditLimits{1024, 1 << 20}));
  const std::vector<Credit> credits = decode_credits(welcome.credits).value();
  ASSERT_EQ(credits.size(), 2u);
  EXPECT_EQ(credits[1].channel, 300u);
  EXPECT_EQ(credits[1].priority, Priority::kBulk);
  EXPECT_EQ(credits[1].limits, (CreditLimits{1, 2}));
  const Bye bye = decode_bye(envelope_of(all[9])).value();
  EXPECT_EQ(bye.code, Code::kDenied);
  EXPECT_EQ(bye.text, "no right");
}

TEST(Session, ReliableKindsAloneCarryASequenceNumber) {
  for (const std::string& bytes : samples()) {
    const Envelope envelope = envelope_of(bytes);
    EXPECT_EQ(is_reliable(envelope.kind), envelope.place.seq != 0) << to_string(envelope.kind);
  }
}

TEST(Session, TheFirstByteHasALinkWhereTheKindHasOne) {
  for (std::size_t i = 0; i < samples().size() - 1; ++i) {  // The last one is an Ack in front of another.
    std::string bytes = samples()[i];
    const auto kind = static_cast<unsigned char>(bytes[0]) & 0x1f;
    const bool has_link = is_reliable(static_cast<SessionKind>(kind)) || kind == static_cast<int>(SessionKind::kAck);
    for (std::size_t link = 0; link < kLinks; ++link) {
      bytes[0] = static_cast<char>(static_cast<std::size_t>(kind) | link << 5);
      const Result<Envelope> envelope = open_envelope(base::as_bytes(bytes));
      EXPECT_EQ(static_cast<bool>(envelope), has_link || link == 0) << i << ", " << link;
      if (envelope && has_link) {
        EXPECT_EQ(envelope->place.link, Link::at(link));
      }
    }
  }
  const std::string alone = message(Send{{Priority::kBulk, 2}, 16, {}}, "hello");
  const std::string both = acked({{Priority::kRealtime, 17}, 500}, alone);
  EXPECT_EQ(open_envelope(base::as_bytes(both))->acked.link, Link(Priority::kRealtime, 17));
  EXPECT_EQ(open_envelope(base::as_bytes(both))->place.link, Priority::kBulk);
}

TEST(Session, AMessageIsSentAgainWithoutTheAckThatRodeAlong) {
  const std::string alone = message(Send{{Priority::kBulk, 2}, 16, {}}, "hello");
  for (const std::uint64_t up_to : {std::uint64_t{1}, UINT64_MAX}) {
    EXPECT_EQ(base::as_text(without_ack(base::as_bytes(acked({Priority::kRealtime, up_to}, alone)))), alone);
  }
  EXPECT_EQ(base::as_text(without_ack(base::as_bytes(alone))), alone);
}

TEST(Session, ChannelsOfOneClassAreSpreadOverItsLinks) {
  EXPECT_EQ(Link(Priority::kCritical, 17), Priority::kCritical);
  EXPECT_EQ(Link(Priority::kRealtime, kUserChannelMin - 1), Priority::kRealtime);
  EXPECT_EQ(Link(Priority::kBulk, kUserChannelMin - 1), Priority::kBulk);
  for (std::uint32_t channel = kUserChannelMin; channel < kUserChannelMin + 8; ++channel) {
    EXPECT_NE(Link(Priority::kRealtime, channel), Priority::kRealtime) << "the library's own";
    EXPECT_NE(Link(Priority::kRealtime, channel), Link(Priority::kRealtime, channel + 1));
    EXPECT_EQ(Link(Priority::kRealtime, channel), Link(Priority::kRealtime, channel + kRealtimeGroups));
    EXPECT_NE(Link(Priority::kBulk, channel), Link(Priority::kBulk, channel + 1));
    EXPECT_EQ(Link(Priority::kBulk, channel), Link(Priority::kBulk, channel + kBulkGroups));
    for (const Priority priority : {Priority::kCritical, Priority::kRealtime, Priority::kBulk}) {
      EXPECT_EQ(Link(priority, channel).priority(), priority);
    }
  }
}

TEST(Session, CreditNamesAClassThatThereIs) {
  std::string bytes = message(Credit{16, Priority::kBulk, {1, 2}});
  EXPECT_EQ(decode_any(base::as_bytes(bytes)), Code::kOk);
  bytes[2] = 3;
  EXPECT_EQ(decode_any(base::as_bytes(bytes)), Code::kCorrupt);
}

TEST(Session, HeadsThatAreCutOffAreCorrupt) {
  // Bodies may end anywhere, so only heads are cut here.
  const std::vector<std::string> heads = {
      message(full_arrive()),
      message(Send{{Priority::kBulk, 2}, 300, {}}),
      message(CardRequest{{Priority::kRealtime, 3}, 77}),
      message(CardPart{{Priority::kBulk, 4}, 78, 1000, 990, {}}),
      message(Ack{Priority::kBulk, 500}),
      message(Credit{1, Priority::kRealtime, {1024, 1 << 20}}),
      message(Welcome{0x0102030405060708, 0x1112131415161718, 7, kReceived, {9, 1000}, {}}),
      message(Bye{Code::kDenied, {}})};
  for (const std::string& head : heads) {
    feed_every_cut(head, [](Bytes bytes) { EXPECT_EQ(decode_any(bytes), Code::kCorrupt); });
  }
}

TEST(Session, BytesAfterAMessageWithoutBodyAreCorrupt) {
  for (const std::size_t i : {4u, 6u, 7u, 8u}) {
    EXPECT_EQ(decode_any(base::as_bytes(samples()[i] + "x")), Code::kCorrupt) << i;
  }
  Arrive arrive;
  arrive.place.seq = 1;
  EXPECT_EQ(decode_any(base::as_bytes(message(arrive) + "x")), Code::kCorrupt);
}

TEST(Session, BoundsHold) {
  const std::string long_text(kMessageMax + 1, 'x');
  Arrive arrive;
  arrive.place.seq = 1;
  arrive.notify = Bytes{};
  EXPECT_EQ(decode_any(base::as_bytes(message(arrive, long_text))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(arrive, long_text.substr(1)))), Code::kOk);
  EXPECT_EQ(decode_any(base::as_bytes(message(Send{{Priority::kRealtime, 1}, 16, {}}, long_text))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(Send{{Priority::kRealtime, 1}, 16, {}}, long_text.substr(1)))),
            Code::kOk);
  EXPECT_EQ(decode_any(base::as_bytes(message(Send{{Priority::kRealtime, 0}, 16, {}}))), Code::kCorrupt);
  const std::string with_head(kOwnMessageMax + 1, 'x');  // On the library's channels.
  EXPECT_EQ(decode_any(base::as_bytes(message(Send{{Priority::kRealtime, 1}, 15, {}}, with_head))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(Send{{Priority::kRealtime, 1}, 15, {}}, with_head.substr(1)))),
            Code::kOk);
  arrive.transfer = 1;
  arrive.chunks = kChunksMax + 1;
  EXPECT_EQ(decode_any(base::as_bytes(message(arrive))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(Bye{Code::kOk, {}}))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(Bye{static_cast<Code>(11), {}}))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(Bye{}, std::string(kByeTextMax + 1, 't')))), Code::kCorrupt);
  EXPECT_EQ(decode_any({}), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(std::string_view("\0", 1))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes("\x09")), Code::kCorrupt);
}

TEST(Session, AWelcomeTellsAllChannelsAndNoMore) {
  const auto welcome = [](const std::string& body) {
    return message(Welcome{.session = 1, .peer_session = 0, .revision = 1, .received = {}, .notify = {}, .credits = {}},
                   body);
  };
  std::vector<Credit> all(kWelcomeCreditsMax, Credit{.channel = UINT32_MAX, .limits = {UINT64_MAX, UINT64_MAX}});
  const std::string full = encode_credits(all);
  EXPECT_EQ(decode_any(base::as_bytes(welcome(full))), Code::kOk);
  EXPECT_LE(welcome(full).size(), kMessageMax);
  EXPECT_EQ(decode_any(base::as_bytes(welcome(full.substr(0, full.size() - 1)))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(welcome(full + "x"))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(welcome("\xff\xff\xff\x7f"))), Code::kCorrupt) << "a count without channels";
  EXPECT_EQ(decode_any(base::as_bytes(welcome(""))), Code::kCorrupt) << "no count";
}

TEST(Session, AnAckRidesWithOneReliableMessage) {
  const std::string alone = message(Send{{Priority::kCritical, 2}, 16, {}}, "hello");
  const std::string both = acked({Priority::kBulk, 500}, alone);
  const Envelope envelope = envelope_of(both);
  EXPECT_EQ(envelope.acked.up_to, 500u);
  EXPECT_EQ(envelope.kind, SessionKind::kSend);
  EXPECT_EQ(base::as_text(decode_send(envelope)->bytes), "hello");
  EXPECT_EQ(envelope_of(alone).acked.up_to, 0u);
  EXPECT_EQ(decode_any(base::as_bytes(acked({Priority::kBulk, 0}, alone))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(acked({Priority::kBulk, 500}, acked({Priority::kBulk, 501}, alone)))),
            Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(acked({Priority::kBulk, 500}, message(Ack{Priority::kBulk, 501})))),
            Code::kCorrupt);
  feed_every_cut(acked({Priority::kBulk, 500}, message(Send{{Priority::kBulk, 2}, 300, {}})),
                 [](Bytes bytes) { EXPECT_EQ(decode_any(bytes), Code::kCorrupt); });
}

TEST(Session, NobodyWaitsForWhatGoesAside) {
  const auto aside = [](const std::string& bytes) { return goes_aside(base::as_bytes(bytes)); };
  constexpr std::string_view kText = "a notification";
  Arrive announced{.place = {Priority::kRealtime, 300}, .transfer = 7, .chunks = 1, .oldest = 5};
  EXPECT_TRUE(aside(message(announced)));
  announced.notify = base::as_bytes(kText);
  EXPECT_TRUE(aside(message(announced, kText)));
  EXPECT_TRUE(aside(acked({Priority::kBulk, 500}, message(announced, kText))));
  EXPECT_TRUE(aside(message(Ack{Priority::kRealtime, 300})));
  EXPECT_TRUE(aside(message(Credit{20, Priority::kBulk, {1, 2}})));
  announced.chunks = 0;
  EXPECT_FALSE(aside(message(announced, kText))) << "the bytes are there";
  announced.transfer = 0;
  EXPECT_FALSE(aside(message(announced, kText))) << "it stands alone";
  EXPECT_FALSE(aside(message(Send{{Priority::kBulk, 2}, 16, {}}, "hello")));
  EXPECT_FALSE(aside(acked({Priority::kBulk, 500}, message(Send{{Priority::kBulk, 2}, 16, {}}))));
  EXPECT_FALSE(aside(message(CardRequest{{Priority::kBulk, 2}, 3})));
  const auto ranks_say = [&](RuntimeKind kind, Priority priority) {
    return aside(message(Send{{Priority::kRealtime, 2}, runtime_channel_of(priority), {}},
                         std::string(1, static_cast<char>(kind)) + "and so on"));
  };
  for (const RuntimeKind kind : {RuntimeKind::kAsk, RuntimeKind::kGrant, RuntimeKind::kFreed}) {
    EXPECT_TRUE(ranks_say(kind, Priority::kRealtime) && ranks_say(kind, Priority::kBulk));
    EXPECT_FALSE(ranks_say(kind, Priority::kCritical)) << "a user says that it is urgent";
  }
  EXPECT_FALSE(ranks_say(RuntimeKind::kEager, Priority::kRealtime));
  EXPECT_FALSE(ranks_say(RuntimeKind::kBell, Priority::kRealtime));
  EXPECT_FALSE(aside(message(Bye{})));
  EXPECT_FALSE(aside(""));
}

TEST(Session, CardPartsLieInTheCard) {
  const std::string body(10, 'c');
  EXPECT_EQ(decode_any(base::as_bytes(message(CardPart{{Priority::kBulk, 1}, 1, 10, 0, {}}, body))), Code::kOk);
  EXPECT_EQ(decode_any(base::as_bytes(message(CardPart{{Priority::kBulk, 1}, 1, 10, 1, {}}, body))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(CardPart{{Priority::kBulk, 1}, 1, 10, 11, {}}, body))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(CardPart{{Priority::kBulk, 1}, 1, 10, 5, {}}))), Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(message(CardPart{{Priority::kBulk, 1}, 1, kCardSizeMax + 1, 5, {}}, body))),
            Code::kCorrupt);
  EXPECT_EQ(decode_any(base::as_bytes(
                message(CardPart{{Priority::kBulk, 1}, 1, 1u << 20, 0, {}}, std::string(kCardPartMax + 1, 'c')))),
            Code::kCorrupt);
}

TEST(Session, GarbageIsAnswered) {
  for (const std::string& good : samples()) {
    feed_garbage(good, 3000, [](Bytes bytes) {
      const Code code = decode_any(bytes);
      EXPECT_TRUE(code == Code::kOk || code == Code::kCorrupt) << to_string(code);
    });
  }
}

}  // namespace
}  // namespace hawser::wire
