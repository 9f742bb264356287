#include "backend/verbs/mock/mock_request.h"

#include "backend/verbs/mock/test_mock_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr int kAll =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class MockRequestTest : public testing::Test, protected TestMockPair {
 protected:
  MockRequestTest() {
    ours_ = memory_.add(&pd, mine_.data(), 64, kAll);
    theirs_ = memory_.add(&pd, yours_.data(), 64, kAll);
    mine_.fill(std::byte{'m'});
    yours_.fill(std::byte{'y'});
  }
  ~MockRequestTest() override {
    memory_.end(ours_);
    memory_.end(theirs_);
  }
  ibv_wc_status run(ibv_wr_opcode opcode, std::uint32_t size, std::uint64_t offset = 0, unsigned flags = 0) {
    ibv_sge part{.addr = reinterpret_cast<std::uintptr_t>(mine_.data()), .length = size, .lkey = ours_->lkey};
    ibv_send_wr posted{};
    posted.opcode = opcode;
    posted.send_flags = flags;
    posted.imm_data = 77;
    posted.sg_list = &part;
    posted.num_sge = 1;
    const std::uint64_t remote = reinterpret_cast<std::uintptr_t>(yours_.data()) + offset;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      posted.wr.atomic = {.remote_addr = remote, .compare_add = compare_, .swap = 9, .rkey = theirs_->rkey};
    } else {
      posted.wr.rdma = {.remote_addr = remote, .rkey = theirs_->rkey};
    }
    request_ = take_request(here, posted, {});
    if ((flags & IBV_SEND_INLINE) != 0) mine_.fill(std::byte{'x'});
    return carry_out(memory_, message_max_, here, request_, there);
  }
  void post_receive(std::uint32_t size) {
    there.receives.push_back(
        {5, {{.addr = reinterpret_cast<std::uintptr_t>(yours_.data()), .length = size, .lkey = theirs_->lkey}}});
  }
  std::uint64_t word(const std::array<std::byte, 64>& bytes) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  alignas(8) std::array<std::byte, 64> mine_ = {}, yours_ = {};
  MockMemory memory_;
  ibv_mr *ours_ = nullptr, *theirs_ = nullptr;
  std::uint32_t message_max_ = 1 << 20;
  std::uint64_t compare_ = 0;
  MockRequest request_;
};

TEST_F(MockRequestTest, WritesAndReadsWithinBounds) {
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 32, 32), IBV_WC_SUCCESS);
  EXPECT_EQ(yours_[31], std::byte{'y'});
  EXPECT_EQ(yours_[32], std::byte{'m'});
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 33, 32), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(run(IBV_WR_RDMA_READ, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(mine_[0], std::byte{'y'});
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 65), IBV_WC_LOC_PROT_ERR) << "more than is registered here";
}

TEST_F(MockRequestTest, TheQueuePairsRightsCountToo) {
  there.attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(run(IBV_WR_RDMA_READ, 8), IBV_WC_SUCCESS);
}

TEST_F(MockRequestTest, AMessageIsNoLargerThanTheDeviceTakes) {
  message_max_ = 16;
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 16), IBV_WC_SUCCESS);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 17), IBV_WC_LOC_LEN_ERR);
}

TEST_F(MockRequestTest, InlineBytesAreThoseThatWerePosted) {
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE, 8, 0, IBV_SEND_INLINE), IBV_WC_SUCCESS);
  EXPECT_EQ(yours_[0], std::byte{'m'});
}

TEST_F(MockRequestTest, ASendNeedsAReceiveThatItFits) {
  EXPECT_EQ(run(IBV_WR_SEND, 8), IBV_WC_RNR_RETRY_EXC_ERR);
  post_receive(8);
  EXPECT_EQ(run(IBV_WR_SEND, 8), IBV_WC_SUCCESS);
  post_receive(7);
  EXPECT_EQ(run(IBV_WR_SEND, 8), IBV_WC_REM_INV_REQ_ERR);
  ASSERT_EQ(cq.entries.size(), 2u);
  EXPECT_EQ(cq.entries[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(cq.entries[0].byte_len, 8u);
  EXPECT_EQ(cq.entries[1].status, IBV_WC_LOC_LEN_ERR);
}

TEST_F(MockRequestTest, AnImmediateTakesAReceiveAndNoBytesOfIt) {
  post_receive(0);
  EXPECT_EQ(run(IBV_WR_RDMA_WRITE_WITH_IMM, 8), IBV_WC_SUCCESS);
  ASSERT_EQ(cq.entries.size(), 1u);
  EXPECT_EQ(cq.entries[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(cq.entries[0].imm_data, 77u);
}

TEST_F(MockRequestTest, AtomicsTakePlaceOnAlignedWords) {
  yours_.fill(std::byte{0});
  compare_ = 5;
  EXPECT_EQ(run(IBV_WR_ATOMIC_FETCH_AND_ADD, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(word(mine_), 0u) << "what was there";
  EXPECT_EQ(word(yours_), 5u);
  EXPECT_EQ(run(IBV_WR_ATOMIC_CMP_AND_SWP, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(word(yours_), 9u);
  EXPECT_EQ(run(IBV_WR_ATOMIC_CMP_AND_SWP, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(word(yours_), 9u) << "it was another";
  EXPECT_EQ(run(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4), IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(MockRequestTest, ItsCompletionNamesIt) {
  request_.wr_id = 6;
  request_.qp = 3;
  request_.opcode = IBV_WR_RDMA_READ;
  const ibv_wc wc = completion_of(request_, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, 6u);
  EXPECT_EQ(wc.qp_num, 3u);
  EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
  EXPECT_NE(wc.vendor_err, 0u);
}

}  // namespace
}  // namespace hawser::backend::verbs
