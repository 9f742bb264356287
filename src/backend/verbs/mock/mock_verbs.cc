#include "backend/verbs/mock/mock_verbs.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "backend/verbs/mock/mock_builder.h"
#include "backend/verbs/mock/mock_objects.h"
#include "backend/verbs/mock/mock_qp_states.h"

namespace hawser::backend::verbs {

namespace {

void drain(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd, &count, sizeof(count));
}

}  // namespace

ibv_device** MockVerbs::get_device_list(int* count) {
  if (fabric_.fails("get_device_list")) return nullptr;
  auto** list = new ibv_device*[fabric_.devices_.size() + 1];
  *count = static_cast<int>(fabric_.devices_.size());
  for (std::size_t i = 0; i < fabric_.devices_.size(); ++i) list[i] = &fabric_.devices_[i]->device;
  list[fabric_.devices_.size()] = nullptr;
  return list;
}

ibv_context* MockVerbs::open_device(ibv_device* device) {
  if (fabric_.fails("open_device")) return nullptr;
  if (fabric_.device(device->name).gone) {
    errno = EIO;
    return nullptr;
  }
  auto* context = new MockContext{};
  context->device = device;
  context->name = device->name;
  context->async_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
  context->num_comp_vectors = 1;
  fabric_.contexts_.emplace(context->name, context);
  ++fabric_.counts.contexts;
  return context;
}

int MockVerbs::close_device(ibv_context* context) {
  if (const int error = refused("close_device"); error != 0) return error;
  fabric_.purge(context);
  std::erase_if(fabric_.contexts_, [context](const auto& each) { return each.second == context; });
  fabric_.events_.erase(context);
  fabric_.removed_.erase(context);
  ::close(context->async_fd);
  delete static_cast<MockContext*>(context);
  --fabric_.counts.contexts;
  return 0;
}

int MockVerbs::query_device(ibv_context* context, ibv_device_attr* attr) {
  if (const int error = refused("query_device"); error != 0) return error;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(context)->name);
  *attr = {};
  attr->max_qp = 1 << 16;
  attr->max_qp_wr = device.max_qp_wr;
  attr->max_sge = device.max_sge;
  attr->max_sge_rd = device.max_sge_rd;
  attr->max_cq = 1 << 16;
  attr->max_cqe = device.max_cqe;
  attr->max_mr = 1 << 20;
  attr->max_mr_size = UINT64_MAX;
  attr->max_qp_rd_atom = device.max_qp_rd_atom;
  attr->max_qp_init_rd_atom = device.max_qp_init_rd_atom;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->phys_port_cnt = static_cast<std::uint8_t>(1 + device.more.size());
  return 0;
}

int MockVerbs::query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* attr) {
  if (const int error = refused("query_port"); error != 0) return error;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(context)->name);
  *attr = {};
  if (device.gone || fabric_.is_removed(context)) return EIO;
  if (number == 0 || number > 1 + device.more.size()) return EINVAL;
  const MockPort& port = device.port(number);
  attr->state = port.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = device.mtu;
  attr->gid_tbl_len = 16;
  attr->max_msg_sz = device.max_msg_sz;
  attr->lid = port.lid;
  if (device.efa) return 0;  // Of no known layer, and what it tells of messages is of datagrams.
  attr->link_layer = device.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int MockVerbs::query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  if (const int error = refused("query_gid"); error != 0) return error;
  *gid = {};
  for (const Gid& each : fabric_.device(static_cast<MockContext*>(context)->name).gids_of(port)) {
    if (static_cast<int>(each.index) == index) std::ranges::copy(each.bytes, gid->raw);
  }
  return 0;
}

std::ptrdiff_t MockVerbs::query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t count) {
  if (fabric_.fails("query_gid_table")) return -errno;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(context)->name);
  if (device.gone || fabric_.is_removed(context)) return -EIO;
  std::size_t filled = 0;
  for (std::uint8_t port = 1; port <= 1 + device.more.size(); ++port) {
    for (const Gid& gid : device.gids_of(port)) {
      if (filled == count) return -EINVAL;
      ibv_gid_entry& entry = entries[filled++];
      entry = {};
      std::ranges::copy(gid.bytes, entry.gid.raw);
      entry.gid_index = gid.index;
      entry.port_num = port;
      entry.gid_type = gid.type == GidType::kRoceV2   ? IBV_GID_TYPE_ROCE_V2
                       : gid.type == GidType::kRoceV1 ? IBV_GID_TYPE_ROCE_V1
                                                      : IBV_GID_TYPE_IB;
    }
  }
  return static_cast<std::ptrdiff_t>(filled);
}

