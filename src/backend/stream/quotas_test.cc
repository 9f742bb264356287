// What one peer may use at once: at its value, and one beyond.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "backend/stream/test_pair.h"

namespace hawser::backend::stream {
namespace {

/// Reads of 64 KiB until no path of `pair` takes any.
std::size_t ask_for_all(Pair& pair, std::size_t sessions) {
  pair.kept = {Piece{pair.a->memory.data(), 0, 64 * 1024}};  // They outlive the chunks.
  Chunk chunk = pair.chunk(Operation::kRead, pair.kept, 1);
  std::size_t asked = 0;
  open_many(pair, sessions, [&](Path* path) {
    RemoteRegionRef ref;
    ref.index = pair.region->index;
    ref.generation = pair.region->generation;
    ref.key = pair.region->key;
    chunk.target = *path->bind(ref);
    while (path->submit({&chunk, 1}, pair.now).taken == 1) ++asked;
  });
  return asked;
}

std::size_t count_busy(const Side& side, std::string_view quota) {
  return static_cast<std::size_t>(std::ranges::count_if(side.done, [&](const auto& each) {
    const Status& status = each.second;
    return status.code() == Code::kBusy && status.buffer() == BufferState::kUntouched &&
           status.message().find(quota) != std::string_view::npos && !status.advice().empty();
  }));
}

std::uint64_t refusals(const Side& side, std::string_view quota) {
  for (const auto& [name, count] : side.context->guard->refusals()) {
    if (name == quota) return count;
  }
  return 0;
}

/// Reads of 64 KiB under way at b while a reads nothing of what comes: with the quota that many, none is refused.
void expect_reads(const PeerQuotas& quotas, std::size_t refused, std::string_view text) {
  Pair pair(2, 1, quotas);
  pair.network.capacity = 10000;
  const std::size_t asked = ask_for_all(pair, 2);
  ASSERT_EQ(asked, 2 * 56u) << "each path leaves 8 of 64 to small ones";
  for (int i = 0; i < 50; ++i) pair.a->collect(pair.now);
  for (int i = 0; i < 50; ++i) pair.b->collect(pair.now);
  ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == asked; }));
  EXPECT_EQ(count_busy(*pair.a, text), refused);
  const auto is_good = [](const auto& each) { return each.second.ok(); };
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(pair.a->done, is_good)), asked - refused);
  EXPECT_EQ(refusals(*pair.b, "peer_operations") + refusals(*pair.b, "peer_bytes"), refused);
  EXPECT_TRUE(pair.a->down.empty() && pair.b->down.empty()) << "the paths go on";
}

TEST(Quotas, ReadsUpToTheQuotaOfOperationsAreServed) {
  expect_reads({.operations = 112}, 0, "");
  expect_reads({.operations = 111}, 1, "its limits.peer_operations = 111 is in use by this peer");
}

TEST(Quotas, ReadsUpToTheQuotaOfBytesAreServed) {
  expect_reads({.bytes = 112 * 64 * 1024}, 0, "");
  expect_reads({.bytes = 112 * 64 * 1024 - 1}, 1, "its limits.peer_bytes = 7340031 is in use by this peer");
}

// A write of which the first bytes came holds its place until its last has come.
TEST(Quotas, AWriteBeyondTheQuotaTouchesNothing) {
  Pair pair(3, 1, {.bytes = 1 << 20});
  pair.connect();
  pair.network.capacity = 64 * 1024;
  const Piece first{pair.a->memory.data(), 0, 1 << 20};
  const Piece second{pair.a->memory.data(), 2 << 20, 1 << 20};
  std::fill_n(pair.a->memory.begin(), 1 << 20, std::byte{0x11});
  Chunk chunk = pair.chunk(Operation::kWrite, {&first, 1}, 1);
  chunk.target = pair.binding;
  ASSERT_EQ(pair.to_b->submit({&chunk, 1}, pair.now).taken, 1u);
  for (int i = 0; i < 20 && pair.b->context->guard->account({11, 11})->operations() == 0; ++i) pair.step();
  ASSERT_EQ(pair.b->context->guard->account({11, 11})->bytes(), 1u << 20);
  Chunk other = pair.chunk(Operation::kWrite, {&second, 1}, 2);
  other.target = pair.binding;
  ASSERT_EQ(pair.to_b->submit({&other, 1}, pair.now).taken, 1u);
  ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == 2; }));
  EXPECT_EQ(count_busy(*pair.a, "limits.peer_bytes = 1048576"), 1u);
  EXPECT_EQ(pair.b->memory[0], std::byte{0x11});
  EXPECT_EQ(pair.b->memory[2 << 20], std::byte{0xee});
  EXPECT_EQ(pair.b->context->guard->account({11, 11})->operations(), 0u);
}

TEST(Quotas, AConnectionBeyondTheQuotaIsRefusedAndTheOthersGoOn) {
  Pair pair(2, 1, {.connections = 2});
  open_many(pair, 2, [](Path*) {});
  pair.open("b");
  ASSERT_TRUE(pair.run([&] { return !pair.a->down.empty(); }));
  EXPECT_EQ(pair.a->down[0].code(), Code::kBusy);
  EXPECT_NE(pair.a->down[0].message().find("limits.peer_connections = 2"), std::string_view::npos)
      << pair.a->down[0].to_string();
  EXPECT_EQ(refusals(*pair.b, "peer_connections"), 1u);
  pair.to_b->give_up(Status(Code::kDisconnected, "enough"));
  ASSERT_TRUE(pair.run([&] { return !pair.b->down.empty(); }));
  Path* const again = pair.open("b");
  EXPECT_TRUE(pair.run([&] { return pair.a->up == again; })) << "a place is free";
}

// A session that its opener replaces gives its place first.
TEST(Quotas, ASessionInPlaceOfAnotherNeedsNoFurtherPlace) {
  Pair pair(2, 1, {.connections = 1});
  pair.connect();
  Path* const next = pair.open("b", {}, pair.a->session);
  EXPECT_TRUE(pair.run([&] { return pair.a->up == next; }));
}

}  // namespace
}  // namespace hawser::backend::stream
