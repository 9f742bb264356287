#include "backend/verbs/gpu/registration_gpu.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// Allocations that one range may lie in.
constexpr std::size_t kAllocationsMax = 4096;

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

/// Whether library and kernel know the call: who does complains that -1 is no descriptor.
bool knows_dmabufs(const Domain& domain) {
  errno = 0;
  ibv_mr* mr = domain.verbs().reg_dmabuf_mr(domain.pd(), 0, page_bytes(), 0, -1, IBV_ACCESS_LOCAL_WRITE);
  const int error = errno;
  if (mr == nullptr) return error == EBADF;
  domain.verbs().dereg_mr(mr);
  return true;
}

Status missing_dmabuf(const Domain& domain) {
  if (knows_dmabufs(domain)) return {};
  return Status(Code::kUnsupported, base::format("{} registers no dmabufs", domain.name()))
      .with_device(domain.name())
      .with_advice("dmabufs need Linux 5.12, rdma-core 34 and a driver that takes them (mlx5, efa, irdma)");
}

/// First GPU that exports no dmabufs, as a reason; good when all do.
Status missing_export(GpuDriver& driver) {
  HAWSER_TRY_ASSIGN(const int count, driver.device_count());
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    HAWSER_TRY_ASSIGN(const bool exports, driver.exports_dmabuf(ordinal));
    if (exports) continue;
    return Status(Code::kUnsupported, base::format("cuda:{} exports no dmabufs", ordinal))
        .with_advice("use the open kernel modules of the NVIDIA driver, with CUDA 11.7 or later");
  }
  if (count > 0) return {};
  return Status(Code::kNotFound, "there is no GPU");
}

bool has_peer_memory_module(const std::string& sysfs) {
  for (const std::string_view path : {"/module/nvidia_peermem", "/module/nv_peer_mem", "/kernel/mm/memory_peers"}) {
    struct stat entry {};
    if (::stat((sysfs + std::string(path)).c_str(), &entry) == 0) return true;
  }
  return false;
}

/// An error of the kind that another path may not have.
bool is_about_ability(const Status& status) {
  return status.code() == Code::kUnsupported || status.code() == Code::kInvalid || status.code() == Code::kDenied;
}

Status cannot_reach(const std::string& device, const Status& why) {
  return Status(Code::kUnsupported, base::format("{} cannot reach GPU memory", device))
      .with_device(device)
      .because(why)
      .with_advice(why.advice().empty() ? "it needs dmabufs or nvidia_peermem (docs/rdma.md); use host memory"
                                        : std::string(why.advice()));
}

}  // namespace

Result<GpuDirectPlan> plan_gpu_direct(const Domain& domain, GpuDriver* driver, GpuDirect mode, const std::string& sysfs,
                                      const Status& no_driver) {
  if (mode == GpuDirect::kOff) return GpuDirectPlan{};
  Status missing;
  if (driver == nullptr) {
    missing = Status(Code::kUnsupported, "there is no CUDA driver").because(no_driver);
  } else {
    missing = missing_dmabuf(domain);
    if (missing.ok() && mode == GpuDirect::kRequire) missing = missing_export(*driver);
  }
  if (missing.ok()) return GpuDirectPlan{GpuPath::kDmabuf, {}};
  const bool may_be_peer = driver != nullptr && missing.code() != Code::kNotFound && has_peer_memory_module(sysfs);
  if (may_be_peer) return GpuDirectPlan{GpuPath::kPeerMemory, missing};
  if (mode == GpuDirect::kAuto) return GpuDirectPlan{GpuPath::kNone, missing};
  return Status(Code::kUnsupported, base::format("gpu_direct = require, but {} cannot reach GPU memory", domain.name()))
      .with_device(domain.name())
      .because(missing)
      .with_advice("load nvidia_peermem, or make dmabufs work; gpu_direct = auto goes by way of host memory");
}

AddressRange whole_pages(AddressRange range) {
  const std::uintptr_t page = page_bytes();
  return {range.begin & ~(page - 1), (range.end + page - 1) & ~(page - 1)};
}

Result<std::shared_ptr<Registration>> register_dmabuf(const std::shared_ptr<Domain>& domain, GpuDriver& driver,
                                                      AddressRange range, const Access& access, int ordinal) {
  const AddressRange pages = whole_pages(range);
  HAWSER_TRY(check_range(*domain, pages.begin, pages.size()));
  // The registration has its own hold on the memory: the descriptor closes when this returns.
  HAWSER_TRY_ASSIGN(const base::Fd exported, driver.export_dmabuf(pages));
  const int flags = access_flags(access);
  errno = 0;
  ibv_mr* mr = domain->verbs().reg_dmabuf_mr(domain->pd(), 0, pages.size(), pages.begin, exported.get(), flags);
  if (mr == nullptr) {
    return registration_failed(*domain, pages.begin, pages.size(), "GPU memory (dmabuf)", errno != 0 ? errno : EIO);
  }
  driver.synchronise_copies(range.begin);
  const Registration::Range covered{range.begin, range.size(), range.begin, ordinal};
  return std::make_shared<Registration>(domain, mr, covered, RegistrationKind::kDmabuf, flags);
}

