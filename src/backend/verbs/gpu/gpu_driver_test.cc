#include "backend/verbs/gpu/gpu_driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "backend/verbs/gpu/gpu_driver_cuda.h"

namespace hawser::backend::verbs {
namespace {

/// What the functions of a CUDA driver would answer. Plain functions, so its state is static.
struct Driver {
  CudaResult pointer_result = kCudaSuccess;
  unsigned type = kMemoryTypeDevice;
  unsigned managed = 0;
  CudaContext pointer_context = nullptr;
  bool needs_context = false;
  int contexts_pushed = 0;
  int pushed_ever = 0;
  int primaries_held = 0;
  int primary_active = 1;
  CudaResult handle_result = kCudaSuccess;
  CudaResult init_result = kCudaSuccess;
  std::map<int, int> attributes = {
      {kDevicePciDomain, 1}, {kDevicePciBus, 0x3b}, {kDevicePciDevice, 2}, {kDeviceDmabuf, 1}};
} driver;

CudaResult init(unsigned) { return driver.init_result; }
CudaResult device_count(int* count) { return *count = 2, kCudaSuccess; }
CudaResult device_get(CudaDevice* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < 2 ? kCudaSuccess : kCudaInvalidDevice;
}
CudaResult device_attribute(int* value, int attribute, CudaDevice) {
  if (!driver.attributes.contains(attribute)) return kCudaInvalidValue;
  *value = driver.attributes[attribute];
  return kCudaSuccess;
}
CudaResult pointer_attributes(unsigned count, int* attributes, void** values, CudaAddress) {
  if (driver.pointer_result != kCudaSuccess) return driver.pointer_result;
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case kPointerMemoryType:
        *static_cast<unsigned*>(values[i]) = driver.type;
        break;
      case kPointerBufferId:
        *static_cast<unsigned long long*>(values[i]) = 42;
        break;
      case kPointerIsManaged:
        *static_cast<unsigned char*>(values[i]) = static_cast<unsigned char>(driver.managed);
        break;
      case kPointerOrdinal:
        *static_cast<int*>(values[i]) = 1;
        break;
      case kPointerContext:
        *static_cast<CudaContext*>(values[i]) = driver.pointer_context;
        break;
      default:
        return kCudaInvalidValue;
    }
  }
  return kCudaSuccess;
}
CudaResult set_pointer_attribute(const void*, int, CudaAddress) { return kCudaSuccess; }
CudaResult address_range(CudaAddress* base, std::size_t* size, CudaAddress address) {
  if (driver.needs_context && driver.contexts_pushed == 0) return kCudaInvalidContext;
  *base = address & ~0xfffull;
  *size = 0x2000;
  return kCudaSuccess;
}
CudaResult push_context(CudaContext) { return ++driver.contexts_pushed, ++driver.pushed_ever, kCudaSuccess; }
CudaResult pop_context(CudaContext*) { return --driver.contexts_pushed, kCudaSuccess; }
CudaResult primary_state(CudaDevice, unsigned*, int* active) { return *active = driver.primary_active, kCudaSuccess; }
CudaResult primary_retain(CudaContext*, CudaDevice) { return ++driver.primaries_held, kCudaSuccess; }
CudaResult primary_release(CudaDevice) { return --driver.primaries_held, kCudaSuccess; }
CudaResult range_handle(void* handle, CudaAddress, std::size_t, int type, unsigned long long) {
  if (driver.needs_context && driver.contexts_pushed == 0) return kCudaInvalidContext;
  if (driver.handle_result != kCudaSuccess || type != kHandleDmabuf) return driver.handle_result;
  *static_cast<int*>(handle) = ::memfd_create("dmabuf", 0);
  return kCudaSuccess;
}
CudaResult error_name(CudaResult, const char** name) { return *name = "CUDA_ERROR_OF_A_TEST", kCudaSuccess; }

CudaTable whole_table() {
  return {.init = init,
          .device_count = device_count,
          .device_get = device_get,
          .device_attribute = device_attribute,
          .pointer_attributes = pointer_attributes,
          .set_pointer_attribute = set_pointer_attribute,
          .address_range = address_range,
          .push_context = push_context,
          .pop_context = pop_context,
          .primary_state = primary_state,
          .primary_retain = primary_retain,
          .primary_release = primary_release,
          .range_handle = range_handle,
          .error_name = error_name};
}

class CudaDriverTest : public testing::Test {
 protected:
  CudaDriverTest() { driver = {}; }
  ~CudaDriverTest() override {
    EXPECT_EQ(driver.contexts_pushed, 0);
    EXPECT_EQ(driver.primaries_held, 0);
  }
  MemoryKind kind() { return cuda_.pointer(0x7000).value().kind; }
  CudaDriver cuda_{whole_table(), std::nullopt};
};

