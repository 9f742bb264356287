#pragma once

// MemoryFake: Verbs for tests of domains and registrations: devices by name, objects counted, the n-th call failing.
//
// Thread rule: one thread at a time. Lifetime: a test's own; shared with the Domains it opens.

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

class MemoryFake : public Verbs {
 public:
  /// What a registration was asked for.
  struct Asked {
    std::uint64_t address = 0;  ///< Of host memory; the iova of a dmabuf.
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
    int access = 0;
    int fd = -1;
    ino_t inode = 0;
  };

  explicit MemoryFake(std::initializer_list<std::string_view> names = {"mock0"}) : devices_(names.size()) {
    std::size_t i = 0;
    for (const std::string_view name : names) name.copy(devices_[i++].name, IBV_SYSFS_NAME_MAX - 1);
    attributes.atomic_cap = IBV_ATOMIC_HCA;
    attributes.max_mr_size = ~0ull;
    attributes.max_sge = 30;
  }

  // What it does. `call` counts every call that can fail, from 1.
  int fail_call = 0;                  ///< This one fails; 0: none.
  int fail_errno = EIO;               ///< With this.
  std::string fail_device;            ///< Registrations on this device fail.
  std::size_t bytes_max = ~0ull;      ///< Registered at once; beyond: ENOMEM.
  bool refuse_device_memory = false;  ///< Plain registration of `device_memory` answers EFAULT.
  bool refuse_dmabuf = false;         ///< EOPNOTSUPP.
  std::set<std::uint64_t> read_only;  ///< Starts of ranges that may not be registered for local writes.
  std::function<bool(std::uint64_t)> is_device_memory = [](std::uint64_t) { return false; };
  ibv_device_attr attributes{};

  // What it saw.
  int call = 0;
  int contexts = 0, domains = 0, memories = 0, lists = 0;
  int registrations = 0;  ///< All that were made, ever.
  int violations = 0;     ///< Objects ended before what they hold.
  std::size_t bytes = 0;
  std::vector<Asked> asked;
  int others = 0;  ///< Objects of those who derive from it.
  int alive() const { return contexts + domains + memories + lists + others; }

  std::string describe() const override { return "fake"; }

  ibv_device** get_device_list(int* count) override {
    *count = 0;
    if (fails()) return nullptr;
    auto** list = new ibv_device*[devices_.size() + 1]();
    for (std::size_t i = 0; i < devices_.size(); ++i) list[i] = &devices_[i];
    *count = static_cast<int>(devices_.size());
    ++lists;
    return list;
  }
  void free_device_list(ibv_device** list) override {
    --lists;
    delete[] list;
  }
  ibv_context* open_device(ibv_device* device) override {
    if (fails()) return nullptr;
    ++contexts;
    auto* context = new ibv_context{};
    context->device = device;
    return context;
  }
  int close_device(ibv_context* context) override {
    if (domains_of_[context] != 0) ++violations;
    --contexts;
    delete context;
    return 0;
  }
  int query_device(ibv_context*, ibv_device_attr* out) override {
    if (fails()) return errno;
    *out = attributes;
    return 0;
  }
  ibv_pd* alloc_pd(ibv_context* context) override {
    if (fails()) return nullptr;
    ++domains;
    ++domains_of_[context];
    return new ibv_pd{.context = context, .handle = 0};
  }
  int dealloc_pd(ibv_pd* pd) override {
    if (memories_of_[pd] != 0) ++violations;
    --domains;
    --domains_of_[pd->context];
    delete pd;
    return 0;
  }
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    if (fails()) return nullptr;
    if ((access & IBV_ACCESS_LOCAL_WRITE) != 0 && read_only.contains(start)) return refuse(EFAULT);
    if (refuse_device_memory && is_device_memory(start)) return refuse(EFAULT);
    return make(pd, {.address = start, .size = size, .access = access});
  }
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova, int fd,
                        int access) override {
    if (fails()) return nullptr;
    if (refuse_dmabuf) return refuse(EOPNOTSUPP);
    struct stat file {};
    if (::fstat(fd, &file) != 0) return nullptr;
    return make(pd,
                {.address = iova, .size = size, .offset = offset, .access = access, .fd = fd, .inode = file.st_ino});
  }
  int dereg_mr(ibv_mr* mr) override {
    --memories;
    --memories_of_[mr->pd];
    bytes -= mr->length;
    delete mr;
    return 0;
  }

  /// Counts a call; true, with errno: it shall fail. Other fakes of the same test count theirs here, too.
  bool fails() {
    if (++call != fail_call) return false;
    errno = fail_errno;
    return true;
  }

 private:
  ibv_mr* refuse(int error) {
    errno = error;
    return nullptr;
  }
  ibv_mr* make(ibv_pd* pd, const Asked& what) {
    if (fail_device == pd->context->device->name) return refuse(fail_errno);
    if (what.size > bytes_max || bytes > bytes_max - what.size) return refuse(ENOMEM);
    bytes += what.size;
    ++memories;
    ++memories_of_[pd];
    asked.push_back(what);
    const auto key = static_cast<std::uint32_t>(++registrations);
    auto* mr = new ibv_mr{};
    mr->context = pd->context;
    mr->pd = pd;
    mr->length = what.size;
    mr->lkey = key;
    mr->rkey = key + (1u << 16);
    return mr;
  }

  std::vector<ibv_device> devices_;
  std::map<ibv_context*, int> domains_of_;
  std::map<ibv_pd*, int> memories_of_;
};

/// Runs `scenario` with the first, second, ... fallible call failing until nothing fails any more; each time all
/// objects must be gone afterwards (else the answer is negative). Returns how many calls it has. `scenario(fake)` tells
/// whether all went well.
template <typename Fake>
int fail_each_call(const std::function<bool(const std::shared_ptr<Fake>&)>& scenario, int error = EIO) {
  constexpr int kCallsMax = 1000;
  for (int n = 1; n < kCallsMax; ++n) {
    auto fake = std::make_shared<Fake>();
    fake->fail_call = n;
    fake->fail_errno = error;
    const bool good = scenario(fake);
    if (fake->alive() != 0 || fake->violations != 0) return -n;
    if (good && fake->call < n) return n - 1;
  }
  return 0;
}

}  // namespace hawser::backend::verbs
