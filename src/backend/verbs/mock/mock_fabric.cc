#include "backend/verbs/mock/mock_fabric.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backend/verbs/mock/mock_builder.h"

namespace hawser::backend::verbs {

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

/// Which of those held is next: datagrams have no order.
std::size_t MockFabric::next_held() {
  if (held_.front().qkey == 0) return 0;
  const auto at = static_cast<std::size_t>(order.below(held_.size()));
  return held_[at].qkey == 0 ? 0 : at;
}

void MockFabric::run(MockQp& qp, const ibv_send_wr& request, const MockDatagram& datagram) {
  MockRequest taken = take_request(qp, request, datagram);
  ++requests;
  if (taken.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) ++immediates;
  largest_request = std::max(largest_request, taken.bytes());
  for (const ibv_sge& part : taken.list) {
    // The CPU reads them: a real one would fault.
    if (taken.is_inline() && is_gpu_memory(part.addr)) gpu_bytes_inlined += part.length;
  }
  ++qp.outstanding;
  held_.push_back(std::move(taken));
  if (!hold && !qp.is_srd) deliver();
}

std::size_t MockFabric::deliver(std::size_t count) {
  std::size_t delivered = 0;
  while (!held_.empty() && delivered < count) {
    const auto next = held_.begin() + static_cast<std::ptrdiff_t>(next_held());
    MockRequest held = std::move(*next);
    held_.erase(next);
    ++delivered;
    deliver(std::move(held));
  }
  return delivered;
}

bool MockFabric::deliver_one_of(std::uint32_t number) {
  const auto found = std::ranges::find(held_, number, &MockRequest::qp);
  if (found == held_.end()) return false;
  MockRequest held = std::move(*found);
  held_.erase(found);
  deliver(std::move(held));
  return true;
}

void MockFabric::deliver(MockRequest held) {
  const auto found = qps_.find(held.qp);
  if (found == qps_.end()) return;
  MockQp& qp = *found->second;
  if (qp.attr.qp_state == IBV_QPS_RESET) return;
  if (qp.attr.qp_state == IBV_QPS_ERR) {
    finish(qp, held, IBV_WC_WR_FLUSH_ERR);
  } else if (const MockWires::Way way = way_of(qp, held); way != MockWires::Way::kOpen) {
    dropped += way == MockWires::Way::kDropped;
    (way == MockWires::Way::kDropped ? gone_ : lost_).push_back(std::move(held));
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
    MockRequest held = std::move(lost_.front());
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
  wires.set_link(name, up);
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
  memory.revoke([this](const ibv_context* context) { return is_removed(context); });
}

void MockFabric::purge(const ibv_context* context) {
  if (!is_removed(context)) return;
  memory.purge(context);
  count_memory();
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
  for (std::deque<MockRequest>* queue : {&held_, &lost_, &gone_}) {
    std::deque<MockRequest> others;
    for (MockRequest& held : *queue) {
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

ibv_wc_status MockFabric::planted_status(const MockRequest& held) {
  const ibv_wc_status next = std::exchange(next_status_, IBV_WC_SUCCESS);
  return next != IBV_WC_SUCCESS || held.is_send() || held.bytes() == 0 ? next : bytes_status_;
}

ibv_wc_status MockFabric::perform(MockQp& qp, MockRequest& held) {
  MockQp& peer = *qps_.at(held.qkey == 0 ? qp.peer : held.to);
  ibv_wc_status status = planted_status(held);
  if (status == IBV_WC_SUCCESS) status = carry_out(memory, device(qp.device).max_msg_sz, qp, held, peer);
  const bool breaks = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR;
  if (breaks && !peer.is_srd) {
    peer.attr.qp_state = peer.state = IBV_QPS_ERR;  // The responder breaks as well.
    flush(peer);
  }
  return status;
}

std::uint32_t MockFabric::make_list_key() {
  if (fails("create_mkey")) return 0;
  const std::uint32_t key = memory.add_list();
  count_memory();
  return key;
}

void MockFabric::end_list_key(std::uint32_t key) {
  memory.end_list(key);
  count_memory();
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
    if (!memory.resolve(qp->pd, piece.lkey, piece.addr, piece.length, access)) wc.status = IBV_WC_MW_BIND_ERR;
  }
  if (wc.status == IBV_WC_SUCCESS) memory.bind_list(key, access, list);
  complete(cq_of(qp->send_cq), wc);
  return 0;
}

void MockFabric::finish(MockQp& qp, const MockRequest& held, ibv_wc_status status) {
  --qp.outstanding;
  if (status != IBV_WC_SUCCESS || (held.flags & IBV_SEND_SIGNALED) != 0) {
    complete(cq_of(qp.send_cq), completion_of(held, status));
  }
  if (status == IBV_WC_SUCCESS || qp.attr.qp_state == IBV_QPS_ERR || qp.is_srd) return;
  qp.attr.qp_state = qp.state = IBV_QPS_ERR;
  flush(qp);
}

ibv_mr* MockFabric::make_mr(ibv_pd* pd, void* address, std::size_t size, int access) {
  ibv_mr* mr = memory.add(pd, address, size, access);
  count_memory();
  return mr;
}

void MockFabric::end_mr(ibv_mr* mr) {
  memory.end(mr);
  count_memory();
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
  ++qps_made;
  return qp;
}

MockWires::Way MockFabric::way_of(const MockQp& qp, const MockRequest& held) const {
  const auto end_of = [this](const MockQp& each) {
    return MockWires::End{.qp = each, .device = device(each.device), .is_removed = is_removed(each.context)};
  };
  const auto peer = qps_.find(held.qkey == 0 ? qp.peer : held.to);
  if (peer == qps_.end()) return wires.way_of(held, end_of(qp), nullptr);
  const MockWires::End to = end_of(*peer->second);
  return wires.way_of(held, end_of(qp), &to);
}

/// All of a session, or nothing.
int MockFabric::post_datagrams(MockQp& qp) {
  const auto built = std::exchange(qp.builder.built, {});
  if (!std::exchange(qp.builder.is_open, false)) return EINVAL;
  if (fails("wr_complete")) return errno;
  if (const int error = check_session(qp, device(qp.device), built); error != 0) return error;
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

ibv_ah_attr MockFabric::address_used(std::uint32_t number) const { return qps_.at(number)->address_used; }

void MockFabric::set_qkey(std::uint32_t number, std::uint32_t qkey) { qps_.at(number)->attr.qkey = qkey; }

}  // namespace hawser::backend::verbs
