#include "backend/verbs/mock_fabric.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/verbs/mock_objects.h"

namespace hawser::backend::verbs {

namespace {

void bump(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
}
void drain(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd, &count, sizeof(count));
}

ibv_wc_opcode wc_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return IBV_WC_SEND;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_RDMA_WRITE;
  }
}

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

}  // namespace

MockFabric::MockFabric(std::vector<std::string> devices) {
  std::uint8_t byte = 0;
  for (const std::string& name : devices) {
    auto made = std::make_unique<MockDevice>();
    made->name = name;
    made->last_byte = ++byte;
    std::snprintf(made->device.name, sizeof(made->device.name), "%s", name.c_str());
    devices_.push_back(std::move(made));
  }
}
MockFabric::~MockFabric() = default;

MockDevice& MockFabric::device(const std::string& name) {
  return **std::ranges::find(devices_, name, [](const auto& device) -> const std::string& { return device->name; });
}

bool MockFabric::fails(const std::string& call) {
  const auto found = failures_.find(call);
  if (found == failures_.end()) return false;
  errno = found->second.error;
  if (found->second.nth < 0) return true;
  if (--found->second.nth > 0) return false;
  failures_.erase(found);
  return true;
}

std::vector<std::uint32_t> MockFabric::qp_numbers() const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, qp] : qps_) numbers.push_back(number);
  return numbers;
}

std::string MockFabric::device_of(std::uint32_t number) const { return qps_.at(number)->device; }

int MockFabric::under_way(std::uint32_t number) const { return qps_.at(number)->outstanding; }

ibv_qp* MockFabric::qp_of_number(std::uint32_t number) const { return qps_.at(number); }

ibv_qp_attr MockFabric::attributes(std::uint32_t number) const { return qps_.at(number)->attr; }

ibv_qp_init_attr MockFabric::made_with(std::uint32_t number) const {
  const MockQp& qp = *qps_.at(number);
  ibv_qp_init_attr attr{};
  attr.cap = qp.cap;
  attr.qp_type = qp.qp_type;
  return attr;
}

bool MockFabric::linked(const MockQp& qp) const {
  const auto peer = qps_.find(qp.peer);
  if (peer == qps_.end() || down_.contains(qp.device) || down_.contains(peer->second->device)) return false;
  const ibv_qp_state state = peer->second->attr.qp_state;
  const bool answers = state == IBV_QPS_RTR || state == IBV_QPS_RTS;
  // Packets of an earlier connection carry numbers that the queue pair does not expect.
  return answers && peer->second->peer == qp.qp_num && peer->second->attr.rq_psn == qp.attr.sq_psn;
}

/// Which of those held is next: datagrams have no order.
std::size_t MockFabric::next_held() {
  if (held_.front().qkey == 0) return 0;
  const auto at = static_cast<std::size_t>(order.below(held_.size()));
  return held_[at].qkey == 0 ? 0 : at;
}

void MockFabric::run(MockQp& qp, const ibv_send_wr& request, const MockDatagram& datagram) {
  ++requests;
  if (request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) ++immediates;
  Held held;
  held.qp = qp.qp_num;
  held.wr_id = request.wr_id;
  held.opcode = request.opcode;
  held.flags = request.send_flags;
  held.imm = request.imm_data;
  held.list.assign(request.sg_list, request.sg_list + request.num_sge);
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    for (const ibv_sge& part : held.list) {
      gpu_bytes_inlined += is_gpu_memory(part.addr) ? part.length : 0;  // The CPU reads them: a real one would fault.
      const auto* from = reinterpret_cast<const std::byte*>(part.addr);
      held.inlined.insert(held.inlined.end(), from, from + part.length);
    }
  }
  held.remote = request.wr.rdma.remote_addr;
  held.rkey = request.wr.rdma.rkey;
  if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    held.remote = request.wr.atomic.remote_addr;
    held.rkey = request.wr.atomic.rkey;
    held.compare = request.wr.atomic.compare_add;
    held.swap = request.wr.atomic.swap;
  }
  if (datagram.address != nullptr) {
    qp.address_used = static_cast<MockAh*>(datagram.address)->attr;
    held.to_gid = qp.address_used.grh.dgid.raw[15];
    held.to = datagram.number;
    held.qkey = datagram.qkey;
  }
  ++qp.outstanding;
  held_.push_back(std::move(held));
  if (!hold && !qp.is_srd) deliver();
}

