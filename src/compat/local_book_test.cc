#include "compat/local_book.h"

#include <gtest/gtest.h>

#include <utility>

namespace hawser::compat {
namespace {

RegDescList list_of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  RegDescList list(MemType::kDram);
  for (const auto& [addr, len] : ranges) list.add(addr, len);
  return list;
}

struct LocalBookTest : ::testing::Test {
  /// `index` 0: without a region.
  void add(std::uint64_t addr, std::uint64_t len, std::uint32_t index, BackendMask backends = 1) {
    LocalSpot spot;
    spot.index = index;
    if (index != 0) {
      spot.region = std::make_shared<agent::LocalRegion>(nullptr, std::make_shared<backend::RegionEntry>(), false);
    }
    book.add(MemType::kDram, {.addr = addr, .len = len, .dev = 0}, std::move(spot), backends);
  }

  LocalBook book;
};

TEST_F(LocalBookTest, ARegistrationIsTakenOutWhenNoBackendHasItAnyMore) {
  add(1000, 100, 7, 3);
  const Desc desc{.addr = 1000, .len = 100, .dev = 0};
  std::optional<LocalBook::Entry> entry;
  EXPECT_TRUE(book.take(MemType::kDram, desc, 1, &entry));
  EXPECT_FALSE(entry.has_value());
  EXPECT_TRUE(book.take(MemType::kDram, desc, 2, &entry));
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->range.index, 7u);
  EXPECT_FALSE(book.take(MemType::kDram, desc, 2, &entry));
}

TEST_F(LocalBookTest, EachDescriptorOfAListNeedsARegistrationOfItsOwn) {
  add(1000, 100, 1);
  add(1000, 100, 2);
  add(2000, 100, 3);
  EXPECT_TRUE(book.check("call", list_of({{1000, 100}, {2000, 100}, {1000, 100}}), kAllBackends).ok());
  const Status thrice = book.check("call", list_of({{1000, 100}, {1000, 100}, {1000, 100}}), kAllBackends);
  EXPECT_EQ(code_of(thrice), NixlCode::kNotFound);
  EXPECT_NE(thrice.message().find("descriptor 2"), std::string::npos) << thrice.message();
  EXPECT_FALSE(book.check("call", list_of({{2000, 99}}), kAllBackends).ok()) << "a part of one is none";
  EXPECT_FALSE(book.check("call", list_of({{2000, 100}}), 2).ok()) << "another backend's";
}

TEST_F(LocalBookTest, WhatLiesNowhereIsToldToNobody) {
  add(1000, 100, 1);
  add(2000, 0, 0);
  add(3000, 100, 3, 2);
  EXPECT_EQ(book.entries(kAllBackends).count(), 2u);
  EXPECT_EQ(book.entries(1).count(), 1u);
}

TEST_F(LocalBookTest, APartOfARegistrationIsToldAsAllOfIt) {
  add(1000, 100, 1);
  add(2000, 100, 2, 2);
  std::vector<std::uint32_t> indices;
  const auto some = book.entries("call", list_of({{1010, 5}, {1050, 50}}), 1, &indices);
  ASSERT_TRUE(some.has_value());
  EXPECT_EQ(some->count(), 2u);
  EXPECT_EQ(indices, (std::vector<std::uint32_t>{1, 1}));
  BlobEntries whole;
  for (int i = 0; i < 2; ++i) {
    whole.add({.type = MemType::kDram, .region = 1, .desc = {.addr = 1000, .len = 100, .dev = 0}});
  }
  EXPECT_EQ(some->bytes(), whole.bytes());
  indices.clear();
  EXPECT_FALSE(book.entries("call", list_of({{1010, 5}, {2000, 5}}), 1, &indices).has_value());
}

TEST_F(LocalBookTest, AFileReachesAsFarAsAFileCan) {
  const Desc whole = book_desc(MemType::kFile, {.addr = 4096, .len = 0, .dev = 3});
  EXPECT_GT(whole.len, std::uint64_t{1} << 40);
  const Desc memory = book_desc(MemType::kDram, {.addr = 4096, .len = 0, .dev = 3});
  EXPECT_EQ(memory.len, 0u);
}

}  // namespace
}  // namespace hawser::compat
