// Regions in GPU memory through ports, on the mock fabric and a fake driver: bytes move by dmabufs, by peer memory and
// by the keys of segments. No GPU was at hand: what a real one does is not shown here.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>

#include "backend/verbs/devices/device_test_tree.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::size_t kAllocation = 64 * 1024;
constexpr std::size_t kGpuBytes = 8 * kAllocation;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Indirect keys of the mock fabric.
class MockMlx5 final : public Mlx5 {
 public:
  explicit MockMlx5(MockFabric& fabric) : fabric_(fabric), verbs_(fabric) {}
  int bound = 0;

  bool supports(ibv_device*) override { return true; }
  ibv_qp* create_qp(ibv_pd* pd, const ibv_qp_init_attr& attr) override {
    ibv_qp_init_attr copy = attr;
    return verbs_.create_qp(pd, &copy);
  }
  mlx5dv_mkey* create_mkey(ibv_pd*, std::uint16_t) override {
    const std::uint32_t key = fabric_.make_list_key();
    return key == 0 ? nullptr : new mlx5dv_mkey{.lkey = key, .rkey = key};
  }
  int destroy_mkey(mlx5dv_mkey* key) override {
    fabric_.end_list_key(key->lkey);
    delete key;
    return 0;
  }
  int post_list(ibv_qp* qp, mlx5dv_mkey* key, std::uint32_t access, std::span<ibv_sge> list,
                std::uint64_t wr_id) override {
    ++bound;
    return fabric_.bind_list(qp, key->lkey, static_cast<int>(access), list, wr_id);
  }

 private:
  MockFabric& fabric_;
  MockVerbs verbs_;
};

/// Memory that stands for a GPU's.
struct GpuBytes {
  GpuBytes() : data(static_cast<std::byte*>(std::aligned_alloc(4096, kGpuBytes))) {
    std::fill_n(data, kGpuBytes, std::byte{0xdd});
  }
  ~GpuBytes() { std::free(data); }
  GpuBytes(const GpuBytes&) = delete;
  GpuBytes& operator=(const GpuBytes&) = delete;
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data); }
  std::byte* data;
};

class GpuPair : public VerbsPair {
 protected:
  GpuPair() {
    a_gpus.driver = std::make_shared<GpuFake>();
    b_gpus.driver = std::make_shared<GpuFake>();
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint64_t id = i + 1;
      a_gpus.driver->allocations[a_gpu.address() + i * kAllocation] = {.size = kAllocation, .buffer_id = id};
      b_gpus.driver->allocations[b_gpu.address() + i * kAllocation] = {.size = kAllocation, .buffer_id = id};
    }
    fabric.is_gpu_memory = [this](std::uintptr_t at) {
      return at - a_gpu.address() < kGpuBytes || at - b_gpu.address() < kGpuBytes;
    };
  }
  struct Added {
    std::shared_ptr<const RegionEntry> entry;
    Result<std::string> extra = Status(Code::kFailed, "not added");
  };
  Added add(Side& side, std::byte* base, std::size_t size, Device device = {DeviceKind::kCuda, 0},
            Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = base;
    entry.size = size;
    entry.rights = rights;
    entry.device = device;
    Added made;
    made.entry = *side.table.add(std::move(entry));
    made.extra = side.regions->add(*made.entry);
    return made;
  }
  void remove(Side& side, const Added& made) { side.regions->remove(made.entry->index, made.entry->generation); }
  Binding* bound(const Added& made) { return bind(*made.entry, *made.extra); }
  /// Writes `size` bytes of `from` to `offset` of the region behind `binding`, and waits.
  Status move(Operation op, std::byte* local, std::uint64_t offset, std::uint64_t size) {
    const Piece pieces[] = {{local, offset, size}};
    const std::uint64_t cookie = ++cookies;
    EXPECT_EQ(submit(op, pieces, cookie).taken, 1u);
    EXPECT_TRUE(run([&] { return is_done(cookie); }));
    return outcome(cookie);
  }
  static void count_up(std::byte* data, std::size_t size, std::uint8_t first) {
    std::iota(reinterpret_cast<std::uint8_t*>(data), reinterpret_cast<std::uint8_t*>(data) + size, first);
  }

  GpuBytes a_gpu, b_gpu;
  std::uint64_t cookies = 0;
};

