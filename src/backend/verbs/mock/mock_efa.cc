// EFA devices of the fabric in memory: queue pairs of datagrams, their extended builder, address handles.

#include <algorithm>
#include <utility>

#include "backend/verbs/mock/mock_objects.h"

namespace hawser::backend::verbs {

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

namespace {

MockBuilder& builder_of(ibv_qp_ex* qp) { return *static_cast<MockBuilder*>(qp); }

void build(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address) {
  MockBuilder::Request made;
  made.request.wr_id = qp->wr_id;
  made.request.send_flags = qp->wr_flags;
  made.request.opcode = opcode;
  made.request.wr.rdma.remote_addr = address;
  made.request.wr.rdma.rkey = rkey;
  builder_of(qp).built.push_back(std::move(made));
}

void set_calls(MockBuilder& builder) {
  builder.wr_start = [](ibv_qp_ex* qp) { builder_of(qp).is_open = true; };
  builder.wr_rdma_write = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t at) {
    build(qp, IBV_WR_RDMA_WRITE, rkey, at);
  };
  builder.wr_rdma_read = [](ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t at) {
    build(qp, IBV_WR_RDMA_READ, rkey, at);
  };
  builder.wr_set_sge = [](ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    builder_of(qp).built.back().list = {{.addr = address, .length = length, .lkey = lkey}};
  };
  builder.wr_set_sge_list = [](ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
    builder_of(qp).built.back().list.assign(list, list + count);
  };
  builder.wr_set_ud_addr = [](ibv_qp_ex* qp, ibv_ah* address, std::uint32_t number, std::uint32_t qkey) {
    builder_of(qp).built.back().datagram = {.address = address, .number = number, .qkey = qkey};
  };
  builder.wr_complete = [](ibv_qp_ex* qp) { return builder_of(qp).fabric->post_datagrams(*builder_of(qp).of); };
  builder.wr_abort = [](ibv_qp_ex* qp) {
    builder_of(qp).built.clear();
    builder_of(qp).is_open = false;
    ++builder_of(qp).fabric->aborts;
  };
}

}  // namespace

ibv_ah_attr MockFabric::address_used(std::uint32_t number) const { return qps_.at(number)->address_used; }

void MockFabric::set_qkey(std::uint32_t number, std::uint32_t qkey) { qps_.at(number)->attr.qkey = qkey; }

MockFabric::Way MockFabric::way_of(const MockQp& qp, const Held& held) const {
  if (held.qkey == 0) return linked(qp) && !is_too_large(qp, held) ? Way::kOpen : Way::kLost;
  const auto peer = qps_.find(held.to);
  if (peer == qps_.end() || is_down(qp) || is_down(*peer->second)) return Way::kLost;
  const MockDevice &here = device(qp.device), &there = device(peer->second->device);
  if (there.last_byte != held.to_gid) return Way::kLost;
  const bool same_host = &here == &there || (!here.host.empty() && here.host == there.host);
  const ibv_qp_state state = peer->second->attr.qp_state;
  const bool answers = state == IBV_QPS_RTR || state == IBV_QPS_RTS;
  return same_host || !answers || peer->second->attr.qkey != held.qkey ? Way::kDropped : Way::kOpen;
}

int MockVerbs::query_efa(ibv_context* context, efadv_device_attr* attr) {
  if (const int error = refused("query_efa"); error != 0) return error;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(context)->name);
  if (!device.efa) return EOPNOTSUPP;
  *attr = {};
  attr->max_sq_wr = device.efa_depth;
  attr->max_rq_wr = device.efa_depth;
  attr->max_sq_sge = static_cast<std::uint16_t>(device.efa_sge);
  attr->max_rq_sge = 1;
  attr->device_caps = device.efa_caps;
  attr->max_rdma_size = (device.efa_caps & EFADV_DEVICE_ATTR_CAPS_RDMA_READ) != 0 ? device.efa_rdma_size : 0;
  return 0;
}

ibv_qp* MockVerbs::create_srd(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if (fabric_.fails("create_srd")) return nullptr;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(context)->name);
  constexpr auto kOps = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
  const bool fits = device.efa && attr->qp_type == IBV_QPT_DRIVER && attr->cap.max_send_wr <= device.efa_depth &&
                    attr->cap.max_recv_wr <= device.efa_depth && attr->cap.max_send_sge <= device.efa_sge &&
                    attr->cap.max_inline_data == 0 && attr->send_ops_flags == kOps &&
                    attr->comp_mask == (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
  if (!fits) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_qp_init_attr plain{};
  plain.send_cq = attr->send_cq;
  plain.recv_cq = attr->recv_cq;
  plain.cap = attr->cap;
  plain.qp_type = attr->qp_type;
  MockQp* qp = fabric_.make_qp(attr->pd, plain, device);
  qp->is_srd = true;
  set_calls(qp->builder);
  qp->builder.of = qp;
  qp->builder.fabric = &fabric_;
  return qp;
}

ibv_qp_ex* MockVerbs::extended(ibv_qp* qp) {
  if (fabric_.fails("extended") || !qp_of(qp).is_srd) return nullptr;
  return &qp_of(qp).builder;
}

ibv_ah* MockVerbs::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (fabric_.fails("create_ah")) return nullptr;
  auto* ah = new MockAh{};
  ah->context = pd->context;
  ah->pd = pd;
  ah->attr = *attr;
  ++fabric_.counts.ahs;
  return ah;
}

int MockVerbs::destroy_ah(ibv_ah* ah) {
  if (const int error = refused("destroy_ah"); error != 0) return error;
  delete static_cast<MockAh*>(ah);
  --fabric_.counts.ahs;
  return 0;
}

/// All of a session, or nothing.
int MockFabric::post_datagrams(MockQp& qp) {
  const auto built = std::exchange(qp.builder.built, {});
  if (!std::exchange(qp.builder.is_open, false)) return EINVAL;
  if (fails("wr_complete")) return errno;
  if (qp.attr.qp_state != IBV_QPS_RTS && qp.attr.qp_state != IBV_QPS_ERR) return EINVAL;
  if (qp.outstanding + static_cast<int>(built.size()) > static_cast<int>(qp.cap.max_send_wr)) return ENOMEM;
  const std::uint32_t most = device(qp.device).efa_rdma_size;
  for (const auto& each : built) {
    const bool fits = each.list.size() <= qp.cap.max_send_sge && !each.list.empty() && total_of(each.list) <= most;
    if (!fits || each.datagram.address == nullptr || each.request.send_flags != IBV_SEND_SIGNALED) return EINVAL;
  }
  ++posts;
  for (const auto& each : built) {
    ibv_send_wr request = each.request;
    std::vector<ibv_sge> list = each.list;
    request.sg_list = list.data();
    request.num_sge = static_cast<int>(list.size());
    run(qp, request, each.datagram);
  }
  if (!hold) deliver();
  return 0;
}

}  // namespace hawser::backend::verbs
