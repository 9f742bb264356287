#pragma once

// For tests of the fabric's parts: two queue pairs that are connected, without a fabric.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "backend/verbs/mock/mock_wires.h"

namespace hawser::backend::verbs {

struct TestMockPair {
  TestMockPair() {
    here_device.name = "mock0";
    here_device.last_byte = 1;
    there_device.name = "mock1";
    there_device.last_byte = 2;
    connect(here, 1, 2, 11, 22, there_device);
    connect(there, 2, 1, 22, 11, here_device);
  }
  void connect(MockQp& qp, std::uint32_t number, std::uint32_t peer, std::uint32_t own_psn, std::uint32_t its_psn,
               const MockDevice& to) {
    cq.cqe = 16;
    qp.pd = &pd;
    qp.send_cq = qp.recv_cq = &cq;
    qp.qp_num = number;
    qp.peer = peer;
    qp.attr.qp_state = IBV_QPS_RTS;
    qp.attr.port_num = 1;
    qp.attr.sq_psn = own_psn;
    qp.attr.rq_psn = its_psn;
    qp.attr.path_mtu = IBV_MTU_1024;
    qp.attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    qp.attr.ah_attr.is_global = 1;
    qp.attr.ah_attr.grh.sgid_index = 1;
    const Gid gid = to.gids_of(1).back();
    std::memcpy(qp.attr.ah_attr.grh.dgid.raw, gid.bytes.data(), gid.bytes.size());
  }

  ibv_context context{};
  ibv_pd pd{.context = &context, .handle = 0};
  MockCq cq{};
  MockDevice here_device, there_device;
  MockQp here{}, there{};
};

}  // namespace hawser::backend::verbs
