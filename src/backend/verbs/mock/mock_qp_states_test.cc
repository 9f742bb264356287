#include "backend/verbs/mock/mock_qp_states.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace hawser::backend::verbs {
namespace {

constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kSend =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

class MockQpStatesTest : public testing::Test {
 protected:
  int to(ibv_qp_state state, int mask) {
    attr_.qp_state = state;
    return move_on(qp_, device_, attr_, mask);
  }

  MockDevice device_;
  MockQp qp_{};
  ibv_qp_attr attr_{};
};

TEST_F(MockQpStatesTest, OneStepAfterTheOther) {
  EXPECT_EQ(to(IBV_QPS_RTR, kReceive), EINVAL) << "INIT is left out";
  EXPECT_EQ(to(IBV_QPS_INIT, kInit), 0);
  attr_.path_mtu = IBV_MTU_1024;
  attr_.dest_qp_num = 7;
  EXPECT_EQ(to(IBV_QPS_RTR, kReceive), 0);
  EXPECT_EQ(qp_.peer, 7u);
  attr_.sq_psn = 5;
  EXPECT_EQ(to(IBV_QPS_RTS, kSend), 0);
  EXPECT_EQ(qp_.attr.sq_psn, 5u);
  EXPECT_EQ(to(IBV_QPS_INIT, kInit), EINVAL);
  EXPECT_EQ(to(IBV_QPS_RESET, IBV_QP_STATE), 0);
  EXPECT_EQ(qp_.state, IBV_QPS_RESET);
}

TEST_F(MockQpStatesTest, EachAttributeIsNeeded) {
  for (int bit = 1; bit <= kInit; bit <<= 1) {
    if ((kInit & bit) == 0) continue;
    EXPECT_EQ(to(IBV_QPS_INIT, kInit & ~bit), EINVAL) << bit;
  }
  EXPECT_EQ(to(IBV_QPS_INIT, kInit), 0);
  for (int bit = 1; bit <= kReceive; bit <<= 1) {
    if ((kReceive & bit) == 0) continue;
    EXPECT_EQ(to(IBV_QPS_RTR, kReceive & ~bit), EINVAL) << bit;
  }
}

TEST_F(MockQpStatesTest, LimitsOfTheDeviceHold) {
  EXPECT_EQ(to(IBV_QPS_INIT, kInit), 0);
  attr_.path_mtu = IBV_MTU_1024;
  attr_.max_dest_rd_atomic = static_cast<std::uint8_t>(device_.max_qp_rd_atom + 1);
  EXPECT_EQ(to(IBV_QPS_RTR, kReceive), EINVAL);
  attr_.max_dest_rd_atomic = static_cast<std::uint8_t>(device_.max_qp_rd_atom);
  device_.mtu = IBV_MTU_512;
  EXPECT_EQ(to(IBV_QPS_RTR, kReceive), EINVAL);
  device_.mtu = IBV_MTU_1024;
  EXPECT_EQ(to(IBV_QPS_RTR, kReceive), 0);
}

TEST_F(MockQpStatesTest, DatagramsTakeExactlyTheirs) {
  qp_.is_srd = true;
  constexpr int kDatagrams = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  attr_.qkey = 9;
  EXPECT_EQ(to(IBV_QPS_INIT, kDatagrams | IBV_QP_ACCESS_FLAGS), EINVAL);
  EXPECT_EQ(to(IBV_QPS_INIT, kDatagrams), 0);
  EXPECT_EQ(qp_.attr.qkey, 9u);
  EXPECT_EQ(qp_.attr.qp_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(to(IBV_QPS_RTR, IBV_QP_STATE), 0);
  EXPECT_EQ(to(IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

}  // namespace
}  // namespace hawser::backend::verbs
