#include "wire/atomic.h"

#include <gtest/gtest.h>

#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

AtomicAsk swap_ask() {
  return {.kind = AtomicKind::kCompareSwap,
          .id = 7,
          .region = 300,
          .generation = 2,
          .key = {.hi = 0x0102030405060708, .lo = 0x1112131415161718},
          .offset = 4096,
          .operand = 5,
          .expected = UINT64_MAX};
}

template <typename M>
std::string atomic_bytes(const M& message) {
  AtomicBuffer buffer;
  return std::string(base::as_text(encode(message, buffer)));
}

TEST(WireAtomic, GoldenVectors) {
  EXPECT_EQ(hex(atomic_bytes(swap_ask())),
            "020700000000000000ac0202181716151413121108070605040302018020"
            "0500000000000000ffffffffffffffff");
  AtomicAsk add = swap_ask();
  add.kind = AtomicKind::kFetchAdd;
  EXPECT_EQ(hex(atomic_bytes(add)), "010700000000000000ac02021817161514131211080706050403020180200500000000000000");
  EXPECT_EQ(hex(atomic_bytes(AtomicAnswer{.id = 9, .found = 258})), "0900000000000000000201000000000000");
  EXPECT_EQ(hex(atomic_bytes(AtomicAnswer{.id = 9, .code = Code::kInvalid})), "090000000000000001");
}

TEST(WireAtomic, RoundTrips) {
  const AtomicAsk ask = swap_ask();
  const AtomicAsk got = decode_atomic_ask(base::as_bytes(atomic_bytes(ask))).value();
  EXPECT_EQ(got.kind, ask.kind);
  EXPECT_EQ(got.id, ask.id);
  EXPECT_EQ(got.region, ask.region);
  EXPECT_EQ(got.generation, ask.generation);
  EXPECT_EQ(got.key, ask.key);
  EXPECT_EQ(got.offset, ask.offset);
  EXPECT_EQ(got.operand, ask.operand);
  EXPECT_EQ(got.expected, ask.expected);
  const AtomicAnswer answer =
      decode_atomic_answer(base::as_bytes(atomic_bytes(AtomicAnswer{.id = 3, .found = 4}))).value();
  EXPECT_EQ(answer.id, 3U);
  EXPECT_EQ(answer.code, Code::kOk);
  EXPECT_EQ(answer.found, 4U);
}

TEST(WireAtomic, CutAndLongerOnesAreCorrupt) {
  const std::string ask = atomic_bytes(swap_ask()), answer = atomic_bytes(AtomicAnswer{.id = 3, .found = 4});
  feed_every_cut(ask, [](auto bytes) { EXPECT_EQ(decode_atomic_ask(bytes).error().code(), Code::kCorrupt); });
  feed_every_cut(answer, [](auto bytes) { EXPECT_EQ(decode_atomic_answer(bytes).error().code(), Code::kCorrupt); });
  EXPECT_FALSE(decode_atomic_ask(base::as_bytes(ask + "x")));
  EXPECT_FALSE(decode_atomic_answer(base::as_bytes(answer + "x")));
  EXPECT_FALSE(decode_atomic_ask(base::as_bytes("\3" + ask.substr(1))));
}

TEST(WireAtomic, GarbageIsAnswered) {
  feed_garbage(atomic_bytes(swap_ask()), 2000, [](auto bytes) { (void)decode_atomic_ask(bytes); });
  feed_garbage(atomic_bytes(AtomicAnswer{.id = 3}), 2000, [](auto bytes) { (void)decode_atomic_answer(bytes); });
}

}  // namespace
}  // namespace hawser::wire
