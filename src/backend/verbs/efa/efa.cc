#include "backend/verbs/efa/efa.h"

#include <algorithm>

#include "backend/verbs/devices/device_files.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// Headers of rdma-core before 46 do not name it.
constexpr std::uint32_t kCapsRdmaWrite = 1u << 3;
/// Fewer work requests than this are no queue to move bulk by.
constexpr std::uint32_t kDepthMin = 16;

Status unfit(const Domain& domain, std::string_view what) {
  return Status(Code::kUnsupported, base::format("EFA device {} {}", domain.name(), what)).with_device(domain.name());
}

}  // namespace

Result<QueuePairType> choose_type(QueuePairType wanted, const DeviceInfo& device) {
  const bool is_efa = device.transport == Transport::kEfa;
  const QueuePairType can = is_efa ? QueuePairType::kSrd : QueuePairType::kRc;
  if (wanted == QueuePairType::kAuto || wanted == can) return can;
  return Status(Code::kUnsupported,
                base::format("queue_pair_type = {}, but {} has {}", to_string(wanted), device.name,
                             is_efa ? "no reliable connections: it is EFA" : "no SRD: it is not EFA"))
      .with_device(device.name)
      .with_advice("leave queue_pair_type at auto, or name another device in `devices`");
}

Result<SrdLimits> query_srd(Domain& domain) {
  if (const std::string why = domain.verbs().no_efa(); !why.empty()) {
    return unfit(domain, base::format("needs libefa: {}", why))
        .with_advice(
            "install rdma-core's EFA provider, 46 or later (Debian: ibverbs-providers; AWS: the EFA installer)");
  }
  efadv_device_attr attr{};
  if (const int error = domain.verbs().query_efa(domain.context(), &attr); error != 0) {
    return base::errno_status(Code::kUnsupported, base::format("asking EFA device {} what it can do", domain.name()),
                              error)
        .with_device(domain.name());
  }
  const bool reads = (attr.device_caps & EFADV_DEVICE_ATTR_CAPS_RDMA_READ) != 0;
  const bool writes = (attr.device_caps & kCapsRdmaWrite) != 0;
  if (!reads || !writes || attr.max_rdma_size == 0) {
    return unfit(domain, base::format("cannot {} remote memory", writes  ? "read"
                                                                 : reads ? "write"
                                                                         : "read or write"))
        .with_advice(
            "p4d and older instances cannot; on others rdma-core 46 and a kernel driver that knows of writes are "
            "needed; tcp serves meanwhile");
  }
  if (attr.max_sq_wr < kDepthMin || attr.max_sq_sge == 0) {
    return unfit(domain, base::format("holds {} work requests of {} pieces only", attr.max_sq_wr, attr.max_sq_sge));
  }
  return SrdLimits{.send_depth = attr.max_sq_wr, .sge_max = attr.max_sq_sge, .message_max = attr.max_rdma_size};
}

std::uint64_t this_boot() {
  std::uint64_t id = 0;
  for (const char digit : read_text("/proc/sys/kernel/random/boot_id")) {
    const bool is_number = digit >= '0' && digit <= '9';
    if (is_number || (digit >= 'a' && digit <= 'f')) {  // A random UUID: its halves are laid over each other.
      id = (id << 4 | id >> 60) ^ static_cast<std::uint64_t>(is_number ? digit - '0' : digit - 'a' + 10);
    }
  }
  return id;
}

Status refuse_same_host(std::string_view peer) {
  return Status(Code::kUnsupported,
                base::format("{} is on this host, and EFA devices drop what is for their own host", peer))
      .with_scope(Scope::kPath)
      .with_advice("open the backends shm and tcp as well: peers of one host are reached by those");
}

Status check_efa(const std::shared_ptr<Verbs>& verbs, const DeviceInfo& device) {
  HAWSER_TRY_ASSIGN(const std::shared_ptr<Domain> domain, Domain::open(verbs, device.name));
  return query_srd(*domain).status();
}

}  // namespace hawser::backend::verbs
