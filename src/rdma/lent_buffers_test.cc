#include "rdma/lent_buffers.h"

#include <gtest/gtest.h>

#include <array>

#include "base/inside.h"
#include "rdma/held_memory.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using std::chrono::seconds;
constexpr Instant kNow = Instant::from_ns(1'000'000'000);

class LentBuffersTest : public ::testing::Test {
 protected:
  static LocalMemory memory_of(std::span<std::byte> bytes, Device device = {}) {
    auto core = std::make_shared<MemoryCore>();
    core->bytes = bytes;
    core->device = device;
    return LocalMemory(std::move(core), 0, bytes.size());
  }
  /// A buffer without a region.
  std::shared_ptr<Owned> buffer(std::uint64_t id, const Lending& lending = {}) {
    auto core = std::make_shared<BufferCore>();
    core->id = id;
    core->token = {next_token_++, 0};
    core->name = lending.name;
    core->whole = memory_.size();
    auto made = std::make_shared<Owned>();
    made->memory = memory_;
    made->rights = lending.rights;
    made->handle = RemoteBuffer(std::move(core), 0, memory_.size());
    return made;
  }
  static base::Id128 token_of(const Owned& owned) { return core_of(owned.handle)->token; }
  Status release(const Owned& owned, std::shared_ptr<Owned>* first, Instant deadline = kNow + seconds(1)) {
    Ack ack{.batch = {}, .peer = {}, .number = ++acks_, .deadline = deadline};
    return lent_.release(token_of(owned), ack, first);
  }
  Code code_of_find(std::uint64_t id, const Lending& lending = {}) const {
    return lent_.find(id, memory_, lending).error().code();
  }

  std::array<std::uint64_t, 8> words_{};
  LocalMemory memory_ = memory_of(std::as_writable_bytes(std::span(words_)));
  LentBuffers lent_{{.buffers = 3, .releases = 2}};
  std::uint64_t next_token_ = 1, acks_ = 0;
};

TEST_F(LentBuffersTest, ABufferIsFoundByIdTokenAndName) {
  const auto made = buffer(7, {.rights = Rights::kReadWrite, .name = "weights"});
  EXPECT_FALSE(lent_.find(7, memory_, {.rights = Rights::kReadWrite, .name = "weights"}).value());
  ASSERT_TRUE(lent_.add(made));
  EXPECT_TRUE(lent_.find(7, memory_, {.rights = Rights::kReadWrite, .name = "weights"}).value());
  EXPECT_EQ(lent_.by_token(token_of(*made)), made);
  EXPECT_EQ(lent_.by_name("weights")->id(), 7u);
  EXPECT_FALSE(lent_.by_name("other"));
  EXPECT_EQ(lent_.by_token({99, 99}), nullptr);
  EXPECT_EQ(lent_.size(), 1u);
}

TEST_F(LentBuffersTest, AnIdOrANameIsLentOnce) {
  ASSERT_TRUE(lent_.add(buffer(1, {.rights = Rights::kRead, .name = "a"})));
  EXPECT_EQ(code_of_find(1, {.rights = Rights::kReadWrite, .name = "a"}), Code::kInvalid) << "other rights";
  EXPECT_EQ(code_of_find(1, {.rights = Rights::kRead, .name = "b"}), Code::kInvalid) << "another name";
  EXPECT_EQ(code_of_find(2, {.rights = Rights::kRead, .name = "a"}), Code::kInvalid) << "its name is taken";
  EXPECT_EQ(lent_.add(buffer(2, {.rights = Rights::kRead, .name = "a"})).error().code(), Code::kInvalid);
  EXPECT_EQ(lent_.size(), 1u);
  EXPECT_EQ(code_of_find(2, {.rights = Rights::kRead}), Code::kOk);
}

TEST_F(LentBuffersTest, OfTwoThatLendOneIdAtOnceBothGetTheFirstHandle) {
  const auto first = buffer(1), second = buffer(1);
  ASSERT_TRUE(lent_.add(first));
  EXPECT_EQ(core_of(lent_.add(second).value())->token, token_of(*first));
  EXPECT_EQ(lent_.by_token(token_of(*second)), nullptr);
}

TEST_F(LentBuffersTest, TheBoundCountsThoseThatWereReleasedWithSomebodyInside) {
  const auto first = buffer(1);
  for (const auto& each : {first, buffer(2)}) ASSERT_TRUE(lent_.add(each));
  EXPECT_EQ(code_of_find(3), Code::kOk) << "the third";
  ASSERT_TRUE(lent_.add(buffer(3)));
  EXPECT_EQ(code_of_find(4), Code::kBusy);
  std::shared_ptr<Owned> taken;
  ASSERT_TRUE(release(*first, &taken).ok());
  EXPECT_EQ(code_of_find(4), Code::kBusy) << "its memory is still there";
  ASSERT_TRUE(lent_.take_due(*taken, true, kNow));
  EXPECT_EQ(code_of_find(4), Code::kOk);
}

TEST_F(LentBuffersTest, AReleaseIsAcknowledgedOnceTheRegionHasClosed) {
  const auto made = buffer(1, {.rights = Rights::kReadWrite, .name = "a"});
  ASSERT_TRUE(lent_.add(made));
  std::shared_ptr<Owned> first, second;
  ASSERT_TRUE(release(*made, &first).ok());
  EXPECT_EQ(first, made);
  EXPECT_EQ(lent_.by_token(token_of(*made)), nullptr);
  EXPECT_FALSE(lent_.by_name("a"));
  ASSERT_TRUE(release(*made, &second).ok()) << "it waits for the same end";
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(release(*made, &second).code(), Code::kBusy) << "one more than the bound";
  EXPECT_TRUE(lent_.has_closing() && lent_.is_awaited());
  EXPECT_TRUE(lent_.take_due(*made, false, kNow)->empty());
  const auto due = lent_.take_due(*made, true, kNow);
  ASSERT_TRUE(due);
  ASSERT_EQ(due->size(), 2u);
  EXPECT_EQ((*due)[0].number, 1u);
  EXPECT_EQ((*due)[1].number, 2u);
  EXPECT_FALSE(lent_.take_due(*made, true, kNow)) << "another look ended it";
  EXPECT_FALSE(lent_.has_closing());
  EXPECT_EQ(release(*made, &second).code(), Code::kNotFound);
}

TEST_F(LentBuffersTest, WhoseTimeIsOverIsToldAndTheBufferStays) {
  const auto made = buffer(1);
  ASSERT_TRUE(lent_.add(made));
  std::shared_ptr<Owned> first;
  ASSERT_TRUE(release(*made, &first, kNow).ok());
  ASSERT_TRUE(release(*made, &first, kNow + seconds(1)).ok());
  const auto due = lent_.take_due(*made, false, kNow);
  ASSERT_TRUE(due);
  ASSERT_EQ(due->size(), 1u);
  EXPECT_EQ(due->front().number, 1u);
  EXPECT_EQ(lent_.take_due(*made, false, kNow + seconds(1))->size(), 1u);
  EXPECT_TRUE(lent_.has_closing());
  EXPECT_FALSE(lent_.is_awaited());
  EXPECT_EQ(lent_.closing().size(), 1u);
}

TEST_F(LentBuffersTest, AnAtomicChangesItsWordAndNothingElse) {
  const auto made = buffer(1, {.rights = Rights::kReadWrite});
  ASSERT_TRUE(lent_.add(made));
  const base::Id128 token = token_of(*made);
  EXPECT_EQ(lent_.run_atomic({.kind = AskKind::kFetchAdd, .token = token, .offset = 56, .value = 5}).value, 0u);
  EXPECT_EQ(words_[7], 5u);
  const Ask swap{.kind = AskKind::kCompareSwap, .token = token, .offset = 56, .value = 9, .expected = 5};
  EXPECT_EQ(lent_.run_atomic(swap).value, 5u);
  EXPECT_EQ(lent_.run_atomic(swap).value, 9u) << "what it found";
  EXPECT_EQ(words_[7], 9u);
  for (const std::uint64_t offset : {57u, 64u, 4u}) {
    EXPECT_EQ(lent_.run_atomic({.kind = AskKind::kFetchAdd, .token = token, .offset = offset}).status.code(),
              Code::kInvalid)
        << offset;
  }
  EXPECT_EQ(lent_.run_atomic({.kind = AskKind::kFetchAdd, .token = {77, 0}}).status.code(), Code::kNotFound);
}

TEST_F(LentBuffersTest, AnAtomicWantsTheRightAndHostMemory) {
  const auto read_only = buffer(1, {.rights = Rights::kRead});
  ASSERT_TRUE(lent_.add(read_only));
  EXPECT_EQ(lent_.run_atomic({.kind = AskKind::kFetchAdd, .token = token_of(*read_only)}).status.code(), Code::kDenied);
  const auto on_device = buffer(2, {.rights = Rights::kReadWrite});
  on_device->memory = memory_of(std::as_writable_bytes(std::span(words_)), {.kind = DeviceKind::kCuda});
  ASSERT_TRUE(lent_.add(on_device));
  EXPECT_EQ(lent_.run_atomic({.kind = AskKind::kFetchAdd, .token = token_of(*on_device)}).status.code(),
            Code::kUnsupported);
}

TEST_F(LentBuffersTest, TheEndEmptiesAllBooks) {
  const auto first = buffer(1);
  for (const auto& each : {first, buffer(2)}) ASSERT_TRUE(lent_.add(each));
  std::shared_ptr<Owned> taken;
  ASSERT_TRUE(release(*first, &taken).ok());
  EXPECT_EQ(lent_.take_all().size(), 2u);
  EXPECT_EQ(lent_.size(), 0u);
  EXPECT_FALSE(lent_.has_closing());
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
