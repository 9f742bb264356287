#include "mock_library.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/default_backends.h"
#include "backend/loopback/factory.h"
#include "backend/tcp/factory.h"
#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/mock/mock_backend.h"

namespace {

using namespace hawser;

/// Registering threads are several, and the fake is for one.
class LockedGpus final : public backend::verbs::GpuDriver {
  // First, as its type is deduced.
  template <typename Work>
  auto locked(Work&& work) {
    const std::lock_guard lock(mutex_);
    return work();
  }

 public:
  void add(std::uintptr_t base, backend::verbs::GpuFake::Allocation allocation) {
    const std::lock_guard lock(mutex_);
    fake_.allocations[base] = allocation;
    fake_.gpus = std::max(fake_.gpus, allocation.ordinal + 1);
  }
  bool holds(std::uintptr_t at) {
    const std::lock_guard lock(mutex_);
    return fake_.find(at) != nullptr;
  }
  std::vector<backend::AddressRange> exported() {
    const std::lock_guard lock(mutex_);
    return fake_.exported;
  }
  std::string describe() const override { return fake_.describe(); }
  Result<int> device_count() override {
    return locked([&] { return fake_.device_count(); });
  }
  Result<std::string> pci_address(int ordinal) override {
    return locked([&] { return fake_.pci_address(ordinal); });
  }
  Result<bool> exports_dmabuf(int ordinal) override {
    return locked([&] { return fake_.exports_dmabuf(ordinal); });
  }
  Result<backend::verbs::GpuPointer> pointer(std::uintptr_t address) override {
    return locked([&] { return fake_.pointer(address); });
  }
  Result<backend::AddressRange> allocation(std::uintptr_t address) override {
    return locked([&] { return fake_.allocation(address); });
  }
  Result<base::Fd> export_dmabuf(backend::AddressRange pages) override {
    return locked([&] { return fake_.export_dmabuf(pages); });
  }
  void synchronise_copies(std::uintptr_t address) override {
    locked([&] { fake_.synchronise_copies(address); });
  }

 private:
  std::mutex mutex_;
  backend::verbs::GpuFake fake_;
};

/// What agents have in common; it stays to the end, as they may.
struct World {
  std::shared_ptr<LockedGpus> gpus = std::make_shared<LockedGpus>();
  base::Mutex mutex;
  backend::verbs::MockFabric fabric{{"mock0", "mock1"}};
  World() {
    fabric.is_gpu_memory = [its = gpus](std::uintptr_t at) { return its->holds(at); };
  }
};

World& world() {
  static World* const one = new World;
  return *one;
}

}  // namespace

namespace hawser::agent {

std::vector<backend::Factory> default_backends() {
  backend::Factory mock =
      backend::verbs::mock_backend(world().fabric, backend::verbs::locked_verbs(world().fabric, world().mutex),
                                   {.driver = world().gpus, .missing = {}, .sysfs_root = "/none"});
  return {backend::loopback_factory(), std::move(mock), backend::tcp_factory()};
}

}  // namespace hawser::agent

void hawser_mock_gpu(void* base, uint64_t bytes, int ordinal, uint64_t id) {
  world().gpus->add(reinterpret_cast<std::uintptr_t>(base), {.size = bytes, .buffer_id = id, .ordinal = ordinal});
}

void hawser_mock_exported(uint64_t* count, uint64_t* bytes) {
  const std::vector<backend::AddressRange> all = world().gpus->exported();
  *count = all.size();
  *bytes = all.empty() ? 0 : all.back().end - all.back().begin;
}