std::size_t MockFabric::deliver(std::size_t count) {
  std::size_t delivered = 0;
  while (!held_.empty() && delivered < count) {
    const auto next = held_.begin() + static_cast<std::ptrdiff_t>(next_held());
    Held held = std::move(*next);
    held_.erase(next);
    ++delivered;
    deliver(std::move(held));
  }
  return delivered;
}

bool MockFabric::deliver_one_of(std::uint32_t number) {
  const auto found = std::ranges::find(held_, number, &Held::qp);
  if (found == held_.end()) return false;
  Held held = std::move(*found);
  held_.erase(found);
  deliver(std::move(held));
  return true;
}

void MockFabric::deliver(Held held) {
  const auto found = qps_.find(held.qp);
  if (found == qps_.end()) return;
  MockQp& qp = *found->second;
  if (qp.attr.qp_state == IBV_QPS_RESET) return;
  if (qp.attr.qp_state == IBV_QPS_ERR) {
    finish(qp, held, IBV_WC_WR_FLUSH_ERR);
  } else if (const Way way = way_of(qp, held); way != Way::kOpen) {
    dropped += way == Way::kDropped;
    (way == Way::kDropped ? gone_ : lost_).push_back(std::move(held));
  } else {
    const ibv_wc_status status = perform(qp, held);
    if (mute && status == IBV_WC_SUCCESS) {
      lost_.push_back(std::move(held));
    } else {
      finish(qp, held, status);
    }
  }
}

std::size_t MockFabric::expire() {
  std::size_t ended = 0;
  while (!lost_.empty()) {
    Held held = std::move(lost_.front());
    lost_.pop_front();
    const auto found = qps_.find(held.qp);
    if (found == qps_.end() || found->second->attr.qp_state == IBV_QPS_RESET) continue;
    const bool error = found->second->attr.qp_state == IBV_QPS_ERR;
    finish(*found->second, held, error ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
    ++ended;
  }
  return ended;
}

void MockFabric::set_link(const std::string& name, bool up) {
  if (up) {
    down_.erase(name);
  } else {
    down_.insert(name);
  }
  device(name).active = up;
}

void MockFabric::flush(MockQp& qp) {
  for (std::deque<Held>* queue : {&held_, &lost_, &gone_}) {
    std::deque<Held> others;
    for (Held& held : *queue) {
      if (held.qp != qp.qp_num) {
        others.push_back(std::move(held));
      } else if (qp.attr.qp_state == IBV_QPS_ERR) {
        finish(qp, held, IBV_WC_WR_FLUSH_ERR);
      }
    }
    *queue = std::move(others);
  }
  while (!qp.receives.empty()) {
    ibv_wc wc{};
    wc.wr_id = qp.receives.front().wr_id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.opcode = IBV_WC_RECV;
    wc.qp_num = qp.qp_num;
    qp.receives.pop_front();
    if (qp.attr.qp_state == IBV_QPS_ERR) complete(cq_of(qp.recv_cq), wc);
  }
}

void MockFabric::break_qp(std::uint32_t number) {
  MockQp& qp = *qps_.at(number);
  qp.attr.qp_state = qp.state = IBV_QPS_ERR;
  flush(qp);
}

void MockFabric::overrun_all_cqs() {
  for (MockCq* cq : cqs_) cq->overrun = true;
}

void MockFabric::raise(const std::string& device, ibv_event_type type) {
  const auto [first, last] = contexts_.equal_range(device);
  for (auto each = first; each != last; ++each) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = 1;
    events_[each->second].push_back(event);
    bump(each->second->async_fd);
  }
}

ibv_wc_status MockFabric::perform(MockQp& qp, Held& held) {
  MockQp& peer = *qps_.at(held.qkey == 0 ? qp.peer : held.to);
  if (const ibv_wc_status fault = std::exchange(next_status_, IBV_WC_SUCCESS); fault != IBV_WC_SUCCESS) return fault;
  const ibv_wc_status status = move(qp, held, peer);
  const bool breaks = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR;
  if (breaks && !peer.is_srd) {
    peer.attr.qp_state = peer.state = IBV_QPS_ERR;  // The responder breaks as well.
    flush(peer);
  }
  return status;
}

