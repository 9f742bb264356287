#include "rdma/rules.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

Status bad(Code code, const std::string& what, std::string_view advice) {
  return Status(code, "submit: " + what).with_buffer(BufferState::kUntouched).with_advice(advice);
}

std::string both_sizes(const OpShape& shape) {
  return "local memory of " + std::to_string(shape.local_size) + " bytes, remote buffer of " +
         std::to_string(shape.remote_size);
}

}  // namespace

OpShape shape_of(const Op& op) {
  return {.type = op.type,
          .has_local = op.local.valid(),
          .local_writable = op.local.valid() && op.local.writable(),
          .local_on_host = op.local.device().kind == DeviceKind::kHost,
          .has_remote = op.remote.valid(),
          .local_size = op.local.size(),
          .remote_size = op.remote.size()};
}

Result<std::uint64_t> bytes_of(const OpShape& shape) {
  if (!shape.has_remote) return bad(Code::kInvalid, "an operation without a remote buffer", "give what decode() gave");
  if (shape.type == OpType::kFetchAdd || shape.type == OpType::kCompareSwap) {
    if (!shape.local_on_host) {
      return bad(Code::kInvalid, "an atomic with local memory of a GPU", "give memory of the host, or none");
    }
    if (shape.has_local && (shape.local_size != sizeof(std::uint64_t) || !shape.local_writable)) {
      return bad(Code::kInvalid, "an atomic with local memory of " + std::to_string(shape.local_size) + " bytes",
                 "give 8 bytes that can be written, or none");
    }
    if (shape.remote_size == sizeof(std::uint64_t)) return std::uint64_t{sizeof(std::uint64_t)};
    return bad(Code::kInvalid, "an atomic on a remote buffer of " + std::to_string(shape.remote_size) + " bytes",
               "slice the 8 bytes of the word");
  }
  if (!shape.has_local)
    return bad(Code::kInvalid, "an operation without local memory", "give what local_memory() gave");
  if (shape.type == OpType::kWriteFromLocal) {
    if (shape.local_size <= shape.remote_size) return shape.local_size;
    return bad(Code::kInvalid, "a write that does not fit: " + both_sizes(shape), "slice the local memory");
  }
  if (shape.type != OpType::kReadIntoLocal) return bad(Code::kInvalid, "an unknown operation", "see OpType");
  if (shape.local_size < shape.remote_size) {
    return bad(Code::kInvalid, "a read that does not fit: " + both_sizes(shape), "slice the remote buffer");
  }
  if (!shape.local_writable)
    return bad(Code::kDenied, "a read into read-only memory", "give memory that can be written");
  return shape.remote_size;
}

TransportLevel level_of(std::string_view backend) {
  if (backend == "verbs") return TransportLevel::kNic;
  if (backend == "shm" || backend == "self" || backend == "loopback") return TransportLevel::kMemory;
  return TransportLevel::kTcp;
}

std::string_view to_string(TransportLevel level) {
  switch (level) {
    case TransportLevel::kTcp:
      return "tcp";
    case TransportLevel::kNic:
      return "nic";
    case TransportLevel::kMemory:
      return "memory";
  }
  return "unknown";
}

}  // namespace rdma
HAWSER_NAMESPACE_END
