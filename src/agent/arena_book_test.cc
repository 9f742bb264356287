#include "agent/arena_book.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::agent {
namespace {

constexpr std::size_t kSize = 16384;

std::shared_ptr<backend::Arena> make_arena(Rights rights = Rights::kReadWrite) {
  return *backend::Arena::create(kSize, rights, HugePages::kOff);
}

TEST(ArenaBook, FindsWhatLiesInAnArenaWholly) {
  ArenaBook book;
  const auto arena = make_arena();
  book.note(arena);
  const std::span<const std::byte> bytes = arena->bytes();
  EXPECT_EQ(book.find(bytes, Rights::kReadWrite), arena);
  EXPECT_EQ(book.find(bytes.last(1), Rights::kRead), arena);
  EXPECT_EQ(book.find(bytes.subspan(100, 8), Rights::kRead), arena);
  EXPECT_EQ(book.find({bytes.data() + 1, bytes.size()}, Rights::kRead), nullptr) << "one byte beyond";
  const std::vector<std::byte> foreign(64);
  EXPECT_EQ(book.find(foreign, Rights::kRead), nullptr);
}

TEST(ArenaBook, WhatIsSealedAgainstWritingServesReadersOnly) {
  ArenaBook book;
  const auto arena = make_arena(Rights::kRead);
  book.note(arena);
  EXPECT_EQ(book.find(arena->bytes(), Rights::kRead), arena);
  EXPECT_EQ(book.find(arena->bytes(), Rights::kReadWrite), nullptr);
}

TEST(ArenaBook, KeepsNoArenaAndForgetsThoseThatAreGone) {
  ArenaBook book;
  auto arena = make_arena();
  const std::span<const std::byte> bytes = arena->bytes();
  book.note(arena);
  const std::weak_ptr<backend::Arena> watched = arena;
  arena.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(book.find(bytes, Rights::kRead), nullptr);
  EXPECT_EQ(book.size(), 0u);
}

TEST(ArenaBook, StaysSmallWhereArenasComeAndGo) {
  ArenaBook book;
  std::vector<std::shared_ptr<backend::Arena>> living;
  for (int i = 0; i < 3; ++i) {
    living.push_back(make_arena());
    book.note(living.back());
  }
  std::vector<std::shared_ptr<backend::Arena>> at_once;  // So that each has another address.
  for (int round = 0; round < 5; ++round) {
    at_once.clear();
    for (int i = 0; i < 40; ++i) {
      at_once.push_back(make_arena());
      book.note(at_once.back());
    }
    EXPECT_LE(book.size(), 2 * (living.size() + at_once.size()) + 64);
  }
  for (const auto& each : living) EXPECT_EQ(book.find(each->bytes(), Rights::kRead), each);
}

}  // namespace
}  // namespace hawser::agent