Result<std::vector<MemorySource::Made>> GpuMemory::make(const Wanted& wanted) {
  HAWSER_TRY(check_range(*domain_, wanted.address, wanted.size));
  std::vector<Made> made;
  const std::uintptr_t end = wanted.address + wanted.size;
  for (std::uintptr_t at = wanted.address; at < end;) {
    if (made.size() == kAllocationsMax) {
      return Status(Code::kBusy, base::format("{} B at {:#x} lie in more than {} allocations", wanted.size,
                                              wanted.address, kAllocationsMax));
    }
    Wanted rest = wanted;
    rest.address = at;
    rest.size = end - at;
    HAWSER_TRY_ASSIGN(const PointerFacts facts, classify(driver_, at));
    HAWSER_TRY_ASSIGN(Made piece, make_piece(rest, facts));
    at = piece.registration->end();
    made.push_back(std::move(piece));
  }
  return made;
}

Result<MemorySource::Made> GpuMemory::make_piece(const Wanted& wanted, const PointerFacts& facts) {
  if (facts.kind == MemoryKind::kManaged) {
    return Status(Code::kUnsupported, base::format("{:#x} is managed memory, which moves", wanted.address))
        .with_advice("allocate with cudaMalloc, or use host memory");
  }
  if (!facts.on_gpu()) {
    const void* address = reinterpret_cast<const void*>(wanted.address);
    HAWSER_TRY_ASSIGN(auto host, register_host(domain_, address, wanted.size, wanted.access));
    return Made{std::move(host), wanted.generation != 0 ? wanted.generation : facts.buffer_id};
  }
  const AddressRange range = extent(facts, wanted.address, wanted.address + wanted.size);
  HAWSER_TRY_ASSIGN(auto registration, register_allocation(range, wanted.access, facts.ordinal));
  // Freed, and allocated anew meanwhile: the registration may be of the memory that is gone.
  if (generation(wanted.address) != facts.buffer_id) {
    return Status(Code::kInvalid, base::format("memory at {:#x} was freed while it was registered", wanted.address));
  }
  return Made{std::move(registration), wanted.generation != 0 ? wanted.generation : facts.buffer_id};
}

AddressRange GpuMemory::extent(const PointerFacts& facts, std::uintptr_t at, std::uintptr_t end) const {
  const std::uint64_t max = domain_->attributes().max_mr_size;
  // Everything that is asked of this allocation later finds the same key.
  if (max == 0 || whole_pages(facts.allocation).size() <= max) return facts.allocation;
  return {at, std::min(end, facts.allocation.end)};
}

Result<std::shared_ptr<Registration>> GpuMemory::register_allocation(AddressRange range, const Access& access,
                                                                     int ordinal) {
  if (path() == GpuPath::kDmabuf) {
    auto made = register_dmabuf(domain_, *driver_, range, access, ordinal);
    if (made || !is_about_ability(made.error()) || !probe_peer_memory(range)) return made;
    // What cannot be exported at all will not be tried again; what only this memory refuses will.
    if (made.error().code() == Code::kUnsupported) go_down_to_peer_memory(made.error());
    return register_peer_memory(range, access, ordinal);
  }
  if (path() == GpuPath::kPeerMemory && probe_peer_memory(range)) return register_peer_memory(range, access, ordinal);
  const Status refused = refusal();
  return refused.ok() ? cannot_reach(domain_->name(), downgrade()) : refused;
}

Status GpuMemory::refusal() const {
  if (path() != GpuPath::kNone) return {};
  const Status why = downgrade();
  if (!why.ok()) return cannot_reach(domain_->name(), why);
  return Status(Code::kUnsupported, base::format("{} does not reach GPU memory: gpu_direct is off", domain_->name()))
      .with_device(domain_->name())
      .with_advice("open verbs with gpu_direct = auto, or use host memory");
}

