#pragma once

// The objects of the fabric in memory (mock_fabric.h), for its own sources.
//
// Thread rule: one thread.

#include <deque>
#include <string>
#include <vector>

#include "backend/verbs/mock/mock_fabric.h"

namespace hawser::backend::verbs {

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

/// Exactly these attributes are taken by a queue pair of datagrams.
int datagrams_need(ibv_qp_state to);

}  // namespace hawser::backend::verbs
