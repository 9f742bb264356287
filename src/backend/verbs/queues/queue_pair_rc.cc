// Reliable connections of InfiniBand and RoCE.

#include <algorithm>
#include <cstring>

#include "backend/verbs/queues/queue_pair_object.h"
#include "base/fd.h"
#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uint32_t kFlowLabelMask = 0xfffff;

class RcObject final : public QueuePairObject {
 public:
  RcObject(const Nic& nic, const QueuePairOptions& options) : nic_(nic), options_(options) {}

  ibv_qp* create(ibv_qp_init_attr* attr) override {
    attr->qp_type = IBV_QPT_RC;
    return verbs().create_qp(nic_.domain->pd(), attr);
  }

  Status init(ibv_qp* qp, base::Rng& rng) override {
    psn_ = static_cast<std::uint32_t>(rng.u64()) & wire::k24BitMax;
    flow_label_ =
        options_.flow_label != 0 ? options_.flow_label : static_cast<std::uint32_t>(rng.u64()) & kFlowLabelMask;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.pkey_index = options_.pkey_index;
    attr.port_num = nic_.port.number;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    const int error = verbs().modify_qp(qp, &attr, mask);
    return error == 0 ? Status() : call_failed(nic_, "bringing a queue pair to INIT", error);
  }

  Status join(ibv_qp* qp, const Gid& own, const wire::QueuePairEndpoint& peer) override {
    ibv_qp_attr attr = to_rtr(own, peer);
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (const int error = verbs().modify_qp(qp, &attr, mask); error != 0) {
      return call_failed(nic_, "bringing a queue pair to RTR", error)
          .with_advice("the peer's address may not be routable from this port: see `hawser topo` and `gid_index`");
    }
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = options_.timeout;
    attr.retry_cnt = options_.retries;
    attr.rnr_retry = options_.rnr_retries;
    attr.sq_psn = psn_;
    attr.max_rd_atomic = std::min(nic_.reads_out, peer.reads_in);
    mask =
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    const int error = verbs().modify_qp(qp, &attr, mask);
    return error == 0 ? Status() : call_failed(nic_, "bringing a queue pair to RTS", error);
  }

  void tell(wire::QueuePairEndpoint* endpoint) const override { endpoint->psn = psn_; }

  /// A write of no bytes is acknowledged as any other.
  void fill_proof(ibv_send_wr* request, ibv_sge*) const override { request->opcode = IBV_WR_RDMA_WRITE; }

  int post(ibv_qp* qp, ibv_send_wr* first) override {
    ibv_send_wr* bad = nullptr;
    return verbs().post_send(qp, first, &bad);
  }

 private:
  Verbs& verbs() const { return nic_.domain->verbs(); }

  ibv_qp_attr to_rtr(const Gid& own, const wire::QueuePairEndpoint& peer) const {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = static_cast<ibv_mtu>(peer.mtu);
    attr.dest_qp_num = peer.number;
    attr.rq_psn = peer.psn;
    attr.max_dest_rd_atomic = std::min(nic_.reads_in, peer.reads_out);
    attr.min_rnr_timer = options_.min_rnr_timer;
    attr.ah_attr.port_num = nic_.port.number;
    attr.ah_attr.sl = options_.service_level;
    GidBytes gid;
    std::memcpy(gid.data(), peer.gid.data(), gid.size());
    if (needs_global_route(nic_.port, own, gid, peer.lid)) {
      attr.ah_attr.is_global = 1;
      std::memcpy(attr.ah_attr.grh.dgid.raw, gid.data(), gid.size());
      attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(own.index);
      attr.ah_attr.grh.hop_limit = options_.hop_limit;
      attr.ah_attr.grh.traffic_class = options_.traffic_class;
      attr.ah_attr.grh.flow_label = flow_label_;
    }
    if (!nic_.is_ethernet()) attr.ah_attr.dlid = peer.lid;
    return attr;
  }

  const Nic& nic_;
  const QueuePairOptions& options_;
  std::uint32_t psn_ = 0;
  std::uint32_t flow_label_ = 0;
};

}  // namespace

Status call_failed(const Nic& nic, std::string_view doing, int error) {
  return base::errno_status(Code::kFailed, base::format("{} on {}", doing, nic.describe()), error)
      .with_scope(Scope::kPath)
      .with_device(nic.device.name);
}

std::unique_ptr<QueuePairObject> make_rc_object(const Nic& nic, const QueuePairOptions& options) {
  return std::make_unique<RcObject>(nic, options);
}

std::unique_ptr<QueuePairObject> QueuePairObject::of(const Nic& nic, const QueuePairOptions& options) {
  return nic.is_srd() ? make_srd_object(nic, options) : make_rc_object(nic, options);
}

}  // namespace hawser::backend::verbs
