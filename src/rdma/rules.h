#pragma once

// Which operations are refused before a byte moves, and how many bytes the others move.
//
// Thread rule: pure functions.

#include <hawser/rdma.h>

HAWSER_NAMESPACE_BEGIN
namespace rdma {

/// The sizes of one operation and what its memory allows.
struct OpShape {
  OpType type = OpType::kReadIntoLocal;
  bool has_local = false, local_writable = false, local_on_host = true, has_remote = false;
  std::uint64_t local_size = 0, remote_size = 0;
};
OpShape shape_of(const Op& op);

/// Bytes that move, or kInvalid or kDenied.
Result<std::uint64_t> bytes_of(const OpShape& shape);

TransportLevel level_of(std::string_view backend);

}  // namespace rdma
HAWSER_NAMESPACE_END