std::string GpuMemory::describe() const {
  const Status why = downgrade();
  const std::string_view reason = why.ok() ? std::string_view("gpu_direct is off") : why.message();
  switch (path()) {
    case GpuPath::kDmabuf:
      return "GPU memory by dmabuf";
    case GpuPath::kPeerMemory:
      return base::format("GPU memory by peer memory ({})", reason);
    case GpuPath::kNone:
      break;
  }
  return base::format("no GPU memory ({})", reason);
}

Result<std::shared_ptr<Registration>> GpuMemory::register_peer_memory(AddressRange range, const Access& access,
                                                                      int ordinal) {
  HAWSER_TRY(check_range(*domain_, range.begin, range.size()));
  const int flags = access_flags(access);
  errno = 0;
  ibv_mr* mr = domain_->verbs().reg_mr(domain_->pd(), range.data(), range.size(), flags);
  if (mr == nullptr) {
    return registration_failed(*domain_, range.begin, range.size(), "GPU memory (peer memory)",
                               errno != 0 ? errno : EIO);
  }
  driver_->synchronise_copies(range.begin);
  const Registration::Range covered{range.begin, range.size(), range.begin, ordinal};
  return std::make_shared<Registration>(domain_, mr, covered, RegistrationKind::kPeerMemory, flags);
}

bool GpuMemory::probe_peer_memory(AddressRange range) {
  const base::MutexLock lock(mutex_);
  if (peer_memory_ != Probe::kNotYet) return peer_memory_ == Probe::kWorks;
  const std::size_t size = std::min<std::size_t>(range.size(), page_bytes());
  errno = 0;
  ibv_mr* mr = domain_->verbs().reg_mr(domain_->pd(), range.data(), size, IBV_ACCESS_LOCAL_WRITE);
  peer_memory_ = mr != nullptr ? Probe::kWorks : Probe::kFails;
  if (mr != nullptr) {
    domain_->verbs().dereg_mr(mr);
  } else if (downgrade_.ok()) {
    downgrade_ = registration_failed(*domain_, range.begin, size, "GPU memory (peer memory)", errno != 0 ? errno : EIO);
  }
  return mr != nullptr;
}

void GpuMemory::go_down_to_peer_memory(const Status& why) {
  const base::MutexLock lock(mutex_);
  path_.store(GpuPath::kPeerMemory, std::memory_order_relaxed);
  if (downgrade_.ok()) downgrade_ = why;
}

Status GpuMemory::downgrade() const {
  const base::MutexLock lock(mutex_);
  return downgrade_;
}

bool GpuMemory::is_gpu_memory(std::uintptr_t address) {
  if (driver_ == nullptr) return false;
  const Result<GpuPointer> pointer = driver_->pointer(address);
  return pointer && pointer->kind == MemoryKind::kGpu;
}

Result<MemorySource::Made> GpuMemory::make_one(const Wanted& wanted) {
  HAWSER_TRY(check_range(*domain_, wanted.address, wanted.size));
  HAWSER_TRY_ASSIGN(const PointerFacts first, classify(driver_, wanted.address));
  const std::uintptr_t end = wanted.address + wanted.size;
  if (!first.on_gpu() || first.allocation.end >= end) return make_piece(wanted, first);
  HAWSER_TRY_ASSIGN(const PointerFacts last, classify(driver_, end - 1));
  if (!last.on_gpu()) {
    return Status(Code::kInvalid, base::format("{:#x} is {}, not GPU memory", end - 1, to_string(last.kind)));
  }
  // Mapped side by side: what lies between the two is exported with them, or refused by the driver.
  const AddressRange all{first.allocation.begin, last.allocation.end};
  auto made = path() == GpuPath::kDmabuf ? register_dmabuf(domain_, *driver_, all, wanted.access, first.ordinal)
                                         : register_allocation(all, wanted.access, first.ordinal);
  const bool is_same = generation(wanted.address) == first.buffer_id && generation(end - 1) == last.buffer_id;
  if (made && !is_same) {
    return Status(Code::kInvalid, base::format("memory at {:#x} was freed while it was registered", wanted.address));
  }
  if (made) return Made{*std::move(made), wanted.generation != 0 ? wanted.generation : first.buffer_id};
  return Status(made.error().code(), base::format("{} B at {:#x} lie in several allocations, which {} registers by no "
                                                  "one key",
                                                  wanted.size, wanted.address, domain_->name()))
      .with_device(domain_->name())
      .because(made.error())
      .with_advice("tell the allocator's segments (AgentOptions::segments), or register each allocation as a region");
}

std::uint64_t GpuMemory::generation(std::uintptr_t address) {
  if (driver_ == nullptr) return 0;
  const Result<GpuPointer> pointer = driver_->pointer(address);
  return pointer ? pointer->buffer_id : 0;
}

}  // namespace hawser::backend::verbs