std::optional<MockFabric::Runs> MockFabric::resolve(ibv_pd* pd, std::uint32_t key, std::uint64_t at, std::uint64_t size,
                                                    int right) {
  const auto access = mr_access_.find(key);
  if (access == mr_access_.end() || (access->second & right) != right) return std::nullopt;
  if (const auto found = mrs_.find(key); found != mrs_.end()) {
    const ibv_mr& mr = *found->second;
    const auto base = reinterpret_cast<std::uintptr_t>(mr.addr);
    const bool inside = mr.pd == pd && at >= base && size <= mr.length && at - base <= mr.length - size;
    if (!inside) return std::nullopt;
    return Runs{{reinterpret_cast<std::byte*>(at), size}};
  }
  Runs runs;
  for (const ibv_sge& piece : lists_[key]) {
    const std::uint64_t part = at < piece.length ? std::min<std::uint64_t>(size, piece.length - at) : 0;
    if (part > 0) {
      const auto inner = resolve(pd, piece.lkey, piece.addr + at, part, right);
      if (!inner) return std::nullopt;
      runs.insert(runs.end(), inner->begin(), inner->end());
    }
    size -= part;
    at = part > 0 ? 0 : at - piece.length;
  }
  if (size > 0) return std::nullopt;
  return runs;
}

ibv_wc_status MockFabric::move(MockQp& qp, Held& held, MockQp& peer) {
  const bool is_inline = (held.flags & IBV_SEND_INLINE) != 0;
  const bool is_atomic = held.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || held.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const bool writes_here = held.opcode == IBV_WR_RDMA_READ || is_atomic;
  Runs here;
  for (const ibv_sge& part : held.list) {
    if (is_inline || part.length == 0) continue;
    const auto runs = resolve(qp.pd, part.lkey, part.addr, part.length, writes_here ? IBV_ACCESS_LOCAL_WRITE : 0);
    if (!runs) return IBV_WC_LOC_PROT_ERR;
    here.insert(here.end(), runs->begin(), runs->end());
  }
  std::vector<std::byte> bytes = held.inlined;
  if (!writes_here) {
    for (const auto run : here) bytes.insert(bytes.end(), run.begin(), run.end());
  }
  if (held.opcode == IBV_WR_SEND || held.opcode == IBV_WR_SEND_WITH_IMM) return receive(peer, held, bytes);

  const std::uint64_t size = total_of(held.list);
  Runs there;
  if (size > 0) {
    const int right = is_atomic     ? IBV_ACCESS_REMOTE_ATOMIC
                      : writes_here ? IBV_ACCESS_REMOTE_READ
                                    : IBV_ACCESS_REMOTE_WRITE;
    const auto runs = resolve(peer.pd, held.rkey, held.remote, size, right);
    if (!runs || (peer.attr.qp_access_flags & static_cast<unsigned>(right)) == 0) return IBV_WC_REM_ACCESS_ERR;
    there = *runs;
  }
  if (is_atomic) return atomic(held, here, there);
  if (writes_here) {
    for (const auto run : there) bytes.insert(bytes.end(), run.begin(), run.end());
  }
  std::span<const std::byte> rest = bytes;
  for (const auto run : writes_here ? here : there) {
    std::ranges::copy(rest.first(run.size()), run.begin());
    rest = rest.subspan(run.size());
  }
  return held.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? receive(peer, held, {}) : IBV_WC_SUCCESS;
}

ibv_wc_status MockFabric::atomic(const Held& held, const Runs& here, const Runs& there) {
  if (held.remote % 8 != 0 || total_of(held.list) != 8) return IBV_WC_REM_INV_REQ_ERR;
  std::uint64_t value = 0;
  std::memcpy(&value, there.front().data(), sizeof(value));
  std::memcpy(here.front().data(), &value, sizeof(value));
  const bool adds = held.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const std::uint64_t next = adds ? value + held.compare : value == held.compare ? held.swap : value;
  std::memcpy(there.front().data(), &next, sizeof(next));
  return IBV_WC_SUCCESS;
}

std::uint32_t MockFabric::make_list_key() {
  if (fails("create_mkey")) return 0;
  mr_access_[++next_key_] = 0;
  ++counts.mrs;
  return next_key_;
}

void MockFabric::end_list_key(std::uint32_t key) {
  mr_access_.erase(key);
  lists_.erase(key);
  --counts.mrs;
}

int MockFabric::bind_list(ibv_qp* qp, std::uint32_t key, int access, std::span<const ibv_sge> list,
                          std::uint64_t wr_id) {
  if (fails("bind_list")) return errno;
  if (qp_of(qp).attr.qp_state != IBV_QPS_RTS) return EINVAL;
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.qp_num = qp->qp_num;
  for (const ibv_sge& piece : list) {
    // The device wants each piece whole, with the rights that the list gives.
    if (!resolve(qp->pd, piece.lkey, piece.addr, piece.length, access)) wc.status = IBV_WC_MW_BIND_ERR;
  }
  if (wc.status == IBV_WC_SUCCESS) {
    lists_[key].assign(list.begin(), list.end());
    mr_access_[key] = access;
  }
  complete(cq_of(qp->send_cq), wc);
  return 0;
}

