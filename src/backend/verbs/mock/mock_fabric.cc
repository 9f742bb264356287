#include "backend/verbs/mock/mock_fabric.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/verbs/mock/mock_objects.h"

namespace hawser::backend::verbs {

namespace {

void bump(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
}

/// One after the other. The two have the same size, and may be the same memory.
void copy_runs(std::span<const std::span<std::byte>> from, std::span<const std::span<std::byte>> to) {
  std::size_t at = 0, done = 0;  // In `from`: the run, and the bytes of it that are copied.
  for (std::span<std::byte> rest : to) {
    while (!rest.empty()) {
      const std::span<const std::byte> next = from[at].subspan(done);
      const std::size_t size = std::min(next.size(), rest.size());
      if (size > 0) std::memmove(rest.data(), next.data(), size);
      rest = rest.subspan(size);
      done += size;
      if (done == from[at].size()) {
        ++at;
        done = 0;
      }
    }
  }
}

std::vector<std::byte> joined(std::span<const std::span<std::byte>> runs) {
  std::vector<std::byte> bytes;
  for (const std::span<std::byte> run : runs) bytes.insert(bytes.end(), run.begin(), run.end());
  return bytes;
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

const MockDevice& MockFabric::device(const std::string& name) const {
  return **std::ranges::find(devices_, name, [](const auto& each) -> const std::string& { return each->name; });
}

std::vector<Gid> MockDevice::gids_of(std::uint8_t number) const {
  const MockPort& its = port(number);
  if (!its.gids.empty()) return its.gids;
  Gid local, routable;
  local.bytes[0] = 0xfe;
  local.bytes[1] = 0x80;
  local.bytes[14] = number - 1;
  local.bytes[15] = routable.bytes[15] = last_byte;
  local.type = efa ? GidType::kUnknown : ethernet ? GidType::kRoceV1 : GidType::kInfiniBand;
  if (efa || !ethernet) return {local};
  routable.index = 1;
  routable.bytes[10] = routable.bytes[11] = 0xff;
  routable.bytes[12] = 10;
  routable.bytes[14] = number - 1;
  routable.type = GidType::kRoceV2;
  return {local, routable};
}

bool MockDevice::has_gid(std::uint8_t number, std::span<const std::uint8_t, 16> bytes) const {
  return std::ranges::any_of(gids_of(number), [&](const Gid& gid) { return std::ranges::equal(gid.bytes, bytes); });
}

std::string MockFabric::port_name(const std::string& device, std::uint8_t number) {
  return number == 1 ? device : device + ":" + std::to_string(number);
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
  if (peer == qps_.end() || is_down(qp) || is_down(*peer->second) || !is_addressed(qp, *peer->second)) return false;
  const ibv_qp_state state = peer->second->attr.qp_state;
  const bool answers = state == IBV_QPS_RTR || state == IBV_QPS_RTS;
  // Packets of an earlier connection carry numbers that the queue pair does not expect.
  return answers && peer->second->peer == qp.qp_num && peer->second->attr.rq_psn == qp.attr.sq_psn;
}

bool MockFabric::is_down(const MockQp& qp) const {
  return device(qp.device).gone || is_removed(qp.context) || down_.contains(port_name(qp.device, qp.attr.port_num));
}

/// Whether packets find the peer's port, and come from an address that ours has.
bool MockFabric::is_addressed(const MockQp& qp, const MockQp& peer) const {
  const MockDevice &here = device(qp.device), &there = device(peer.device);
  const ibv_ah_attr& to = qp.attr.ah_attr;
  if (!to.is_global) return to.dlid == there.port(peer.attr.port_num).lid;
  const std::vector<Gid> own = here.gids_of(qp.attr.port_num);
  GidBytes there_bytes;
  std::memcpy(there_bytes.data(), to.grh.dgid.raw, there_bytes.size());
  if (dead_gids.contains(there_bytes)) return false;
  return std::ranges::any_of(
             own, [&](const Gid& gid) { return gid.index == to.grh.sgid_index && !dead_gids.contains(gid.bytes); }) &&
         there.has_gid(peer.attr.port_num, std::span<const std::uint8_t, 16>(to.grh.dgid.raw));
}

bool MockFabric::is_too_large(const MockQp& qp, const Held& held) const {
  if (held.qkey != 0) return false;
  const auto peer = qps_.find(qp.peer);
  std::uint32_t most = std::min(packet_max, 128u << device(qp.device).mtu);
  if (peer != qps_.end()) most = std::min(most, 128u << device(peer->second->device).mtu);
  const std::uint64_t bytes = held.inlined.empty() ? total_of(held.list) : held.inlined.size();
  return std::min<std::uint64_t>(bytes, 128u << qp.attr.path_mtu) > most;
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
  largest_request = std::max(largest_request, total_of(held.list));
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
  const std::size_t colon = name.find(':');
  const auto number = static_cast<std::uint8_t>(colon == std::string::npos ? 1 : std::stoi(name.substr(colon + 1)));
  device(name.substr(0, colon)).port(number).active = up;
}

void MockFabric::fail_cq(MockCq& cq) {
  cq.dead = true;
  cq.entries.clear();
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &cq;
  events_[cq.context].push_back(event);
  bump(cq.context->async_fd);
}

void MockFabric::set_gone(const std::string& name, bool gone) {
  device(name).gone = gone;
  if (gone) raise(name, IBV_EVENT_DEVICE_FATAL);
}

void MockFabric::remove(const std::string& name) {
  set_gone(name, true);
  for (const auto& [each, context] : contexts_) {
    if (each == name) removed_.insert(context);
  }
  std::erase_if(mrs_, [this](const auto& each) {
    if (!is_removed(each.second->context)) return false;
    bytes_pinned -= each.second->length;
    mr_access_.erase(each.first);
    ended_mrs_.push_back(each.second);
    return true;
  });
}

void MockFabric::purge(const ibv_context* context) {
  if (!is_removed(context)) return;
  std::erase_if(ended_mrs_, [&](ibv_mr* mr) {
    if (mr->context != context) return false;
    delete mr;
    --counts.mrs;
    return true;
  });
  std::erase_if(qps_, [&](const auto& each) {
    if (each.second->context != context) return false;
    delete each.second;
    --counts.qps;
    return true;
  });
  std::set<ibv_comp_channel*> channels;
  std::erase_if(cqs_, [&](MockCq* cq) {
    if (cq->context != context) return false;
    channels.insert(cq->channel);
    delete cq;
    --counts.cqs;
    return true;
  });
  for (ibv_comp_channel* channel : channels) {
    ::close(channel->fd);
    delete static_cast<MockChannel*>(channel);
    --counts.channels;
  }
  std::erase_if(pds_, [&](ibv_pd* pd) {
    if (pd->context != context) return false;
    delete pd;
    --counts.pds;
    return true;
  });
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

void MockFabric::raise(const std::string& name, ibv_event_type type, std::uint8_t port) {
  const auto [first, last] = contexts_.equal_range(name);
  for (auto each = first; each != last; ++each) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = port;
    events_[each->second].push_back(event);
    bump(each->second->async_fd);
  }
}

ibv_wc_status MockFabric::planted_status(const Held& held) {
  const ibv_wc_status next = std::exchange(next_status_, IBV_WC_SUCCESS);
  const bool is_send = held.opcode == IBV_WR_SEND || held.opcode == IBV_WR_SEND_WITH_IMM;
  return next != IBV_WC_SUCCESS || is_send || total_of(held.list) == 0 ? next : bytes_status_;
}

ibv_wc_status MockFabric::perform(MockQp& qp, Held& held) {
  MockQp& peer = *qps_.at(held.qkey == 0 ? qp.peer : held.to);
  ibv_wc_status status = planted_status(held);
  if (status == IBV_WC_SUCCESS) status = move(qp, held, peer);
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
  if (total_of(held.list) > device(qp.device).max_msg_sz && !qp.is_srd) return IBV_WC_LOC_LEN_ERR;
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
  if (is_inline) here.emplace_back(held.inlined);
  if (held.opcode == IBV_WR_SEND || held.opcode == IBV_WR_SEND_WITH_IMM) return receive(peer, held, joined(here));

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
    copy_runs(there, here);
  } else {
    copy_runs(here, there);
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
  if (cq.dead) return;
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

}  // namespace hawser::backend::verbs
