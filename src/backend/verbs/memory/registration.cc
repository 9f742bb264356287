#include "backend/verbs/memory/registration.h"

#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "backend/verbs/memory/registration_pages.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/quantity.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

std::string locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : base::format_size(limit.rlim_cur);
}

std::string advice_for(int error) {
  switch (error) {
    case ENOMEM:
      return base::format(
          "raise the limit of locked memory, now {}: `ulimit -l unlimited`, memlock in /etc/security/limits.conf, "
          "LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 for a container; or register less",
          locked_memory_limit());
    case EFAULT:
      return "the whole range must be mapped, and writable unless peers only read it";
    case EOPNOTSUPP:
    case ENOSYS:
      return "this device or kernel cannot register such memory; give it memory of the host";
    case EACCES:
    case EPERM:
      return "the device refuses these rights; some mappings (of devices, of files) cannot be registered";
    default:
      return "the kernel's log (dmesg) often says more";
  }
}

/// As verbs' reg_mr, with the errno: null and why not.
ibv_mr* try_register(const Domain& domain, const void* address, std::size_t size, int flags, int* error) {
  errno = 0;
  ibv_mr* mr = domain.verbs().reg_mr(domain.pd(), const_cast<void*>(address), size, flags);
  *error = mr == nullptr ? (errno != 0 ? errno : EIO) : 0;
  return mr;
}

}  // namespace

std::string_view to_string(RegistrationKind kind) {
  switch (kind) {
    case RegistrationKind::kHost:
      return "host";
    case RegistrationKind::kDmabuf:
      return "dmabuf";
    case RegistrationKind::kPeerMemory:
      return "peer memory";
    case RegistrationKind::kIndirect:
      return "indirect";
  }
  return "unknown";
}

Registration::Registration(std::shared_ptr<Domain> domain, ibv_mr* mr, const Range& range, RegistrationKind kind,
                           int flags)
    : domain_(std::move(domain)),
      mr_(mr),
      lkey_(mr->lkey),
      rkey_(mr->rkey),
      range_(range),
      kind_(kind),
      flags_(flags) {}

Registration::Registration(std::shared_ptr<Domain> domain, std::unique_ptr<BoundKey> key, const Range& range, int flags)
    : domain_(std::move(domain)),
      mr_(nullptr),
      key_(std::move(key)),
      lkey_(key_->lkey()),
      rkey_(key_->rkey()),
      range_(range),
      kind_(RegistrationKind::kIndirect),
      flags_(flags) {}

Registration::~Registration() {
  if (mr_ == nullptr) return;
  domain_->end([verbs = &domain_->verbs(), mr = mr_] { return verbs->dereg_mr(mr); }, {range_.address, range_.size});
}

Rights Registration::rights() const {
  const Rights read = (flags_ & IBV_ACCESS_REMOTE_READ) != 0 ? Rights::kRead : Rights::kNone;
  const Rights write = (flags_ & IBV_ACCESS_REMOTE_WRITE) != 0 ? Rights::kWrite : Rights::kNone;
  return read | write;
}

bool Registration::grants(const Access& access) const {
  // Exactly the rights: more than asked for would let a peer do what its owner forbade.
  if (rights() != access.rights) return false;
  return ((flags_ & IBV_ACCESS_RELAXED_ORDERING) != 0) == access.relaxed_ordering;
}

int access_flags(const Access& access) {
  int flags = IBV_ACCESS_LOCAL_WRITE;
  if (allows(access.rights, Rights::kRead)) flags |= IBV_ACCESS_REMOTE_READ;
  if (allows(access.rights, Rights::kWrite)) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (access.relaxed_ordering) flags |= IBV_ACCESS_RELAXED_ORDERING;
  return flags;
}

Status check_range(const Domain& domain, std::uintptr_t address, std::size_t size) {
  if (size == 0) return Status(Code::kInvalid, "no bytes to register").with_device(domain.name());
  if (address == 0 || address + size < address) {
    return Status(Code::kInvalid, base::format("no memory is at {:#x} + {} B", address, size))
        .with_device(domain.name());
  }
  const std::uint64_t max = domain.attributes().max_mr_size;
  if (max == 0 || size <= max) return {};
  return Status(Code::kUnsupported, base::format("{} registers at most {} at once, not {}", domain.name(),
                                                 base::format_size(max), base::format_size(size)))
      .with_device(domain.name())
      .with_advice("register it in parts");
}

Status registration_failed(const Domain& domain, std::uintptr_t address, std::size_t size, std::string_view what,
                           int error) {
  const std::string text =
      base::format("registering {} of {} at {:#x} with {}", base::format_size(size), what, address, domain.name());
  return base::errno_status(text, error).with_device(domain.name()).with_advice(advice_for(error));
}

Result<std::shared_ptr<Registration>> register_host(const std::shared_ptr<Domain>& domain, const void* address,
                                                    std::size_t size, const Access& access, unsigned threads) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  HAWSER_TRY(check_range(*domain, start, size));
  touch_pages(start, size, threads);
  int flags = access_flags(access);
  int error = 0;
  ibv_mr* mr = try_register(*domain, address, size, flags, &error);
  if (mr == nullptr && (error == EFAULT || error == EACCES) && !allows(access.rights, Rights::kWrite)) {
    // Perhaps it is mapped read-only, which is all that its readers need.
    flags &= ~IBV_ACCESS_LOCAL_WRITE;
    int second = 0;
    mr = try_register(*domain, address, size, flags, &second);
  }
  if (mr == nullptr) return registration_failed(*domain, start, size, "host memory", error);
  return std::make_shared<Registration>(domain, mr, Registration::Range{start, size, start}, RegistrationKind::kHost,
                                        flags);
}

}  // namespace hawser::backend::verbs
