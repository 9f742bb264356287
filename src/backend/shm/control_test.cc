#include "backend/shm/control.h"

#include <gtest/gtest.h>

#include "backend/shm/packet.h"
#include "base/bytes.h"
#include "base/rng.h"

namespace hawser::backend::shm {
namespace {

Open sample_open() {
  Open open;
  open.membarrier = true;
  open.ring_bytes = 65536;
  open.probe = {0x1234, {5, 6}};
  open.hello.name = "alice";
  open.hello.incarnation = {1, 2};
  open.hello.session = {3, 4};
  return open;
}

std::vector<std::string> samples() {
  Accept accept;
  accept.hello = sample_open().hello;
  Bound bound;
  bound.request = 9;
  bound.kind = MemoryKind::kForeign;
  bound.rights = Rights::kRead;
  bound.size = 1 << 20;
  bound.place = 0xffff'ffff'0000;
  return {encode(sample_open()), encode(accept), encode(Bind{1, 2, 3, {4, 5}}), encode(bound),
          encode(Bye{Code::kCorrupt, true, "why"})};
}

TEST(Control, AdoptedMemoryTellsItsEnds) {
  Bound bound;
  bound.kind = MemoryKind::kAdopted;
  bound.size = 10000;
  bound.place = 100;
  bound.address = 0x7f00'0000'0064;
  bound.head = 3996;
  bound.tail = 1904;
  const auto decoded = std::get<Bound>(decode_control(base::as_bytes(encode(bound))).value());
  EXPECT_EQ(decoded.kind, MemoryKind::kAdopted);
  EXPECT_EQ(decoded.address, bound.address);
  EXPECT_EQ(decoded.head, bound.head);
  EXPECT_EQ(decoded.tail, bound.tail);
  const std::string text = encode(bound);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(decode_control(base::as_bytes(text.substr(0, size)))) << size;
  }
  bound.head = 9000;  // they would overlap
  EXPECT_FALSE(decode_control(base::as_bytes(encode(bound))));
  bound.head = UINT64_MAX;
  EXPECT_FALSE(decode_control(base::as_bytes(encode(bound))));
}

TEST(Control, OldPeersAreKnownByTheirFlags) {
  Open open = sample_open();
  EXPECT_TRUE(std::get<Open>(decode_control(base::as_bytes(encode(open))).value()).ends);
  open.ends = false;
  const Open old = std::get<Open>(decode_control(base::as_bytes(encode(open))).value());
  EXPECT_FALSE(old.ends);
  EXPECT_TRUE(old.membarrier);
  EXPECT_TRUE(old.views);
  open.views = false;
  EXPECT_FALSE(std::get<Open>(decode_control(base::as_bytes(encode(open))).value()).views);
}

TEST(Control, RoundTrips) {
  const auto texts = samples();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto decoded = decode_control(base::as_bytes(texts[i]));
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    EXPECT_EQ(decoded->index(), i);
    EXPECT_EQ(std::visit([](const auto& message) { return encode(message); }, *decoded), texts[i]);
    EXPECT_LE(texts[i].size(), kPacketMax);
    EXPECT_TRUE(decode_control(base::as_bytes(texts[i] + "later fields")));
  }
}

TEST(Control, LongestPacketsFit) {
  Open open = sample_open();
  open.hello.name.assign(255, 'x');
  EXPECT_LE(encode(open).size(), kPacketMax);
  Bye bye;
  bye.reason.assign(100000, 'x');
  EXPECT_LE(encode(bye).size(), kPacketMax);
  EXPECT_TRUE(decode_control(base::as_bytes(encode(bye))));
}

TEST(Control, CutsAndGarbageAreRefused) {
  base::Rng rng(3);
  for (const std::string& text : samples()) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      EXPECT_FALSE(decode_control(base::as_bytes(text.substr(0, size)))) << size;
    }
    for (int i = 0; i < 2000; ++i) {
      std::string broken = text;
      broken[rng.below(broken.size())] ^= static_cast<char>(1 + rng.below(255));
      static_cast<void>(decode_control(base::as_bytes(broken)).has_value());
    }
  }
}

TEST(Control, SenselessValuesAreRefused) {
  for (const std::uint32_t ring_bytes : {0u, 4095u, 5000u, 1u << 31}) {
    Open open = sample_open();
    open.ring_bytes = ring_bytes;
    EXPECT_EQ(decode_control(base::as_bytes(encode(open))).error().code(), Code::kCorrupt);
  }
  EXPECT_FALSE(decode_control(base::as_bytes(encode(Bye{Code::kOk, false, ""}))));
}

}  // namespace
}  // namespace hawser::backend::shm
