#pragma once

// The objects of the fabric in memory (mock_fabric.h), for its own sources.
//
// Thread rule: one thread.

#include <unistd.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

class MockFabric;
struct MockQp;

struct MockContext : ibv_context {
  std::string name;
  int channels = 0;
};

struct MockCq : ibv_cq {
  std::deque<ibv_wc> entries;
  bool armed = false;
  bool overrun = false;
  bool dead = false;
  int event_fd = -1;
  MockFabric* fabric = nullptr;
};

struct MockChannel : ibv_comp_channel {
  std::deque<ibv_cq*> events;
};

struct MockAh : ibv_ah {
  ibv_ah_attr attr{};
};

/// Whom a request of a queue pair of datagrams is for.
struct MockDatagram {
  ibv_ah* address = nullptr;
  std::uint32_t number = 0, qkey = 0;
};

/// The extended form of a queue pair, and what a session of it has built.
struct MockBuilder : ibv_qp_ex {
  struct Request {
    ibv_send_wr request{};
    std::vector<ibv_sge> list;
    MockDatagram datagram;
  };
  MockQp* of = nullptr;
  MockFabric* fabric = nullptr;
  bool is_open = false;
  std::vector<Request> built;
};

struct MockQp : ibv_qp {
  bool is_srd = false;
  MockBuilder builder{};
  ibv_ah_attr address_used{};
  std::string device;
  ibv_qp_attr attr{};
  ibv_qp_cap cap{};
  std::uint32_t peer = 0;
  int outstanding = 0;
  struct Receive {
    std::uint64_t wr_id;
    std::vector<ibv_sge> list;
  };
  std::deque<Receive> receives;
};

inline MockCq& cq_of(ibv_cq* cq) { return *static_cast<MockCq*>(cq); }
inline MockQp& qp_of(ibv_qp* qp) { return *static_cast<MockQp*>(qp); }

inline std::uint64_t total_of(const std::vector<ibv_sge>& list) {
  std::uint64_t total = 0;
  for (const ibv_sge& part : list) total += part.length;
  return total;
}

/// Whoever waits for that descriptor wakes.
inline void bump(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
}

/// The queue tells it; one that is full overruns.
inline void complete(MockCq& cq, const ibv_wc& wc) {
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
