#include "rdma/lender.h"

#include <gtest/gtest.h>

#include "base/inside.h"
#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

class LenderTest : public ::testing::Test {
 protected:
  static base::Id128 token_of(const RemoteBuffer& buffer) { return core_of(buffer)->token; }
  const Reply& last() const { return *owner_.sent.back().what.reply; }

  TestOwner owner_{"owner"};
  TestOwner other_{"other"};
  Peer holder_ = other_.agent.self();
};

TEST_F(LenderTest, ABufferIsOfItsMemoryAndItsAgent) {
  const RemoteBuffer made = owner_.lend(7, {.rights = Rights::kRead, .name = "weights"}).value();
  EXPECT_EQ(made.id(), 7u);
  EXPECT_EQ(made.size(), owner_.memory.size());
  EXPECT_EQ(made.owner(), "owner");
  EXPECT_EQ(made.owner_incarnation(), owner_.agent.incarnation());
  EXPECT_EQ(owner_.lender.local_of(made.slice(8, 16).value())->bytes().data(), owner_.memory.bytes().data() + 8);
  EXPECT_EQ(token_of(owner_.lender.named("weights").value()), token_of(made));
  EXPECT_EQ(owner_.lender.named("other").error().code(), Code::kNotFound);
  EXPECT_EQ(other_.lender.local_of(made).error().code(), Code::kNotFound) << "not its own";
}

TEST_F(LenderTest, OneIdHasOneHandle) {
  const RemoteBuffer made = owner_.lend(7).value();
  EXPECT_EQ(token_of(owner_.lend(7).value()), token_of(made));
  EXPECT_NE(token_of(owner_.lend(8).value()), token_of(made));
}

TEST_F(LenderTest, SomeMemoryIsNotLent) {
  const LocalMemory fixed = owner_.memory_of(owner_.memory.bytes(), false);
  EXPECT_EQ(owner_.lender.lend(1, LocalMemory(), {}).error().code(), Code::kInvalid) << "none";
  EXPECT_EQ(owner_.lender.lend(1, fixed, {.rights = Rights::kReadWrite}).error().code(), Code::kDenied) << "read-only";
  EXPECT_TRUE(owner_.lender.lend(1, fixed, {.rights = Rights::kRead}));
  EXPECT_EQ(owner_.lend(2, {.rights = Rights::kNone}).error().code(), Code::kInvalid);
  const std::string too_long(kBufferNameMax + 1, 'x');
  EXPECT_EQ(owner_.lend(3, {.name = too_long}).error().code(), Code::kInvalid);
}

TEST_F(LenderTest, AReleaseEndsABatchOfThisProcess) {
  const RemoteBuffer made = owner_.lend(7).value();
  const auto batch = batch_of(1);
  owner_.lender.release(token_of(made), {.batch = batch, .peer = {}, .deadline = Instant::max()});
  ASSERT_TRUE(batch->done());
  EXPECT_TRUE(batch->status().ok());
  EXPECT_EQ(owner_.lent.size(), 0u);
  EXPECT_FALSE(owner_.lender.look()) << "nothing is left to look at";
}

TEST_F(LenderTest, ARequestIsAnswered) {
  const RemoteBuffer made = owner_.lend(7, {.rights = Rights::kReadWrite, .name = "weights"}).value();
  owner_.lender.answer(holder_, {.kind = AskKind::kFetchAdd, .number = 1, .token = token_of(made), .value = 5});
  EXPECT_TRUE(last().status.ok());
  EXPECT_EQ(owner_.words[0], 5u);
  owner_.lender.answer(holder_, {.kind = AskKind::kHandle, .number = 2, .token = {}, .name = "weights"});
  EXPECT_EQ(last().number, 2u);
  EXPECT_EQ(last().handle, made.encode());
  owner_.lender.answer(holder_, {.kind = AskKind::kHandle, .number = 3, .token = {}, .name = "other"});
  EXPECT_EQ(last().status.code(), Code::kNotFound);
  owner_.lender.answer(holder_, {.kind = AskKind::kRelease, .number = 4, .token = token_of(made)});
  EXPECT_EQ(last().number, 4u);
  EXPECT_TRUE(last().status.ok());
  owner_.lender.answer(holder_, {.kind = AskKind::kRelease, .number = 5, .token = token_of(made)});
  EXPECT_EQ(last().number, 5u);
  EXPECT_EQ(last().status.code(), Code::kNotFound);
  EXPECT_EQ(owner_.sent.size(), 5u);
  EXPECT_EQ(owner_.sent.back().to.name(), "other");
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