TEST_F(GpuPair, C1GpuMemoryIsWrittenAndReadFromGpuAndFromHost) {
  start();
  connect();
  const Added ours = add(*a, a_gpu.data, kAllocation), theirs = add(*b, b_gpu.data + 4096, kAllocation - 4096);
  ASSERT_TRUE(ours.extra.has_value()) << ours.extra.error().to_string();
  ASSERT_TRUE(theirs.extra.has_value()) << theirs.extra.error().to_string();
  EXPECT_EQ(fabric.dmabufs_registered, 2);
  count_up(a_gpu.data, kAllocation, 3);
  binding = bound(theirs);
  for (const std::uint64_t size : {1u, 33u, 4096u, 50'000u}) {
    std::fill_n(b_gpu.data, kAllocation, std::byte{0xdd});
    ASSERT_TRUE(move(Operation::kWrite, a_gpu.data + 7, 100, size).ok()) << outcome(cookies).to_string();
    EXPECT_TRUE(std::equal(a_gpu.data + 7, a_gpu.data + 7 + size, b_gpu.data + 4096 + 100));
    EXPECT_EQ(b_gpu.data[4096 + 100 + size], std::byte{0xdd});
    EXPECT_EQ(b_gpu.data[4096 + 99], std::byte{0xdd});
  }
  EXPECT_EQ(fabric.gpu_bytes_inlined, 0u) << "the CPU must not read them";
  ASSERT_TRUE(move(Operation::kWrite, a->memory.data(), 0, 32).ok());  // From the host, small enough to be inlined.
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 32, b_gpu.data + 4096));
  ASSERT_TRUE(move(Operation::kRead, a->memory.data() + 9000, 0, 50'000).ok());
  EXPECT_TRUE(std::equal(b_gpu.data + 4096, b_gpu.data + 4096 + 50'000, a->memory.begin() + 9000));
  ASSERT_TRUE(move(Operation::kRead, a_gpu.data, 1000, 2000).ok());
  EXPECT_TRUE(std::equal(a_gpu.data, a_gpu.data + 2000, b_gpu.data + 4096 + 1000));
}

TEST_F(GpuPair, C15_RegionsInOneAllocationShareItsRegistrationAndTheLastEndsIt) {
  start();
  const std::size_t descriptors = open_descriptors();
  const int before = fabric.counts.mrs;
  const Added first = add(*a, a_gpu.data + 1, 100), second = add(*a, a_gpu.data + 30'000, 5000);
  const Added read_only = add(*a, a_gpu.data, 4096, {DeviceKind::kCuda, 0}, Rights::kRead);
  ASSERT_TRUE(first.extra.has_value() && second.extra.has_value() && read_only.extra.has_value());
  EXPECT_EQ(a->gpus.driver->exported.size(), 2u) << "other rights need another key";
  EXPECT_EQ(a->gpus.driver->exported[0], (AddressRange{a_gpu.address(), a_gpu.address() + kAllocation}));
  EXPECT_EQ(fabric.counts.mrs, before + 2);
  EXPECT_EQ(open_descriptors(), descriptors) << "descriptors are closed at once";
  remove(*a, first);
  remove(*a, first);
  remove(*a, read_only);
  EXPECT_EQ(fabric.counts.mrs, before + 1);
  remove(*a, second);
  EXPECT_EQ(fabric.counts.mrs, before);
  EXPECT_EQ(a->regions->gpu(0).count(), 0u);
}

// Each allocation has a key for every choice of rights, and a chunk goes by any of them.
TEST_F(GpuPair, ARegionWaitsForWhatGoesByItsKeyFromAnotherOfItsAllocation) {
  start();
  connect();
  const Added ours = add(*a, a_gpu.data, 4096);
  const Added other = add(*a, a_gpu.data + 8192, 4096, {DeviceKind::kCuda, 0}, Rights::kRead);
  const Added elsewhere = add(*a, a_gpu.data + kAllocation, 4096);
  fabric.hold = true;
  const Piece piece[] = {{a_gpu.data, 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  std::string holder;
  const auto is_quiet = [&](const Added& added) {
    return a->port->region_quiet(added.entry->index, added.entry->generation, &holder);
  };
  EXPECT_TRUE(is_quiet(elsewhere)) << holder;
  EXPECT_FALSE(a->regions->retire(other.entry->index, other.entry->generation)) << "that knows of no chunks";
  EXPECT_FALSE(is_quiet(other));
  EXPECT_NE(holder.find("other regions of the same memory"), std::string::npos) << holder;
  ASSERT_EQ(submit(Operation::kWrite, piece, 2).taken, 1u);
  fabric.deliver(1);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_TRUE(is_quiet(other)) << "what was posted since goes by another key: " << holder;
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
  remove(*a, ours);
  remove(*a, other);
}

TEST_F(GpuPair, C15_DescriptorsAndRegistrationsStayConstant) {
  start();
  const std::size_t descriptors = open_descriptors();
  const int before = fabric.counts.mrs;
  for (int i = 0; i < 10'000; ++i) {
    const Added made = add(*a, a_gpu.data + i % 5000, 100);
    ASSERT_TRUE(made.extra.has_value());
    remove(*a, made);
    a->table.close(made.entry->index, made.entry->generation);
    a->table.remove(made.entry->index, made.entry->generation);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(fabric.counts.mrs, before);
}

TEST_F(GpuPair, MemoryThatWasAllocatedAnewIsRegisteredAnew) {
  start();
  const Added old = add(*a, a_gpu.data, 4096);
  a->gpus.driver->allocations[a_gpu.address()].buffer_id = 99;
  const Added fresh = add(*a, a_gpu.data, 4096);
  ASSERT_TRUE(fresh.extra.has_value());
  EXPECT_EQ(a->gpus.driver->exported.size(), 2u) << "the old key is of pages that are gone";
  EXPECT_NE(*old.extra, *fresh.extra);
}

TEST_F(GpuPair, C15_ARangeOverSeveralAllocationsIsExportedAtOnce) {
  start();
  connect();
  const Added theirs = add(*b, b_gpu.data + kAllocation - 5000, 2 * kAllocation);
  ASSERT_TRUE(theirs.extra.has_value()) << theirs.extra.error().to_string();
  EXPECT_EQ(b->gpus.driver->exported,
            (std::vector<AddressRange>{{b_gpu.address(), b_gpu.address() + 3 * kAllocation}}));
  binding = bound(theirs);
  ASSERT_TRUE(move(Operation::kWrite, a->memory.data(), 0, 2 * kAllocation).ok());
  EXPECT_TRUE(std::equal(b_gpu.data + kAllocation - 5000, b_gpu.data + 3 * kAllocation - 5000, a->memory.begin()));
  fabric.fail("reg_dmabuf_mr", EINVAL);
  const Status refused = add(*b, b_gpu.data + 5 * kAllocation - 10, 20).extra.error();
  EXPECT_NE(refused.to_string().find("several allocations"), std::string::npos) << refused.to_string();
  EXPECT_NE(refused.advice().find("AgentOptions::segments"), std::string_view::npos);
}

TEST_F(GpuPair, TheDeviceThatARegionNamesMustBeItsMemorys) {
  start();
  const Status gpu = add(*a, a_gpu.data, 4096, {}).extra.error();
  EXPECT_EQ(gpu.code(), Code::kInvalid);
  EXPECT_NE(gpu.to_string().find("memory of cuda:0, not of the host"), std::string::npos) << gpu.to_string();
  EXPECT_EQ(add(*a, a_gpu.data, 4096, {DeviceKind::kCuda, 1}).extra.error().code(), Code::kInvalid);
  EXPECT_EQ(add(*a, a->memory.data(), 4096, {DeviceKind::kCuda, 0}).extra.error().code(), Code::kInvalid);
  EXPECT_EQ(add(*a, a->memory.data(), 4096, {DeviceKind::kBlock, 0}).extra.error().code(), Code::kUnsupported);
  a->gpus.driver->allocations[a_gpu.address()].kind = MemoryKind::kManaged;
  EXPECT_EQ(add(*a, a_gpu.data, 4096).extra.error().code(), Code::kUnsupported);
  const auto host = reinterpret_cast<std::uintptr_t>(a->memory.data());
  a->gpus.driver->allocations[host] = {.size = kMemory, .buffer_id = 50, .kind = MemoryKind::kPinnedHost};
  const Added pinned = add(*a, a->memory.data(), 4096, {});
  EXPECT_TRUE(pinned.extra.has_value()) << "what CUDA pinned is host memory";
  EXPECT_TRUE(a->gpus.driver->exported.empty());
}

TEST_F(GpuPair, ADriverInTroubleIsNothingToHostMemory) {
  start();
  a->gpus.driver->fails = [] { return true; };
  EXPECT_TRUE(add(*a, a->memory.data(), 4096, {}).extra.has_value());
  EXPECT_EQ(add(*a, a_gpu.data, 4096).extra.error().code(), Code::kFailed);
}

TEST_F(GpuPair, WithoutDmabufsItGoesByPeerMemory) {
  const SysfsTree sysfs;
  sysfs.put("module/nvidia_peermem/refcnt", "0");
  a_gpus.sysfs_root = b_gpus.sysfs_root = sysfs.root();
  fabric.dmabufs = false;
  fabric.peer_memory = true;
  options.gpu_direct = GpuDirect::kRequire;
  start();
  connect();
  const Added theirs = add(*b, b_gpu.data, kAllocation);
  ASSERT_TRUE(theirs.extra.has_value()) << theirs.extra.error().to_string();
  binding = bound(theirs);
  ASSERT_TRUE(move(Operation::kWrite, a->memory.data(), 0, 1000).ok());
  EXPECT_TRUE(std::equal(b_gpu.data, b_gpu.data + 1000, a->memory.begin()));
  EXPECT_NE(to_b->describe().find("GPU memory by peer memory (mock0 registers no dmabufs)"), std::string::npos)
      << to_b->describe();
}

TEST_F(GpuPair, OptionOffRefusesGpuMemoryAndSaysSo) {
  options.gpu_direct = GpuDirect::kOff;
  start();
  connect();
  const Status refused = add(*a, a_gpu.data, 4096).extra.error();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_NE(refused.to_string().find("gpu_direct is off"), std::string::npos) << refused.to_string();
  EXPECT_NE(refused.advice().find("gpu_direct = auto"), std::string_view::npos);
  EXPECT_NE(to_b->describe().find("no GPU memory (gpu_direct is off)"), std::string::npos) << to_b->describe();
}

TEST_F(GpuPair, OptionAutoTellsWhatIsMissing) {
  a_gpus.driver = nullptr;
  fabric.dmabufs = false;
  start();
  connect();
  const Status no_driver = add(*a, a_gpu.data, 4096).extra.error();
  EXPECT_NE(no_driver.to_string().find("there is no CUDA driver"), std::string::npos) << no_driver.to_string();
  EXPECT_NE(to_b->describe().find("no GPU memory (there is no CUDA driver)"), std::string::npos) << to_b->describe();
  const Status no_dmabufs = add(*b, b_gpu.data, 4096).extra.error();
  EXPECT_NE(no_dmabufs.to_string().find("mock1 registers no dmabufs"), std::string::npos) << no_dmabufs.to_string();
  EXPECT_NE(no_dmabufs.advice().find("Linux 5.12"), std::string_view::npos);
}

TEST_F(GpuPair, OptionRequireFailsToOpenWithReasonAndRemedy) {
  start();
  options.gpu_direct = GpuDirect::kRequire;
  const DeviceInfo& info = *a->infos[0];
  const LocalPort place{.device = &info, .port = &info.ports[0], .path = {}, .rank = 0};
  const Status no_driver =
      open_nic(a->verbs, place, options, {.missing = Status(Code::kUnsupported, "no such file")}).error();
  EXPECT_EQ(no_driver.code(), Code::kUnsupported);
  EXPECT_NE(no_driver.to_string().find("gpu_direct = require"), std::string::npos) << no_driver.to_string();
  EXPECT_NE(no_driver.to_string().find("no such file"), std::string::npos) << no_driver.to_string();
  EXPECT_NE(no_driver.advice().find("gpu_direct = auto"), std::string_view::npos);
  a->gpus.driver->dmabufs = false;
  const GpuAccess gpus{.driver = a->gpus.driver, .sysfs_root = "/nowhere"};
  const Status no_export = open_nic(a->verbs, place, options, gpus).error();
  EXPECT_NE(no_export.to_string().find("cuda:0 exports no dmabufs"), std::string::npos) << no_export.to_string();
  a->gpus.driver->dmabufs = true;
  EXPECT_TRUE(open_nic(a->verbs, place, options, gpus).has_value());
}

TEST_F(GpuPair, AFailureOnOneDeviceLeavesNothingOnTheOthers) {
  start({"mock0", "mock2"}, {"mock1"});
  const int before = fabric.counts.mrs;
  for (const char* call : {"reg_dmabuf_mr", "reg_mr"}) {
    for (int nth = 1; nth <= 2; ++nth) {
      fabric.fail(call, ENOMEM, nth);
      const bool on_gpu = std::string_view(call) == "reg_dmabuf_mr";
      const Added made = on_gpu ? add(*a, a_gpu.data, 4096) : add(*a, a->memory.data(), 4096, {});
      ASSERT_FALSE(made.extra.has_value()) << call << nth;
      EXPECT_EQ(made.extra.error().code(), Code::kBusy);
      EXPECT_EQ(fabric.counts.mrs, before) << call << nth;
      EXPECT_EQ(a->regions->count(), 0u);
    }
  }
  EXPECT_TRUE(add(*a, a_gpu.data, 4096).extra.has_value());
}

TEST_F(GpuPair, TheNearestDeviceSendsWhatIsOnAGpu) {
  const SysfsTree sysfs;
  // GpuFake's GPU n is at 0000:0n:00.0: GPU 1 is beside mock2, GPU 2 beside mock0.
  for (const char* way : {"pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00/0000:00:01.0/0000:11:00.0"})
    sysfs.pci(way, 0);
  for (const char* way : {"pci0000:80/0000:80:01.0/0000:02:00.0", "pci0000:80/0000:80:01.0/0000:82:00.0"})
    sysfs.pci(way, 1);
  a_gpus.sysfs_root = sysfs.root();
  a_gpus.places = {{"mock2", *find_pci_place(sysfs.root(), {.bus = 0x11})},
                   {"mock0", *find_pci_place(sysfs.root(), {.bus = 0x82})}};
  for (std::size_t i = 0; i < 8; ++i) {
    a_gpus.driver->allocations[a_gpu.address() + i * kAllocation].ordinal = i < 4 ? 1 : 2;
  }
  start({"mock0", "mock2"}, {"mock1", "mock3"});
  connect();
  const Added near_mock2 = add(*a, a_gpu.data, kAllocation, {DeviceKind::kCuda, 1});
  const Added near_mock0 = add(*a, a_gpu.data + 4 * kAllocation, kAllocation, {DeviceKind::kCuda, 2});
  ASSERT_TRUE(near_mock2.extra.has_value() && near_mock0.extra.has_value());
  fabric.hold = true;
  for (const auto& [local, device, other] :
       {std::tuple{a_gpu.data, "mock2", "mock0"}, std::tuple{a_gpu.data + 4 * kAllocation, "mock0", "mock2"}}) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Piece pieces[] = {{local + i * 8192, i * 8192, 8192}};
      ASSERT_EQ(submit(Operation::kWrite, pieces, ++cookies).taken, 1u);
    }
    for (const std::uint32_t number : fabric.qp_numbers()) {
      const std::string at = fabric.device_of(number);
      if (at != device && at != other) continue;
      EXPECT_EQ(fabric.under_way(number), at == device ? 4 : 0) << device;
    }
    fabric.deliver();
    ASSERT_TRUE(run([&] { return is_done(cookies); }));
  }
  fabric.hold = false;
  fabric.deliver();
}

class SegmentedGpuPair : public GpuPair {
 protected:
  SegmentedGpuPair() : mlx5(std::make_shared<MockMlx5>(fabric)) {
    b_gpus.mlx5 = mlx5;
    b_gpus.segments = [this]() -> Result<std::vector<MemorySegment>> {
      ++asked;
      return told;
    };
    tell(2);
  }
  /// The first `count` allocations are one segment; a segment of another GPU is told, too.
  void tell(std::size_t count) {
    told = {{.bytes = {b_gpu.data, count * kAllocation}, .device = {DeviceKind::kCuda, 0}},
            {.bytes = {b_gpu.data + 7 * kAllocation, kAllocation}, .device = {DeviceKind::kCuda, 5}}};
  }
  std::shared_ptr<MockMlx5> mlx5;
  std::vector<MemorySegment> told;
  int asked = 0;
};

TEST_F(SegmentedGpuPair, C16_RegionsInASegmentShareItsKeyAndGrowthKeepsTheOldOne) {
  start();
  connect();
  const Added small = add(*b, b_gpu.data + 100, 1000), across = add(*b, b_gpu.data + kAllocation - 500, 1000);
  ASSERT_TRUE(small.extra.has_value() && across.extra.has_value());
  EXPECT_EQ(asked, 1) << "once for a miss";
  EXPECT_EQ(b->gpus.driver->exported.size(), 1u) << "the whole segment by one dmabuf";
  EXPECT_EQ(b->regions->gpu(0).segments().segments, 1u) << "other GPUs' segments are left alone";
  tell(4);
  const Added grown = add(*b, b_gpu.data + 500, 3 * kAllocation);
  ASSERT_TRUE(grown.extra.has_value()) << grown.extra.error().to_string();
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(mlx5->bound, 1) << "two pieces under one key";
  EXPECT_EQ(b->gpus.driver->exported.size(), 2u) << "only what is new";
  count_up(a->memory.data(), kMemory, 9);
  for (const auto& [which, at, size] :
       {std::tuple{&grown, 500ul, 3 * kAllocation}, std::tuple{&across, kAllocation - 500, 1000ul},
        std::tuple{&small, 100ul, 1000ul}}) {
    binding = bound(*which);
    std::fill_n(b_gpu.data, 4 * kAllocation, std::byte{0xdd});
    ASSERT_TRUE(move(Operation::kWrite, a->memory.data(), 0, size).ok()) << outcome(cookies).to_string();
    EXPECT_TRUE(std::equal(b_gpu.data + at, b_gpu.data + at + size, a->memory.begin()));
    EXPECT_EQ(b_gpu.data[at - 1], std::byte{0xdd});
    EXPECT_EQ(b_gpu.data[at + size], std::byte{0xdd});
  }
}

TEST_F(SegmentedGpuPair, WhatIsInNoSegmentGoesByItsAllocation) {
  start();
  const Added outside = add(*b, b_gpu.data + 5 * kAllocation, 1000);
  ASSERT_TRUE(outside.extra.has_value()) << outside.extra.error().to_string();
  EXPECT_EQ(asked, 1);
  ASSERT_TRUE(add(*b, b_gpu.data + 5 * kAllocation + 5000, 1000).extra.has_value());
  EXPECT_EQ(asked, 1) << "the allocation is known by now";
  const Added read_only = add(*b, b_gpu.data, 1000, {DeviceKind::kCuda, 0}, Rights::kRead);
  ASSERT_TRUE(read_only.extra.has_value()) << "segments are registered for reading and writing: not for this";
  EXPECT_EQ(asked, 1);
}

TEST_F(SegmentedGpuPair, WhatASegmentsKeyIsNotForSharesItsAllocationsBesideIt) {
  start();
  ASSERT_TRUE(add(*b, b_gpu.data, 1000).extra.has_value());
  ASSERT_EQ(b->gpus.driver->exported.size(), 1u);
  for (int i = 0; i < 3; ++i) {  // As memory is that peers are not to reach.
    ASSERT_TRUE(add(*b, b_gpu.data + i * 500, 100, {DeviceKind::kCuda, 0}, Rights::kNone).extra.has_value());
    EXPECT_EQ(b->gpus.driver->exported.size(), 2u);
  }
  b->gpus.driver->allocations[b_gpu.address()].buffer_id = 99;
  ASSERT_TRUE(add(*b, b_gpu.data, 100, {DeviceKind::kCuda, 0}, Rights::kNone).extra.has_value());
  EXPECT_EQ(b->gpus.driver->exported.size(), 3u) << "it was allocated anew";
}

TEST_F(SegmentedGpuPair, AProviderThatFailsIsNoFailureOfTheRegion) {
  b_gpus.segments = []() -> Result<std::vector<MemorySegment>> { return Status(Code::kFailed, "no allocator"); };
  start();
  EXPECT_TRUE(add(*b, b_gpu.data, 1000).extra.has_value());
  EXPECT_EQ(b->regions->gpu(0).segments().failure.message(), "no allocator");
}

TEST_F(SegmentedGpuPair, AKeyThatCannotBeBoundLeavesTheAllocationsDmabuf) {
  start();
  ASSERT_TRUE(add(*b, b_gpu.data, 1000).extra.has_value());
  tell(4);
  fabric.fail("bind_list", EINVAL);
  const Added across = add(*b, b_gpu.data + 2 * kAllocation - 10, 20);
  ASSERT_TRUE(across.extra.has_value()) << across.extra.error().to_string();
  EXPECT_EQ(b->regions->gpu(0).segments().without_key, 1u);
  EXPECT_EQ(mlx5->bound, 1);
}

}  // namespace
}  // namespace hawser::backend::verbs
