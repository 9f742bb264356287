#include "backend/verbs/mock/mock_builder.h"

#include <cerrno>
#include <utility>

#include "backend/verbs/mock/mock_fabric.h"

namespace hawser::backend::verbs {
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

}  // namespace

void set_calls(MockQp& qp, MockFabric& fabric) {
  MockBuilder& builder = qp.builder;
  builder.of = &qp;
  builder.fabric = &fabric;
  builder.wr_start = [](ibv_qp_ex* to) { builder_of(to).is_open = true; };
  builder.wr_rdma_write = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t at) {
    build(to, IBV_WR_RDMA_WRITE, rkey, at);
  };
  builder.wr_rdma_read = [](ibv_qp_ex* to, std::uint32_t rkey, std::uint64_t at) {
    build(to, IBV_WR_RDMA_READ, rkey, at);
  };
  builder.wr_set_sge = [](ibv_qp_ex* to, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    builder_of(to).built.back().list = {{.addr = address, .length = length, .lkey = lkey}};
  };
  builder.wr_set_sge_list = [](ibv_qp_ex* to, std::size_t count, const ibv_sge* list) {
    builder_of(to).built.back().list.assign(list, list + count);
  };
  builder.wr_set_ud_addr = [](ibv_qp_ex* to, ibv_ah* address, std::uint32_t number, std::uint32_t qkey) {
    builder_of(to).built.back().datagram = {.address = address, .number = number, .qkey = qkey};
  };
  builder.wr_complete = [](ibv_qp_ex* to) { return builder_of(to).fabric->post_datagrams(*builder_of(to).of); };
  builder.wr_abort = [](ibv_qp_ex* to) {
    builder_of(to).built.clear();
    builder_of(to).is_open = false;
    ++builder_of(to).fabric->aborts;
  };
}

int check_session(const MockQp& qp, const MockDevice& device, const std::vector<MockBuilder::Request>& built) {
  if (qp.attr.qp_state != IBV_QPS_RTS && qp.attr.qp_state != IBV_QPS_ERR) return EINVAL;
  if (qp.outstanding + static_cast<int>(built.size()) > static_cast<int>(qp.cap.max_send_wr)) return ENOMEM;
  for (const MockBuilder::Request& each : built) {
    const bool fits =
        each.list.size() <= qp.cap.max_send_sge && !each.list.empty() && total_of(each.list) <= device.efa_rdma_size;
    if (!fits || each.datagram.address == nullptr || each.request.send_flags != IBV_SEND_SIGNALED) return EINVAL;
  }
  return 0;
}

}  // namespace hawser::backend::verbs