int MockVerbs::get_async_event(ibv_context* context, ibv_async_event* event) {
  if (const int error = refused("get_async_event"); error != 0) return error;
  auto& events = fabric_.events_[context];
  if (events.empty()) return fabric_.is_removed(context) ? EIO : EAGAIN;
  drain(context->async_fd);
  *event = events.front();
  events.pop_front();
  return 0;
}

ibv_pd* MockVerbs::alloc_pd(ibv_context* context) {
  if (fails("alloc_pd", context)) return nullptr;
  ++fabric_.counts.pds;
  auto* pd = new ibv_pd{.context = context, .handle = 0};
  fabric_.pds_.insert(pd);
  return pd;
}

int MockVerbs::dealloc_pd(ibv_pd* pd) {
  if (const int error = refused("dealloc_pd"); error != 0) return error;
  if (fabric_.is_removed(pd->context)) return EIO;
  fabric_.pds_.erase(pd);
  delete pd;
  --fabric_.counts.pds;
  return 0;
}

ibv_mr* MockVerbs::reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) {
  if (fails("reg_mr", pd->context)) return nullptr;
  if (!fabric_.peer_memory && fabric_.is_gpu_memory(reinterpret_cast<std::uintptr_t>(address))) {
    errno = EFAULT;
    return nullptr;
  }
  return fabric_.make_mr(pd, address, size, access);
}

ibv_mr* MockVerbs::reg_dmabuf_mr(ibv_pd* pd, std::uint64_t, std::size_t size, std::uint64_t iova, int fd, int access) {
  if (fabric_.fails("reg_dmabuf_mr")) return nullptr;
  errno = fabric_.dmabufs ? EBADF : EOPNOTSUPP;
  if (!fabric_.dmabufs || ::fcntl(fd, F_GETFD) < 0) return nullptr;
  ++fabric_.dmabufs_registered;
  return fabric_.make_mr(pd, reinterpret_cast<void*>(iova), size, access);
}

int MockVerbs::dereg_mr(ibv_mr* mr) {
  if (const int error = refused("dereg_mr"); error != 0) return error;
  if (fabric_.is_removed(mr->context)) return EIO;
  fabric_.end_mr(mr);
  return 0;
}

ibv_comp_channel* MockVerbs::create_comp_channel(ibv_context* context) {
  if (fails("create_comp_channel", context)) return nullptr;
  auto* channel = new MockChannel{};
  channel->context = context;
  channel->fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
  ++fabric_.counts.channels;
  return channel;
}

int MockVerbs::destroy_comp_channel(ibv_comp_channel* channel) {
  if (const int error = refused("destroy_comp_channel"); error != 0) return error;
  const bool used = std::ranges::any_of(fabric_.cqs_, [channel](const MockCq* cq) { return cq->channel == channel; });
  if (used) return EBUSY;
  ::close(channel->fd);
  delete static_cast<MockChannel*>(channel);
  --fabric_.counts.channels;
  return 0;
}

ibv_cq* MockVerbs::create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int) {
  if (fails("create_cq", context)) return nullptr;
  auto* cq = new MockCq{};
  cq->context = context;
  cq->cqe = entries;
  cq->cq_context = owner;
  cq->channel = channel;
  cq->fabric = &fabric_;
  fabric_.cqs_.insert(cq);
  ++fabric_.counts.cqs;
  return cq;
}

int MockVerbs::destroy_cq(ibv_cq* cq) {
  if (const int error = refused("destroy_cq"); error != 0) return error;
  if (fabric_.is_removed(cq->context)) return EIO;
  const bool used = std::ranges::any_of(
      fabric_.qps_, [cq](const auto& each) { return each.second->send_cq == cq || each.second->recv_cq == cq; });
  if (used) return EBUSY;
  if (cq->channel != nullptr) std::erase(static_cast<MockChannel*>(cq->channel)->events, cq);
  fabric_.cqs_.erase(&cq_of(cq));
  delete &cq_of(cq);
  --fabric_.counts.cqs;
  return 0;
}

int MockVerbs::req_notify_cq(ibv_cq* cq, int) {
  if (const int error = refused("req_notify_cq"); error != 0) return error;
  if (fabric_.is_removed(cq->context)) return EIO;
  cq_of(cq).armed = true;
  return 0;
}

int MockVerbs::get_cq_event(ibv_comp_channel* channel, ibv_cq** cq) {
  if (const int error = refused("get_cq_event"); error != 0) return error;
  auto& events = static_cast<MockChannel*>(channel)->events;
  if (events.empty()) return EAGAIN;
  drain(channel->fd);
  *cq = events.front();
  events.pop_front();
  return 0;
}

