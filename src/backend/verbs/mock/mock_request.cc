#include "backend/verbs/mock/mock_request.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace hawser::backend::verbs {
namespace {

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

/// The requester's own memory; nothing: a key that is not its.
std::optional<MockMemory::Runs> own_runs(const MockMemory& memory, const MockQp& qp, MockRequest& request) {
  if (request.is_inline()) return MockMemory::Runs{request.inlined};
  const bool is_written = request.opcode == IBV_WR_RDMA_READ || request.is_atomic();
  MockMemory::Runs all;
  for (const ibv_sge& part : request.list) {
    if (part.length == 0) continue;
    const auto runs = memory.resolve(qp.pd, part.lkey, part.addr, part.length, is_written ? IBV_ACCESS_LOCAL_WRITE : 0);
    if (!runs) return std::nullopt;
    all.insert(all.end(), runs->begin(), runs->end());
  }
  return all;
}

/// The peer's; nothing: no key, right or range there.
std::optional<MockMemory::Runs> peer_runs(const MockMemory& memory, const MockQp& peer, const MockRequest& request) {
  if (request.bytes() == 0) return MockMemory::Runs();
  const int right = request.is_atomic()                  ? IBV_ACCESS_REMOTE_ATOMIC
                    : request.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                                                         : IBV_ACCESS_REMOTE_WRITE;
  if ((peer.attr.qp_access_flags & static_cast<unsigned>(right)) == 0) return std::nullopt;
  return memory.resolve(peer.pd, request.rkey, request.remote, request.bytes(), right);
}

ibv_wc_status compute(const MockRequest& request, const MockMemory::Runs& here, const MockMemory::Runs& there) {
  if (request.remote % 8 != 0 || request.bytes() != 8) return IBV_WC_REM_INV_REQ_ERR;
  std::uint64_t value = 0;
  std::memcpy(&value, there.front().data(), sizeof(value));
  std::memcpy(here.front().data(), &value, sizeof(value));
  const bool adds = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const std::uint64_t next = adds ? value + request.compare : value == request.compare ? request.swap : value;
  std::memcpy(there.front().data(), &next, sizeof(next));
  return IBV_WC_SUCCESS;
}

ibv_wc_status receive(MockQp& peer, const MockRequest& request, std::span<const std::byte> bytes) {
  if (peer.receives.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
  const MockQp::Receive receive = std::move(peer.receives.front());
  peer.receives.pop_front();
  ibv_wc wc{};
  wc.wr_id = receive.wr_id;
  wc.qp_num = peer.qp_num;
  wc.byte_len = static_cast<std::uint32_t>(bytes.size());
  wc.opcode = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (request.opcode != IBV_WR_SEND) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = request.imm;
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

}  // namespace

MockRequest take_request(MockQp& qp, const ibv_send_wr& posted, const MockDatagram& datagram) {
  MockRequest taken;
  taken.qp = qp.qp_num;
  taken.wr_id = posted.wr_id;
  taken.opcode = posted.opcode;
  taken.flags = posted.send_flags;
  taken.imm = posted.imm_data;
  taken.list.assign(posted.sg_list, posted.sg_list + posted.num_sge);
  if (taken.is_inline()) {
    for (const ibv_sge& part : taken.list) {
      const auto* from = reinterpret_cast<const std::byte*>(part.addr);
      taken.inlined.insert(taken.inlined.end(), from, from + part.length);
    }
  }
  taken.remote = posted.wr.rdma.remote_addr;
  taken.rkey = posted.wr.rdma.rkey;
  if (taken.is_atomic()) {
    taken.remote = posted.wr.atomic.remote_addr;
    taken.rkey = posted.wr.atomic.rkey;
    taken.compare = posted.wr.atomic.compare_add;
    taken.swap = posted.wr.atomic.swap;
  }
  if (datagram.address != nullptr) {
    qp.address_used = static_cast<MockAh*>(datagram.address)->attr;
    taken.to_gid = qp.address_used.grh.dgid.raw[15];
    taken.to = datagram.number;
    taken.qkey = datagram.qkey;
  }
  return taken;
}

ibv_wc_status carry_out(const MockMemory& memory, std::uint32_t message_max, MockQp& qp, MockRequest& request,
                        MockQp& peer) {
  if (request.bytes() > message_max && !qp.is_srd) return IBV_WC_LOC_LEN_ERR;
  const auto here = own_runs(memory, qp, request);
  if (!here) return IBV_WC_LOC_PROT_ERR;
  if (request.is_send()) return receive(peer, request, joined(*here));
  const auto there = peer_runs(memory, peer, request);
  if (!there) return IBV_WC_REM_ACCESS_ERR;
  if (request.is_atomic()) return compute(request, *here, *there);
  if (request.opcode == IBV_WR_RDMA_READ) {
    copy_runs(*there, *here);
  } else {
    copy_runs(*here, *there);
  }
  return request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? receive(peer, request, {}) : IBV_WC_SUCCESS;
}

ibv_wc completion_of(const MockRequest& request, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = request.wr_id;
  wc.status = status;
  wc.opcode = wc_opcode(request.opcode);
  wc.qp_num = request.qp;
  wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x88;
  return wc;
}

}  // namespace hawser::backend::verbs
