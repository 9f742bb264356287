#include "backend/verbs/mock/mock_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::backend::verbs {
namespace {

class MockMemoryTest : public testing::Test {
 protected:
  ~MockMemoryTest() override {
    while (!memory_.registered().empty()) memory_.end(memory_.registered().begin()->second);
    memory_.purge(&context_);
  }
  std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(bytes_.data()) + offset; }
  bool reaches(std::uint32_t key, std::uint64_t address, std::uint64_t size, int right = IBV_ACCESS_REMOTE_WRITE) {
    return memory_.resolve(&pd_, key, address, size, right).has_value();
  }
  std::uint32_t add(std::size_t offset, std::size_t size) {
    return memory_.add(&pd_, bytes_.data() + offset, size, IBV_ACCESS_REMOTE_WRITE)->rkey;
  }

  std::array<std::byte, 256> bytes_ = {};
  ibv_context context_{}, other_context_{};
  ibv_pd pd_{.context = &context_, .handle = 0}, other_pd_{.context = &other_context_, .handle = 0};
  MockMemory memory_;
};

TEST_F(MockMemoryTest, AKeyMeansItsBytesAndNoOther) {
  const std::uint32_t key = add(10, 100);
  EXPECT_TRUE(reaches(key, at(10), 100));
  EXPECT_FALSE(reaches(key, at(10), 101));
  EXPECT_FALSE(reaches(key, at(9), 1));
  EXPECT_TRUE(reaches(key, at(109), 1));
  EXPECT_FALSE(reaches(key, at(110), 1));
  EXPECT_FALSE(reaches(key + 1, at(10), 1));
  EXPECT_FALSE(reaches(key, at(10), 1, IBV_ACCESS_REMOTE_READ)) << "no right";
  EXPECT_FALSE(memory_.resolve(&other_pd_, key, at(10), 1, 0)) << "of another protection domain";
}

TEST_F(MockMemoryTest, AListIsCountedFromItsBegin) {
  const std::uint32_t first = add(0, 50), second = add(100, 50);
  const std::uint32_t list = memory_.add_list();
  EXPECT_FALSE(reaches(list, 0, 1)) << "not bound yet";
  const std::array<ibv_sge, 2> pieces{ibv_sge{.addr = at(40), .length = 10, .lkey = first},
                                      ibv_sge{.addr = at(100), .length = 20, .lkey = second}};
  memory_.bind_list(list, IBV_ACCESS_REMOTE_WRITE, pieces);
  const auto runs = memory_.resolve(&pd_, list, 5, 15, IBV_ACCESS_REMOTE_WRITE);
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ((*runs)[0].data(), bytes_.data() + 45);
  EXPECT_EQ((*runs)[0].size(), 5u);
  EXPECT_EQ((*runs)[1].data(), bytes_.data() + 100);
  EXPECT_TRUE(reaches(list, 0, 30));
  EXPECT_FALSE(reaches(list, 0, 31));
  EXPECT_EQ(memory_.count(), 3u);
  memory_.end_list(list);
  EXPECT_FALSE(reaches(list, 0, 1));
  EXPECT_EQ(memory_.count(), 2u);
}

TEST_F(MockMemoryTest, WhatWasRevokedIsAnObjectUntilItIsPurged) {
  const std::uint32_t key = add(0, 50);
  EXPECT_EQ(memory_.bytes_pinned(), 50u);
  memory_.revoke([this](const ibv_context* context) { return context == &other_context_; });
  EXPECT_TRUE(reaches(key, at(0), 1));
  memory_.revoke([this](const ibv_context* context) { return context == &context_; });
  EXPECT_FALSE(reaches(key, at(0), 1));
  EXPECT_EQ(memory_.bytes_pinned(), 0u);
  EXPECT_EQ(memory_.count(), 1u);
  memory_.purge(&context_);
  EXPECT_EQ(memory_.count(), 0u);
}

}  // namespace
}  // namespace hawser::backend::verbs
