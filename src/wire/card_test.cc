#include "wire/card.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/checksum.h"
#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

CardRegion region_of(std::uint32_t index, std::uint32_t generation, std::uint64_t size) {
  CardRegion region;
  region.index = index;
  region.generation = generation;
  region.size = size;
  region.key = {0x0102030405060708u + index, 0x090a0b0c0d0e0f10};
  region.rights = Rights::kReadWrite;
  return region;
}

Card sample() {
  Card card;
  card.kind = CardKind::kDelta;
  card.driven = true;
  card.name = "decode-3";
  card.incarnation = {0xa1a2a3a4a5a6a7a8, 0xb1b2b3b4b5b6b7b8};
  card.revision = 12;
  card.base_revision = 9;
  card.public_key[0] = std::byte{0xcc};
  card.born = 0x0706050403020100;
  card.admission = {0xd1d2d3d4d5d6d7d8, 0xe1e2e3e4e5e6e7e8};
  card.backends = {{"shm", "/run/x"}, {"tcp", "10.0.0.1:7000"}};
  card.regions = {region_of(0, 1, 4096), region_of(1, 300, 1u << 30), region_of(9, 2, 7)};
  card.regions[1].name = "kv";
  card.regions[1].device = {DeviceKind::kCuda, 3};
  card.regions[1].extra_count = 2;
  card.extras = {{1, "rkey"}, {0, ""}, {1, "x"}};
  card.regions[2].rights = Rights::kRead;
  card.regions[2].extra_first = 2;
  card.regions[2].extra_count = 1;
  card.removed = {{2, 1}, {2, 5}, {70, 1}};
  return card;
}

void expect_same_region(const Card& got, const CardRegion& a, const Card& want, const CardRegion& b) {
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.rights, b.rights);
  ASSERT_EQ(a.extra_count, b.extra_count);
  for (std::size_t i = 0; i < a.extra_count; ++i) {
    EXPECT_EQ(got.extras_of(a)[i].backend, want.extras_of(b)[i].backend);
    EXPECT_EQ(got.extras_of(a)[i].bytes, want.extras_of(b)[i].bytes);
  }
}

void expect_same(const Card& got, const Card& want) {
  EXPECT_EQ(got.version_min, want.version_min);
  EXPECT_EQ(got.version_max, want.version_max);
  EXPECT_EQ(got.kind, want.kind);
  EXPECT_EQ(got.driven, want.driven);
  EXPECT_EQ(got.name, want.name);
  EXPECT_EQ(got.incarnation, want.incarnation);
  EXPECT_EQ(got.revision, want.revision);
  EXPECT_EQ(got.base_revision, want.base_revision);
  EXPECT_EQ(got.public_key, want.public_key);
  EXPECT_EQ(got.born, want.born);
  EXPECT_EQ(got.admission, want.admission);
  ASSERT_EQ(got.backends.size(), want.backends.size());
  for (std::size_t i = 0; i < got.backends.size(); ++i) {
    EXPECT_EQ(got.backends[i].name, want.backends[i].name);
    EXPECT_EQ(got.backends[i].address, want.backends[i].address);
  }
  ASSERT_EQ(got.regions.size(), want.regions.size());
  for (std::size_t i = 0; i < got.regions.size(); ++i) expect_same_region(got, got.regions[i], want, want.regions[i]);
  ASSERT_EQ(got.removed.size(), want.removed.size());
  for (std::size_t i = 0; i < got.removed.size(); ++i) {
    EXPECT_EQ(got.removed[i].index, want.removed[i].index);
    EXPECT_EQ(got.removed[i].generation, want.removed[i].generation);
  }
}

// Mends what the frame says about the whole, so that what is inside gets read.
std::string framed(std::string bytes) {
  if (bytes.size() < 20) return bytes;
  const std::size_t covered = bytes.size() - kChecksumSize;
  base::store_little_endian(bytes.data() + 8, static_cast<std::uint32_t>(bytes.size() - 20));
  base::store_little_endian(bytes.data() + covered, checksum(base::as_bytes(bytes).first(covered)));
  return bytes;
}

std::string with_section(std::uint16_t kind, std::string_view content) {
  std::string bytes = encode(sample()).value();
  bytes.resize(bytes.size() - kChecksumSize);
  base::ByteWriter out(&bytes);
  out.u16(kind);
  out.u32(static_cast<std::uint32_t>(content.size()));
  out.bytes(base::as_bytes(content));
  return framed(bytes + std::string(kChecksumSize, '\0'));
}

