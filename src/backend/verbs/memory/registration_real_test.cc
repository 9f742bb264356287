// Domains, registrations and the cache on each RDMA device that this machine has: what a fake cannot tell.

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/gpu/registration_gpu.h"
#include "backend/verbs/library/libibverbs.h"
#include "backend/verbs/memory/mr_cache.h"
#include "backend/verbs/memory/registration_pages.h"

namespace hawser::backend::verbs {
namespace {

/// What the kernel has of this process, as iproute2 tells it; empty where it cannot.
std::string kernel_objects() {
  std::string text;
  FILE* pipe = ::popen("rdma resource show pd 2>/dev/null; rdma resource show mr 2>/dev/null", "r");
  if (pipe == nullptr) return text;
  const std::string ours = " pid " + std::to_string(::getpid()) + " ";
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    if (std::string_view(line).find(ours) != std::string_view::npos) text += line;
  }
  ::pclose(pipe);
  return text;
}

class Pages {
 public:
  explicit Pages(std::size_t size, int protection = PROT_READ | PROT_WRITE)
      : memory_(::mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), size_(size) {}
  ~Pages() { ::munmap(memory_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void* data() const { return memory_; }
  std::size_t size() const { return size_; }

 private:
  void* const memory_;
  const std::size_t size_;
};

/// While it lives, this thread has no right to lock memory beyond the limit, which is `bytes`.
class LockLimit {
 public:
  explicit LockLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    const rlimit limit{std::min(bytes, before_.rlim_max), before_.rlim_max};
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
    ::syscall(SYS_capget, &header_, held_.data());
    auto without = held_;
    without[0].effective &= ~(1u << CAP_IPC_LOCK);
    dropped_ = ::syscall(SYS_capset, &header_, without.data()) == 0;
  }
  ~LockLimit() {
    ::syscall(SYS_capset, &header_, held_.data());
    ::setrlimit(RLIMIT_MEMLOCK, &before_);
  }
  LockLimit(const LockLimit&) = delete;
  LockLimit& operator=(const LockLimit&) = delete;
  bool works() const { return dropped_; }

 private:
  rlimit before_{};
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> held_{};
  bool dropped_ = false;
};

class RegistrationRealTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Verbs>> library = open_libibverbs();
    if (!library) GTEST_SKIP() << library.error().to_string();
    verbs_ = *std::move(library);
    int count = 0;
    ibv_device** list = verbs_->get_device_list(&count);
    for (int i = 0; i < count; ++i) names_.emplace_back(list[i]->name);
    if (list != nullptr) verbs_->free_device_list(list);
    if (names_.empty()) GTEST_SKIP() << "this machine has no RDMA device";
    before_ = kernel_objects();
  }
  void TearDown() override {
    domains_.clear();
    EXPECT_EQ(kernel_objects(), before_) << "the kernel still has what was made here";
  }
  const std::vector<std::shared_ptr<Domain>>& domains() {
    for (const std::string& name : names_) domains_.push_back(Domain::open(verbs_, name).value());
    return domains_;
  }

  std::shared_ptr<Verbs> verbs_;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<Domain>> domains_;
  std::string before_;
};

TEST_F(RegistrationRealTest, DomainsTellWhatTheDeviceCan) {
  for (const auto& domain : domains()) {
    EXPECT_GT(domain->attributes().max_mr_size, 0u);
    EXPECT_GT(domain->attributes().max_sge, 0);
    EXPECT_GE(domain->attributes().phys_port_cnt, 1);
  }
  const Status missing = Domain::open(verbs_, "nosuch0").error();
  EXPECT_NE(missing.message().find(names_.front()), std::string_view::npos);
}

TEST_F(RegistrationRealTest, MemoryHasKeysUntilTheLastUserLetsGo) {
  const Pages pages(1 << 20);
  for (const auto& domain : domains()) {
    const std::string without = kernel_objects();
    std::shared_ptr<Registration> made = register_host(domain, pages.data(), pages.size(), Rights::kReadWrite).value();
    EXPECT_EQ(made->rights(), Rights::kReadWrite);
    EXPECT_TRUE(without.empty() || kernel_objects() != without) << "the domain is seen, so its memory must be";
    made.reset();
    EXPECT_EQ(kernel_objects(), without);
  }
}

