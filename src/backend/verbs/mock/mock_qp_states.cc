#include "backend/verbs/mock/mock_qp_states.h"

#include <cerrno>

namespace hawser::backend::verbs {
namespace {

bool is_legal(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;
  return (from == IBV_QPS_RESET && to == IBV_QPS_INIT) || (from == IBV_QPS_INIT && to == IBV_QPS_RTR) ||
         (from == IBV_QPS_RTR && to == IBV_QPS_RTS);
}

/// Attributes that a transition of a reliable connection needs.
int needed_for(ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    case IBV_QPS_RTR:
      return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER;
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC;
    default:
      return IBV_QP_STATE;
  }
}

/// Exactly these attributes are taken by a queue pair of datagrams.
int datagrams_need(ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_SQ_PSN;
    default:
      return IBV_QP_STATE;
  }
}

}  // namespace

int move_on(MockQp& qp, const MockDevice& device, ibv_qp_attr& attr, int mask) {
  const ibv_qp_state to = attr.qp_state;
  if (!is_legal(qp.attr.qp_state, to)) return EINVAL;
  if (qp.is_srd ? mask != datagrams_need(to) : (mask & needed_for(to)) != needed_for(to)) return EINVAL;
  if (qp.is_srd && to == IBV_QPS_INIT) {
    qp.attr.qkey = attr.qkey;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;  // As its regions say.
  }
  if (to == IBV_QPS_INIT) {
    qp.attr.qp_access_flags = attr.qp_access_flags;
    qp.attr.pkey_index = attr.pkey_index;
    qp.attr.port_num = attr.port_num;
  }
  if (to == IBV_QPS_RTR && !qp.is_srd) {
    if (attr.max_dest_rd_atomic > device.max_qp_rd_atom || attr.path_mtu > device.mtu) return EINVAL;
    qp.peer = attr.dest_qp_num;
    qp.attr.rq_psn = attr.rq_psn;
    qp.attr.path_mtu = attr.path_mtu;
    qp.attr.max_dest_rd_atomic = attr.max_dest_rd_atomic;
    qp.attr.min_rnr_timer = attr.min_rnr_timer;
    qp.attr.ah_attr = attr.ah_attr;
  }
  if (to == IBV_QPS_RTS) {
    qp.attr.sq_psn = attr.sq_psn;
    qp.attr.timeout = attr.timeout;
    qp.attr.retry_cnt = attr.retry_cnt;
    qp.attr.rnr_retry = attr.rnr_retry;
    qp.attr.max_rd_atomic = attr.max_rd_atomic;
  }
  qp.attr.qp_state = qp.state = to;
  return 0;
}

}  // namespace hawser::backend::verbs