int MockVerbs::poll_cq(ibv_cq* cq, int count, ibv_wc* out) {
  if (cq_of(cq).overrun || fabric_.fails("poll_cq")) return -1;
  auto& entries = cq_of(cq).entries;
  int filled = 0;
  while (filled < count && !entries.empty()) {
    out[filled++] = entries.front();
    entries.pop_front();
  }
  return filled;
}

ibv_qp* MockVerbs::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (fails("create_qp", pd->context)) return nullptr;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(pd->context)->name);
  if (device.efa || device.gone) {
    errno = device.gone ? EIO : EOPNOTSUPP;
    return nullptr;
  }
  const bool fits = static_cast<int>(attr->cap.max_send_wr) <= device.max_qp_wr &&
                    static_cast<int>(attr->cap.max_recv_wr) <= device.max_qp_wr &&
                    static_cast<int>(attr->cap.max_send_sge) <= device.max_sge;
  if (!fits) {
    errno = EINVAL;
    return nullptr;
  }
  return fabric_.make_qp(pd, *attr, device);
}

int MockVerbs::modify_qp(ibv_qp* which, ibv_qp_attr* attr, int mask) {
  if (const int error = refused("modify_qp"); error != 0) return error;
  MockQp& qp = qp_of(which);
  if (fabric_.device(qp.device).gone || fabric_.is_removed(qp.context)) return EIO;
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  const ibv_qp_state to = attr->qp_state;
  if (fabric_.fails(to == IBV_QPS_INIT  ? "modify_qp.init"
                    : to == IBV_QPS_RTR ? "modify_qp.rtr"
                    : to == IBV_QPS_RTS ? "modify_qp.rts"
                                        : "modify_qp.end")) {
    return errno;
  }
  if (const int error = move_on(qp, fabric_.device(qp.device), *attr, mask); error != 0) return error;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) fabric_.flush(qp);
  if (to == IBV_QPS_RESET) qp.outstanding = 0;
  return 0;
}

int MockVerbs::query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  if (const int error = refused("query_qp"); error != 0) return error;
  *attr = qp_of(qp).attr;
  return 0;
}

int MockVerbs::raw_queue(ibv_qp* which, RawQueue* out) {
  if (!fabric_.tells_queues) return EOPNOTSUPP;
  MockQp& qp = qp_of(which);
  *out = {.entries = &qp.receives,
          .count = qp.cap.max_send_wr,
          .stride = 64,
          .doorbell_record = &qp.outstanding,
          .doorbell = &qp.cap};
  return 0;
}

int MockVerbs::destroy_qp(ibv_qp* which) {
  if (const int error = refused("destroy_qp"); error != 0) return error;
  MockQp& qp = qp_of(which);
  if (fabric_.is_removed(qp.context)) return EIO;
  qp.attr.qp_state = IBV_QPS_RESET;
  fabric_.flush(qp);
  fabric_.qps_.erase(qp.qp_num);
  delete &qp;
  --fabric_.counts.qps;
  return 0;
}

int MockVerbs::post_send(ibv_qp* which, ibv_send_wr* first, ibv_send_wr** bad) {
  MockQp& qp = qp_of(which);
  ++fabric_.posts;
  for (ibv_send_wr* request = first; request != nullptr; request = request->next) {
    *bad = request;
    if (fabric_.fails("post_send")) return errno;
    if (fabric_.device(qp.device).gone || fabric_.is_removed(qp.context)) return EIO;
    if (qp.attr.qp_state != IBV_QPS_RTS && qp.attr.qp_state != IBV_QPS_ERR) return EINVAL;
    if (qp.outstanding >= static_cast<int>(qp.cap.max_send_wr)) return ENOMEM;
    const bool is_read = request->opcode == IBV_WR_RDMA_READ;
    const int sges = static_cast<int>(qp.cap.max_send_sge);
    if (request->num_sge > (is_read ? std::min(sges, fabric_.device(qp.device).max_sge_rd) : sges)) return EINVAL;
    fabric_.run(qp, *request);
  }
  *bad = nullptr;
  return 0;
}

int MockVerbs::post_recv(ibv_qp* which, ibv_recv_wr* first, ibv_recv_wr** bad) {
  MockQp& qp = qp_of(which);
  for (ibv_recv_wr* request = first; request != nullptr; request = request->next) {
    *bad = request;
    if (fabric_.fails("post_recv")) return errno;
    if (qp.receives.size() >= qp.cap.max_recv_wr) return ENOMEM;
    qp.receives.push_back({request->wr_id, {request->sg_list, request->sg_list + request->num_sge}});
  }
  *bad = nullptr;
  return 0;
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
  set_calls(*qp, fabric_);
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

}  // namespace hawser::backend::verbs