TEST_F(RegistrationRealTest, ReadOnlyPagesServeReadersAndNobodyElse) {
  const Pages pages(1 << 16, PROT_READ);
  for (const auto& domain : domains()) {
    const auto made = register_host(domain, pages.data(), pages.size(), Rights::kRead);
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_FALSE((*made)->is_writable());
    EXPECT_FALSE(register_host(domain, pages.data(), pages.size(), Rights::kWrite));
  }
}

TEST_F(RegistrationRealTest, WhatIsNotMappedIsRefused) {
  const Pages pages(1 << 16);
  ASSERT_EQ(::munmap(static_cast<char*>(pages.data()) + 8192, 4096), 0);
  for (const auto& domain : domains()) {
    const Status status = register_host(domain, pages.data(), pages.size(), Rights::kRead).error();
    EXPECT_TRUE(status.code() == Code::kInvalid || status.code() == Code::kBusy) << status.to_string();
    EXPECT_EQ(status.device(), domain->name());
  }
}

TEST_F(RegistrationRealTest, TheLimitOfLockedMemoryIsNamed) {
  const Pages pages(4 << 20);
  const auto& domain = domains().front();
  const LockLimit limit(1 << 20);
  ASSERT_TRUE(limit.works());
  const Status status = register_host(domain, pages.data(), pages.size(), Rights::kRead).error();
  EXPECT_EQ(status.code(), Code::kBusy) << status.to_string();
  EXPECT_NE(status.advice().find("locked memory, now 1MiB"), std::string_view::npos) << status.to_string();
  HostSource source(domain);
  MrCache cache(source);
  const auto start = reinterpret_cast<std::uintptr_t>(pages.data());
  for (std::size_t i = 0; i < 16; ++i) {
    const Wanted wanted{.address = start + i * (256u << 10), .size = 256u << 10, .access = {.rights = Rights::kNone}};
    const auto held = cache.acquire(wanted);
    EXPECT_TRUE(held) << "what is idle makes room: " << held.error().to_string();
  }
  EXPECT_GT(cache.counters().evictions, 0u);
}

TEST_F(RegistrationRealTest, LargeFreshMemoryKeepsItsContents) {
  const Pages pages(kTouchBytesMin + (3 << 20));
  auto* bytes = static_cast<unsigned char*>(pages.data());
  bytes[kTouchBytesMin / 2 + 7] = 42;
  const auto& domain = domains().front();
  const auto made = register_host(domain, pages.data(), pages.size(), Rights::kReadWrite);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(bytes[kTouchBytesMin / 2 + 7], 42);
  EXPECT_TRUE(mostly_present(reinterpret_cast<std::uintptr_t>(pages.data()), pages.size()));
}

TEST_F(RegistrationRealTest, TheCacheIsBoundedOnADeviceToo) {
  const Pages pages(16 << 20);
  const auto start = reinterpret_cast<std::uintptr_t>(pages.data());
  HostSource source(domains().front());
  MrCache cache(source, {.count_max = 100});
  MrReader reader(cache);
  for (std::size_t i = 0; i < 1000; ++i) {
    const Wanted wanted{.address = start + i * 16384, .size = 16384, .access = {.rights = Rights::kNone}};
    const auto held = cache.acquire(wanted).value();
    const Keys keys = reader.find(wanted.address + 8, 100);
    EXPECT_EQ(keys.lkey, held.front()->lkey());
    EXPECT_EQ(keys.iova, wanted.address + 8);
  }
  EXPECT_EQ(cache.counters().count, 100u);
  EXPECT_EQ(cache.counters().evictions, 900u);
}

TEST_F(RegistrationRealTest, WhetherItTakesDmabufsIsFoundOutWithoutAny) {
  GpuFake gpu;
  for (const auto& domain : domains()) {
    const GpuDirectPlan plan = plan_gpu_direct(*domain, &gpu, GpuDirect::kAuto, "/nowhere").value();
    EXPECT_EQ(plan.path == GpuPath::kNone, !plan.downgrade.ok());
    if (!domain->name().starts_with("rxe")) continue;
    EXPECT_EQ(plan.path, GpuPath::kNone) << "Soft-RoCE takes none";
  }
}

}  // namespace
}  // namespace hawser::backend::verbs
