#include "backend/verbs/devices/domain.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "backend/verbs/devices/device_list.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

Status no_list(int error) {
  return base::errno_status("the RDMA devices cannot be listed", error)
      .with_advice(
          "load the kernel's ib_uverbs (modprobe ib_uverbs); in a container, pass the devices of "
          "/dev/infiniband");
}

Status no_device(std::string_view name, std::span<ibv_device* const> devices) {
  std::string there;
  for (const ibv_device* device : devices) there += base::format("{}{}", there.empty() ? "" : ", ", device->name);
  const std::string message = base::format("no RDMA device is called \"{}\"; there {}", name,
                                           there.empty() ? "is none" : base::format("are: {}", there));
  return Status(Code::kNotFound, message).with_advice("`hawser topo` lists the devices of this machine");
}

/// What most often stands behind an error of opening a device.
std::string_view open_advice(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "allow this user to read and write /dev/infiniband/uverbs*; in a container also pass them as devices";
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return "the device has no node in /dev/infiniband: load ib_uverbs and, in a container, pass the nodes";
    case ENOMEM:
      return "raise the limit of locked memory: `ulimit -l unlimited`, LimitMEMLOCK=infinity in a unit, "
             "--ulimit memlock=-1 for a container";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files: `ulimit -n`";
    default:
      return "the kernel's log (dmesg) often says more";
  }
}

Status open_failed(const std::string& name, std::string_view call, int error) {
  return base::errno_status(base::format("{} of RDMA device {}", call, name), error)
      .with_device(name)
      .with_advice(open_advice(error));
}

}  // namespace

Result<std::shared_ptr<Domain>> Domain::open(std::shared_ptr<Verbs> verbs, std::string_view name) {
  DeviceList list(*verbs);
  if (list.error() != 0) return no_list(list.error());
  for (ibv_device* device : list.devices()) {
    if (name != device->name) continue;
    // A copy: the list needs the library until it has been given back.
    std::shared_ptr<Domain> domain(new Domain(verbs, name));
    HAWSER_TRY(domain->open_device(device));
    return domain;
  }
  return no_device(name, list.devices());
}

Status Domain::open_device(ibv_device* device) {
  errno = 0;
  context_ = verbs_->open_device(device);
  if (context_ == nullptr) return open_failed(name_, "opening", errno != 0 ? errno : EIO);
  if (const int error = verbs_->query_device(context_, &attributes_); error != 0) {
    return open_failed(name_, "asking for the abilities", error);
  }
  errno = 0;
  pd_ = verbs_->alloc_pd(context_);
  if (pd_ == nullptr) return open_failed(name_, "making a protection domain", errno != 0 ? errno : EIO);
  return {};
}

void Domain::keep(std::function<int()> destroy, int error, Opened opened) {
  const base::MutexLock lock(mutex_);
  if (opened.size == 0 && idle_kept_ == kKeptMax) return;
  idle_kept_ += opened.size == 0;
  kept_.push_back({.destroy = std::move(destroy), .error = error, .opened = opened});
  has_kept_.store(true, std::memory_order_release);
}

void Domain::sweep() {
  if (!has_kept_.load(std::memory_order_acquire)) return;
  const base::MutexLock lock(mutex_);
  std::erase_if(kept_, [this](Kept& each) { return has_ended(each.error = each.destroy()); });
  idle_kept_ = static_cast<std::size_t>(
      std::count_if(kept_.begin(), kept_.end(), [](const Kept& each) { return each.opened.size == 0; }));
  has_kept_.store(!kept_.empty(), std::memory_order_release);
}

Status Domain::still_open(std::uintptr_t address, std::size_t size) {
  if (!has_kept_.load(std::memory_order_acquire)) return {};
  const base::MutexLock lock(mutex_);
  for (const Kept& each : kept_) {
    const bool apart = address >= each.opened.address ? address - each.opened.address >= each.opened.size
                                                      : each.opened.address - address >= size;
    if (apart) continue;
    return base::errno_status(base::format("{} refuses to let memory go", name_), each.error).with_device(name_);
  }
  return {};
}

Domain::~Domain() {
  // What was made in the domain held it, so but for what refused to end it is empty.
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) sweep();
  const auto end_at_last = [this](auto destroy) {
    for (int i = 0; i < kTries && !has_ended(destroy()); ++i) {
    }
  };
  if (pd_ != nullptr) end_at_last([this] { return verbs_->dealloc_pd(pd_); });
  if (context_ != nullptr) end_at_last([this] { return verbs_->close_device(context_); });
}

}  // namespace hawser::backend::verbs