Status fault_of(std::string_view bytes) { return decode_card(base::as_bytes(bytes)).error(); }

TEST(Card, GoldenVector) {
  EXPECT_EQ(hex(encode(sample()).value()),
            "4857434402000200fb0000000180630000000301b8b7b6b5b4b3b2b1a8a7a6a5a4a3a2a10c0000000000000009000000"
            "00000000cc000000000000000000000000000000000000000000000000000000000000000001020304050607e8e7e6e5"
            "e4e3e2e1d8d7d6d5d4d3d2d1086465636f64652d3302801e000000020373686d062f72756e2f78037463700d31302e30"
            "2e302e313a3730303003804e000000030001038020100f0e0d0c0b0a09080706050403020100ac021f8080808004100f"
            "0e0d0c0b0a090907060504030201020302020104000007021107100f0e0d0c0b0a091107060504030201010101048007"
            "0000006b76726b65797805800700000003020100054401fd1527bb3ab28a32");
}

TEST(Card, RoundTrip) {
  const Card sent = sample();
  Result<Card> got = decode_card(base::as_bytes(encode(sent).value()));
  ASSERT_TRUE(got) << got.error().to_string();
  const Card moved = *std::move(got);  // its views must survive
  expect_same(moved, sent);
  EXPECT_EQ(moved.find_backend("tcp"), 1);
  EXPECT_EQ(moved.find_backend("ucx"), -1);
  EXPECT_EQ(moved.extra_of(moved.regions[1], 1), "rkey");
  EXPECT_EQ(moved.extra_of(moved.regions[0], 1), "");
}

TEST(Card, TheSmallestRoundTrips) {
  Card card;
  card.name = "a";
  const std::string bytes = encode(card).value();
  EXPECT_LE(bytes.size(), 160u);
  expect_same(decode_card(base::as_bytes(bytes)).value(), card);
}

TEST(Card, CheckTellsTheSummary) {
  const CardSummary got = check_card(base::as_bytes(encode(sample()).value())).value();
  EXPECT_EQ(got.kind, CardKind::kDelta);
  EXPECT_TRUE(got.driven);
  EXPECT_EQ(got.name, "decode-3");
  EXPECT_EQ(got.incarnation, sample().incarnation);
  EXPECT_EQ(got.revision, 12u);
  EXPECT_EQ(got.base_revision, 9u);
  EXPECT_EQ(got.born, sample().born);
  EXPECT_EQ(got.admission, sample().admission);
  EXPECT_EQ(got.backends, 2u);
  EXPECT_EQ(got.regions, 3u);
  EXPECT_EQ(got.removed, 3u);
}

TEST(Card, AnonymousRegionsAreCompact) {
  Card card;
  card.name = "a";
  base::Rng rng(5);
  const std::size_t empty = encode(card).value().size();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    card.regions.push_back(region_of(i, 1 + static_cast<std::uint32_t>(rng.below(1u << 28)), rng.below(1ull << 48)));
    card.regions.back().key = {rng.u64(), rng.u64()};
  }
  const std::string bytes = encode(card).value();
  EXPECT_LE(bytes.size() - empty, 32u * 1000);
  expect_same(decode_card(base::as_bytes(bytes)).value(), card);
}

TEST(Card, AHundredThousandRegions) {
  Card card;
  card.name = "many";
  for (std::uint32_t i = 0; i < 100000; ++i) card.regions.push_back(region_of(i, 1, 1u << 21));
  const std::string bytes = encode(card).value();
  const Card got = decode_card(base::as_bytes(bytes)).value();
  ASSERT_EQ(got.regions.size(), card.regions.size());
  EXPECT_EQ(got.regions.back().index, 99999u);
  EXPECT_EQ(got.regions.back().key, card.regions.back().key);
}

TEST(Card, UnknownSectionsAndBackendsAreSkipped) {
  expect_same(decode_card(base::as_bytes(with_section(0x0077, "whatever"))).value(), sample());
  expect_same(decode_card(base::as_bytes(with_section(0x7fff, ""))).value(), sample());
}

TEST(Card, ASectionThatMustBeUnderstoodIsNot) {
  const Status fault = fault_of(with_section(0x8077, "whatever"));
  EXPECT_EQ(fault.code(), Code::kUnsupported);
  EXPECT_NE(fault.message().find("0x8077"), std::string_view::npos) << fault.message();
}

