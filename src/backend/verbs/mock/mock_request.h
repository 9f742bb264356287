#pragma once

// MockRequest: one work request that was posted, with what of it the poster may change afterwards; and what it does to
// the memory of both ends.
//
// Thread rule: one thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/verbs/mock/mock_device.h"
#include "backend/verbs/mock/mock_memory.h"
#include "backend/verbs/mock/mock_objects.h"

namespace hawser::backend::verbs {

struct MockRequest {
  std::uint32_t qp = 0;
  std::uint8_t to_gid = 0;  ///< Datagrams: the last byte of the peer's GID,
  std::uint32_t to = 0;     ///< its queue pair; of others the one that is connected,
  std::uint32_t qkey = 0;   ///< and its key; 0: no datagram.
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  unsigned flags = 0;
  std::uint32_t imm = 0;
  std::vector<ibv_sge> list;
  std::vector<std::byte> inlined;
  std::uint64_t remote = 0, compare = 0, swap = 0;
  std::uint32_t rkey = 0;

  bool is_send() const { return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM; }
  bool is_atomic() const { return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD; }
  bool is_inline() const { return (flags & IBV_SEND_INLINE) != 0; }
  std::uint64_t bytes() const { return total_of(list); }
};

/// As it was posted. Notes the address of a datagram in the queue pair.
MockRequest take_request(MockQp& qp, const ibv_send_wr& posted, const MockDatagram& datagram);

/// Does it, with the checks that an adapter makes of keys, rights, bounds and receives; tells the peer's receive.
ibv_wc_status carry_out(const MockMemory& memory, std::uint32_t message_max, MockQp& qp, MockRequest& request,
                        MockQp& peer);

/// What tells of the end of a request.
ibv_wc completion_of(const MockRequest& request, ibv_wc_status status);

}  // namespace hawser::backend::verbs
