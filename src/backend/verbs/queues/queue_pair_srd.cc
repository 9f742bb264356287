// Scalable reliable datagrams of EFA. A queue pair of them could serve many peers; here it serves one, so that it lives
// and dies as a reliable connection does: its number and its key (qkey) are new in each epoch, and what is still in the
// network for an earlier one finds neither.

#include <cstring>

#include "backend/verbs/queues/queue_pair_object.h"

namespace hawser::backend::verbs {
namespace {

/// The upper bit of a qkey has a meaning of its own in datagrams of InfiniBand; 0 means that there is none.
constexpr std::uint32_t kQkeyMask = 0x7fffffff;

/// One session of the extended builder: what was built is posted by `complete`, or, left without, not at all.
class Session {
 public:
  explicit Session(ibv_qp_ex* qp) : qp_(qp) { ibv_wr_start(qp_); }
  ~Session() {
    if (qp_ != nullptr) ibv_wr_abort(qp_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  int complete() {
    ibv_qp_ex* const qp = qp_;
    qp_ = nullptr;
    return ibv_wr_complete(qp);
  }

 private:
  ibv_qp_ex* qp_;
};

class SrdObject final : public QueuePairObject {
 public:
  SrdObject(const Nic& nic, const QueuePairOptions& options) : nic_(nic), options_(options) {}
  ~SrdObject() override { end_address(); }

  ibv_qp* create(ibv_qp_init_attr* attr) override {
    ibv_qp_init_attr_ex extended{};
    extended.send_cq = attr->send_cq;
    extended.recv_cq = attr->recv_cq;
    extended.cap = attr->cap;
    extended.qp_type = IBV_QPT_DRIVER;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    extended.pd = nic_.domain->pd();
    extended.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
    ibv_qp* const qp = verbs().create_srd(nic_.domain->context(), &extended);
    attr->cap = extended.cap;
    return qp;
  }

  Status init(ibv_qp* qp, base::Rng& rng) override {
    psn_ = static_cast<std::uint32_t>(rng.u64()) & wire::k24BitMax;
    while ((qkey_ = static_cast<std::uint32_t>(rng.u64()) & kQkeyMask) == 0) {
    }
    extended_ = verbs().extended(qp);
    if (extended_ == nullptr) return call_failed(nic_, "extending a queue pair", errno);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.pkey_index = options_.pkey_index;
    attr.port_num = nic_.port.number;
    attr.qkey = qkey_;
    const int error = verbs().modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    return error == 0 ? Status() : call_failed(nic_, "bringing a queue pair to INIT", error);
  }

  Status join(ibv_qp* qp, const Gid& own, const wire::QueuePairEndpoint& peer) override {
    if (peer.qkey == 0) {
      return Status(Code::kUnsupported, "the peer told no key for datagrams: it has a reliable connection")
          .with_scope(Scope::kPath)
          .with_device(nic_.device.name)
          .with_advice("leave queue_pair_type at auto on both sides");
    }
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    if (const int error = verbs().modify_qp(qp, &attr, IBV_QP_STATE); error != 0) {
      return call_failed(nic_, "bringing a queue pair to RTR", error);
    }
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = psn_;
    if (const int error = verbs().modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN); error != 0) {
      return call_failed(nic_, "bringing a queue pair to RTS", error);
    }
    peer_ = peer;
    ibv_ah_attr address{};
    address.port_num = nic_.port.number;
    address.is_global = 1;
    std::memcpy(address.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    address.grh.sgid_index = static_cast<std::uint8_t>(own.index);
    address_ = verbs().create_ah(nic_.domain->pd(), &address);
    return address_ != nullptr ? Status() : call_failed(nic_, "making an address handle", errno);
  }

  void release() override {
    extended_ = nullptr;
    end_address();
  }

  void tell(wire::QueuePairEndpoint* endpoint) const override {
    endpoint->psn = psn_;
    endpoint->qkey = qkey_;
    endpoint->proof_address = nic_.proof->iova();
    endpoint->proof_key = nic_.proof->rkey();
  }

  /// Real bytes between real registrations: whether the device takes a write of no bytes without a key is not known.
  void fill_proof(ibv_send_wr* request, ibv_sge* piece) const override {
    *piece = {.addr = nic_.proof->iova(), .length = sizeof(Nic::proof_bytes), .lkey = nic_.proof->lkey()};
    request->sg_list = piece;
    request->num_sge = 1;
    request->opcode = IBV_WR_RDMA_WRITE;
    request->wr.rdma.remote_addr = peer_.proof_address;
    request->wr.rdma.rkey = peer_.proof_key;
  }

  int post(ibv_qp*, ibv_send_wr* first) override {
    Session session(extended_);
    for (const ibv_send_wr* request = first; request != nullptr; request = request->next) {
      extended_->wr_id = request->wr_id;
      extended_->wr_flags = IBV_SEND_SIGNALED;
      if (request->opcode == IBV_WR_RDMA_WRITE) {
        ibv_wr_rdma_write(extended_, request->wr.rdma.rkey, request->wr.rdma.remote_addr);
      } else if (request->opcode == IBV_WR_RDMA_READ) {
        ibv_wr_rdma_read(extended_, request->wr.rdma.rkey, request->wr.rdma.remote_addr);
      } else {
        return EINVAL;  // SRD has no other; the session is aborted, and with it those before.
      }
      if (request->num_sge > 1) {
        ibv_wr_set_sge_list(extended_, static_cast<std::size_t>(request->num_sge), request->sg_list);
      } else if (request->num_sge == 1) {
        ibv_wr_set_sge(extended_, request->sg_list->lkey, request->sg_list->addr, request->sg_list->length);
      } else {
        ibv_wr_set_sge(extended_, nic_.proof->lkey(), nic_.proof->iova(), 0);
      }
      ibv_wr_set_ud_addr(extended_, address_, peer_.number, peer_.qkey);
    }
    return session.complete();
  }

  bool is_unordered() const override { return true; }

 private:
  Verbs& verbs() const { return nic_.domain->verbs(); }

  void end_address() {
    if (address_ == nullptr) return;
    nic_.domain->end([verbs = &verbs(), address = address_] { return verbs->destroy_ah(address); });
    address_ = nullptr;
  }

  const Nic& nic_;
  const QueuePairOptions& options_;
  std::uint32_t psn_ = 0;
  std::uint32_t qkey_ = 0;
  wire::QueuePairEndpoint peer_;
  ibv_qp_ex* extended_ = nullptr;
  ibv_ah* address_ = nullptr;
};

}  // namespace

std::unique_ptr<QueuePairObject> make_srd_object(const Nic& nic, const QueuePairOptions& options) {
  return std::make_unique<SrdObject>(nic, options);
}

}  // namespace hawser::backend::verbs