ibv_wc_status MockFabric::receive(MockQp& peer, const Held& held, std::span<const std::byte> bytes) {
  if (peer.receives.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
  const MockQp::Receive receive = std::move(peer.receives.front());
  peer.receives.pop_front();
  ibv_wc wc{};
  wc.wr_id = receive.wr_id;
  wc.qp_num = peer.qp_num;
  wc.byte_len = static_cast<std::uint32_t>(bytes.size());
  wc.opcode = held.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (held.opcode != IBV_WR_SEND) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = held.imm;
  }
  if (total_of(receive.list) < bytes.size()) {
    wc.status = IBV_WC_LOC_LEN_ERR;
    complete(cq_of(peer.recv_cq), wc);
    return IBV_WC_REM_INV_REQ_ERR;
  }
  for (const ibv_sge& part : receive.list) {
    const std::size_t size = std::min<std::size_t>(part.length, bytes.size());
    if (size > 0) std::memcpy(reinterpret_cast<std::byte*>(part.addr), bytes.data(), size);
    bytes = bytes.subspan(size);
  }
  complete(cq_of(peer.recv_cq), wc);
  return IBV_WC_SUCCESS;
}

void MockFabric::finish(MockQp& qp, const Held& held, ibv_wc_status status) {
  --qp.outstanding;
  if (status != IBV_WC_SUCCESS || (held.flags & IBV_SEND_SIGNALED) != 0) {
    ibv_wc wc{};
    wc.wr_id = held.wr_id;
    wc.status = status;
    wc.opcode = wc_opcode(held.opcode);
    wc.qp_num = qp.qp_num;
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x88;
    complete(cq_of(qp.send_cq), wc);
  }
  if (status == IBV_WC_SUCCESS || qp.attr.qp_state == IBV_QPS_ERR || qp.is_srd) return;
  qp.attr.qp_state = qp.state = IBV_QPS_ERR;
  flush(qp);
}

void MockFabric::complete(MockCq& cq, const ibv_wc& wc) {
  if (cq.overrun || static_cast<int>(cq.entries.size()) >= cq.cqe) {
    cq.overrun = true;
    return;
  }
  cq.entries.push_back(wc);
  if (!cq.armed || cq.channel == nullptr) return;
  cq.armed = false;
  static_cast<MockChannel*>(cq.channel)->events.push_back(&cq);
  bump(cq.channel->fd);
}

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
  std::erase_if(fabric_.contexts_, [context](const auto& each) { return each.second == context; });
  fabric_.events_.erase(context);
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
  attr->max_cq = 1 << 16;
  attr->max_cqe = device.max_cqe;
  attr->max_mr = 1 << 20;
  attr->max_mr_size = UINT64_MAX;
  attr->max_qp_rd_atom = device.max_qp_rd_atom;
  attr->max_qp_init_rd_atom = device.max_qp_init_rd_atom;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->phys_port_cnt = 1;
  return 0;
}

int MockVerbs::query_port(ibv_context* context, std::uint8_t, ibv_port_attr* attr) {
  if (const int error = refused("query_port"); error != 0) return error;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(context)->name);
  *attr = {};
  attr->state = device.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = device.mtu;
  attr->gid_tbl_len = 2;
  attr->max_msg_sz = device.max_msg_sz;
  attr->lid = device.lid;
  if (device.efa) return 0;  // Of no known layer, and what it tells of messages is of datagrams.
  attr->link_layer = device.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int MockVerbs::query_gid(ibv_context* context, std::uint8_t, int index, ibv_gid* gid) {
  if (const int error = refused("query_gid"); error != 0) return error;
  *gid = {};
  const std::uint8_t byte = fabric_.device(static_cast<MockContext*>(context)->name).last_byte;
  if (index == 0) {
    gid->raw[0] = 0xfe;
    gid->raw[1] = 0x80;
  } else {
    gid->raw[10] = gid->raw[11] = 0xff;
    gid->raw[12] = 10;
  }
  gid->raw[15] = byte;
  return 0;
}

int MockVerbs::get_async_event(ibv_context* context, ibv_async_event* event) {
  if (const int error = refused("get_async_event"); error != 0) return error;
  auto& events = fabric_.events_[context];
  if (events.empty()) return EAGAIN;
  drain(context->async_fd);
  *event = events.front();
  events.pop_front();
  return 0;
}