TEST(Card, ASecondSectionOfAKindIsCorrupt) { EXPECT_EQ(fault_of(with_section(0x8002, "\x01")).code(), Code::kCorrupt); }

TEST(Card, VersionsThatDoNotMeetNameBothRanges) {
  Card card = sample();
  card.version_min = 3;
  card.version_max = 5;
  const std::string bytes = encode(card).value();
  EXPECT_EQ(fault_of(bytes).code(), Code::kUnsupported);
  EXPECT_EQ(fault_of(bytes).message(), "card: the peer speaks wire versions 3 to 5, this agent 2 to 2");
  EXPECT_EQ(check_card(base::as_bytes(bytes)).error().code(), Code::kUnsupported);
  card.version_min = 2;
  expect_same(decode_card(base::as_bytes(encode(card).value())).value(), card);
}

TEST(Card, EveryCutIsCorruptAndSaysSo) {
  const std::string good = encode(sample()).value();
  feed_every_cut(good, [](auto bytes) {
    EXPECT_EQ(decode_card(bytes).error().code(), Code::kCorrupt);
    EXPECT_EQ(check_card(bytes).error().code(), Code::kCorrupt);
  });
  EXPECT_NE(fault_of(good.substr(0, good.size() - 1)).message().find("cut off"), std::string_view::npos);
  EXPECT_NE(fault_of(good + "x").message().find("glued"), std::string_view::npos);
}

TEST(Card, EveryFlippedBitIsCorrupt) {
  const std::string good = encode(sample()).value();
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    feed(bytes, [&](auto in) { EXPECT_EQ(decode_card(in).error().code(), Code::kCorrupt) << bit; });
  }
}

TEST(Card, GarbageBehindAGoodFrameIsAnswered) {
  feed_garbage(encode(sample()).value(), 30000, [](auto bytes) {
    feed(framed(std::string(base::as_text(bytes))), [](auto in) {
      const Result<Card> got = decode_card(in);
      const Result<CardSummary> summary = check_card(in);
      ASSERT_EQ(got.error(), summary.error()) << got.error().to_string() << summary.error().to_string();
      if (!got) {
        EXPECT_TRUE(got.error().code() == Code::kCorrupt || got.error().code() == Code::kUnsupported);
        return;
      }
      EXPECT_EQ(summary->regions, got->regions.size());
      const Result<std::string> again = encode(*got);
      ASSERT_TRUE(again) << again.error().to_string();
      expect_same(decode_card(base::as_bytes(*again)).value(), *got);
    });
  });
}

TEST(Card, ErrorsNameTheByte) {
  std::string bytes = encode(sample()).value();
  const std::size_t at = bytes.find("kvrkeyx");
  ASSERT_NE(at, std::string::npos);
  // One byte of text less than the regions name: shorten the section in place by renaming its last byte's section.
  std::string shorter = bytes;
  shorter.erase(at, 1);
  shorter[at - 4] = 6;
  const Status fault = fault_of(framed(shorter));
  EXPECT_EQ(fault.code(), Code::kCorrupt);
  EXPECT_NE(fault.message().find("region entry 2 is malformed at byte "), std::string_view::npos) << fault.message();
}

TEST(Card, WrongCardsAreInvalid) {
  const auto code_of = [](auto change) {
    Card card = sample();
    change(card);
    return encode(card).error().code();
  };
  EXPECT_EQ(code_of([](Card&) {}), Code::kOk);
  EXPECT_EQ(code_of([](Card& c) { c.name.clear(); }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.name = "a\nb"; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.name.assign(256, 'n'); }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.regions[1].index = 0; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.regions[2].index = kCardRegionsMax; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.regions[1].extra_first = 3; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.extras[0].backend = 2; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.regions[0].rights = static_cast<Rights>(4); }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.removed[1] = c.removed[0]; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.kind = CardKind::kFull; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.base_revision = 13; }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.backends[0].name.clear(); }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.backends[0].address.assign(kCardAddressMax + 1, 'a'); }), Code::kInvalid);
  EXPECT_EQ(code_of([](Card& c) { c.backends.resize(kCardBackendsMax + 1, {"x", ""}); }), Code::kInvalid);
  const std::string long_name(256, 'r');
  EXPECT_EQ(code_of([&](Card& c) { c.regions[0].name = long_name; }), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::wire