TEST_F(CudaDriverTest, TellsWhatAPointerPointsTo) {
  const GpuPointer pointer = cuda_.pointer(0x7000).value();
  EXPECT_EQ(pointer.kind, MemoryKind::kGpu);
  EXPECT_EQ(pointer.ordinal, 1);
  EXPECT_EQ(pointer.buffer_id, 42u);
  driver.type = kMemoryTypeHost;
  EXPECT_EQ(kind(), MemoryKind::kPinnedHost);
  driver.type = 0;
  EXPECT_EQ(kind(), MemoryKind::kHost);
  driver.type = kMemoryTypeDevice;
  driver.managed = 1;
  EXPECT_EQ(kind(), MemoryKind::kManaged);
}

TEST_F(CudaDriverTest, APointerThatItDoesNotKnowIsTheHosts) {
  for (const CudaResult result :
       {kCudaInvalidValue, kCudaNotInitialized, kCudaDeinitialized, kCudaNoDevice, kCudaInvalidContext}) {
    driver.pointer_result = result;
    EXPECT_EQ(kind(), MemoryKind::kHost) << result;
  }
  driver.pointer_result = 999;
  EXPECT_EQ(cuda_.pointer(0x7000).error().message(), "cuPointerGetAttributes of 0x7000: CUDA_ERROR_OF_A_TEST (999)");
}

TEST_F(CudaDriverTest, SpellsPciAddressesAsSysfsDoes) {
  EXPECT_EQ(cuda_.pci_address(0).value(), "0001:3b:02.0");
  EXPECT_EQ(cuda_.pci_address(7).error().code(), Code::kNotFound);
  EXPECT_EQ(cuda_.device_count().value(), 2);
  driver.init_result = kCudaNoDevice;
  EXPECT_EQ(cuda_.pci_address(0).error().code(), Code::kNotFound);
}

TEST_F(CudaDriverTest, OldDriversExportNoDmabufs) {
  EXPECT_TRUE(cuda_.exports_dmabuf(0).value());
  driver.attributes[kDeviceDmabuf] = 0;
  EXPECT_FALSE(cuda_.exports_dmabuf(0).value());
  driver.attributes.erase(kDeviceDmabuf);
  EXPECT_FALSE(cuda_.exports_dmabuf(0).value());
  CudaTable old = whole_table();
  old.range_handle = nullptr;
  CudaDriver older(old, std::nullopt);
  EXPECT_FALSE(older.exports_dmabuf(0).value());
  EXPECT_EQ(older.export_dmabuf({0x1000, 0x2000}).error().code(), Code::kUnsupported);
}

TEST_F(CudaDriverTest, BorrowsTheContextThatMemoryBelongsTo) {
  int some_context = 0;
  driver.needs_context = true;
  driver.pointer_context = &some_context;
  EXPECT_EQ(cuda_.allocation(0x7123).value(), (AddressRange{0x7000, 0x9000}));
  EXPECT_TRUE(cuda_.export_dmabuf({0x1000, 0x2000}).value().valid());
  EXPECT_EQ(driver.pushed_ever, 2);
}

TEST_F(CudaDriverTest, MappedMemoryTakesThePrimaryContextIfThereIsOne) {
  driver.needs_context = true;
  EXPECT_TRUE(cuda_.allocation(0x7123).has_value());
  driver.primary_active = 0;
  EXPECT_EQ(cuda_.allocation(0x7123).error().code(), Code::kInvalid) << "it would have to make one";
  EXPECT_EQ(driver.pushed_ever, 1);
}

TEST_F(CudaDriverTest, DescriptorsAreOursAloneAndFailuresExplained) {
  const base::Fd fd = cuda_.export_dmabuf({0x1000, 0x2000}).value();
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  driver.handle_result = kCudaNotSupported;
  const Status status = cuda_.export_dmabuf({0x1000, 0x2000}).error();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.advice().find("open kernel modules"), std::string_view::npos);
}

TEST(CudaDriver, RealOneAnswersForHostMemory) {
  Result<std::unique_ptr<GpuDriver>> real = open_cuda_driver();
  if (!real) {
    EXPECT_EQ(real.error().code(), Code::kUnsupported);
    EXPECT_FALSE(real.error().advice().empty());
    GTEST_SKIP() << real.error().to_string();
  }
  const int local = 0;
  EXPECT_EQ((*real)->pointer(reinterpret_cast<std::uintptr_t>(&local)).value().kind, MemoryKind::kHost);
}

}  // namespace
}  // namespace hawser::backend::verbs