ibv_pd* MockVerbs::alloc_pd(ibv_context* context) {
  if (fabric_.fails("alloc_pd")) return nullptr;
  ++fabric_.counts.pds;
  return new ibv_pd{.context = context, .handle = 0};
}

int MockVerbs::dealloc_pd(ibv_pd* pd) {
  if (const int error = refused("dealloc_pd"); error != 0) return error;
  delete pd;
  --fabric_.counts.pds;
  return 0;
}

ibv_mr* MockFabric::make_mr(ibv_pd* pd, void* address, std::size_t size, int access) {
  auto* mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = size;
  mr->lkey = mr->rkey = ++next_key_;
  mrs_[mr->rkey] = mr;
  mr_access_[mr->rkey] = access;
  ++counts.mrs;
  return mr;
}

ibv_mr* MockVerbs::reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) {
  if (fabric_.fails("reg_mr")) return nullptr;
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
  fabric_.mrs_.erase(mr->rkey);
  fabric_.mr_access_.erase(mr->rkey);
  delete mr;
  --fabric_.counts.mrs;
  return 0;
}

ibv_comp_channel* MockVerbs::create_comp_channel(ibv_context* context) {
  if (fabric_.fails("create_comp_channel")) return nullptr;
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
  if (fabric_.fails("create_cq")) return nullptr;
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
  if (fabric_.fails("create_qp")) return nullptr;
  const MockDevice& device = fabric_.device(static_cast<MockContext*>(pd->context)->name);
  if (device.efa) {
    errno = EOPNOTSUPP;
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

MockQp* MockFabric::make_qp(ibv_pd* pd, const ibv_qp_init_attr& attr, const MockDevice& device) {
  auto* qp = new MockQp{};
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = attr.send_cq;
  qp->recv_cq = attr.recv_cq;
  qp->qp_num = ++next_number_;
  qp->qp_type = attr.qp_type;
  qp->state = qp->attr.qp_state = IBV_QPS_RESET;
  qp->device = device.name;
  qp->cap = attr.cap;
  qps_[qp->qp_num] = qp;
  ++counts.qps;
  return qp;
}

int MockVerbs::modify_qp(ibv_qp* which, ibv_qp_attr* attr, int mask) {
  if (const int error = refused("modify_qp"); error != 0) return error;
  MockQp& qp = qp_of(which);
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  const ibv_qp_state to = attr->qp_state;
  if (fabric_.fails(to == IBV_QPS_INIT  ? "modify_qp.init"
                    : to == IBV_QPS_RTR ? "modify_qp.rtr"
                    : to == IBV_QPS_RTS ? "modify_qp.rts"
                                        : "modify_qp.end")) {
    return errno;
  }
  if (!is_legal(qp.attr.qp_state, to)) return EINVAL;
  if (qp.is_srd ? mask != datagrams_need(to) : (mask & needed_for(to)) != needed_for(to)) return EINVAL;
  if (qp.is_srd && to == IBV_QPS_INIT) {
    qp.attr.qkey = attr->qkey;
    attr->qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;  // As its regions say.
  }
  if (to == IBV_QPS_INIT) {
    qp.attr.qp_access_flags = attr->qp_access_flags;
    qp.attr.pkey_index = attr->pkey_index;
  }
  if (to == IBV_QPS_RTR && !qp.is_srd) {
    const MockDevice& device = fabric_.device(qp.device);
    if (attr->max_dest_rd_atomic > device.max_qp_rd_atom || attr->path_mtu > device.mtu) return EINVAL;
    qp.peer = attr->dest_qp_num;
    qp.attr.rq_psn = attr->rq_psn;
    qp.attr.path_mtu = attr->path_mtu;
    qp.attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
    qp.attr.min_rnr_timer = attr->min_rnr_timer;
    qp.attr.ah_attr = attr->ah_attr;
  }
  if (to == IBV_QPS_RTS) {
    qp.attr.sq_psn = attr->sq_psn;
    qp.attr.timeout = attr->timeout;
    qp.attr.retry_cnt = attr->retry_cnt;
    qp.attr.rnr_retry = attr->rnr_retry;
    qp.attr.max_rd_atomic = attr->max_rd_atomic;
  }
  qp.attr.qp_state = qp.state = to;
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
    if (qp.attr.qp_state != IBV_QPS_RTS && qp.attr.qp_state != IBV_QPS_ERR) return EINVAL;
    if (qp.outstanding >= static_cast<int>(qp.cap.max_send_wr)) return ENOMEM;
    if (request->num_sge > static_cast<int>(qp.cap.max_send_sge)) return EINVAL;
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

}  // namespace hawser::backend::verbs
