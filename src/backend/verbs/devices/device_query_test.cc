#include "backend/verbs/devices/device_query.h"

#include <gtest/gtest.h>

#include <set>

#include "backend/verbs/devices/device_survey.h"
#include "backend/verbs/devices/device_test_tree.h"
#include "backend/verbs/gpu/gpu_driver_fake.h"

namespace hawser::backend::verbs {
namespace {

// Two devices, rxe0 and rxe1, with what the tests ask for.
class QueryFake final : public Verbs {
 public:
  QueryFake() {
    for (int i = 0; i < 2; ++i) std::snprintf(devices_[i].name, sizeof(devices_[i].name), "rxe%d", i);
  }
  std::string describe() const override { return "fake"; }
  ibv_device** get_device_list(int* count) override {
    *count = list_errno == 0 ? known : 0;
    errno = list_errno;
    if (list_errno != 0) return nullptr;
    ++lists;
    return pointers_;
  }
  void free_device_list(ibv_device** list) override {
    EXPECT_EQ(list, pointers_);
    --lists;
  }
  ibv_context* open_device(ibv_device* device) override {
    errno = open_errno;
    if (open_errno != 0) return nullptr;
    ++contexts;
    context_.device = device;
    return &context_;
  }
  int close_device(ibv_context*) override {
    --contexts;
    return 0;
  }
  int query_port(ibv_context*, std::uint8_t port, ibv_port_attr* out) override {
    asked.insert(port);
    *out = attributes;
    return query_errno;
  }

  int known = 2, list_errno = 0, open_errno = 0, query_errno = 0;
  int lists = 0, contexts = 0;
  std::set<int> asked;
  ibv_port_attr attributes = {};

 private:
  ibv_device devices_[2] = {};
  ibv_device* pointers_[3] = {&devices_[0], &devices_[1], nullptr};
  ibv_context context_ = {};
};

class VerbsDeviceQuery : public testing::Test {
 protected:
  void SetUp() override {
    fake_.attributes.state = IBV_PORT_ACTIVE;
    fake_.attributes.active_mtu = IBV_MTU_2048;
    fake_.attributes.active_speed = 32;
    fake_.attributes.active_width = 2;
    fake_.attributes.lid = 7;
    for (const char* name : {"rxe0", "rxe1"}) {
      DeviceInfo device;
      device.name = name;
      device.driver = "rxe";
      device.uverbs = std::string("uverbs") + name[3];
      device.ports.resize(1);
      devices_.push_back(std::move(device));
    }
  }
  void TearDown() override {
    EXPECT_EQ(fake_.lists, 0) << "a list was not freed";
    EXPECT_EQ(fake_.contexts, 0) << "a device was not closed";
  }

  QueryFake fake_;
  std::vector<DeviceInfo> devices_;
};

TEST_F(VerbsDeviceQuery, PortsAreFilledIn) {
  devices_[1].ports[0].mbit_per_s = 5;
  const auto statuses = query_devices(fake_, devices_);
  ASSERT_EQ(statuses.size(), 2u);
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());
  const PortInfo& port = devices_[0].ports[0];
  EXPECT_TRUE(port.active());
  EXPECT_EQ(port.active_mtu, 2048u);
  EXPECT_EQ(port.lid, 7);
  EXPECT_EQ(port.mbit_per_s, 100000u);
  EXPECT_EQ(devices_[1].ports[0].mbit_per_s, 5u) << "sysfs comes first";
}

TEST_F(VerbsDeviceQuery, ADeviceThatLibibverbsDoesNotKnowSaysSo) {
  fake_.known = 1;
  const auto statuses = query_devices(fake_, devices_);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_EQ(statuses[1].message(), "libibverbs does not know rxe1, whose driver is rxe");
  EXPECT_NE(statuses[1].advice().find("ibverbs-providers"), std::string::npos);
}

TEST_F(VerbsDeviceQuery, EachFailureNamesItsCall) {
  fake_.list_errno = ENOSYS;
  EXPECT_EQ(query_devices(fake_, devices_)[0].message(), "ibv_get_device_list: Function not implemented");
  fake_.list_errno = 0;
  fake_.open_errno = EACCES;
  const Status denied = query_devices(fake_, devices_)[0];
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_EQ(denied.message(), "ibv_open_device of rxe0: Permission denied");
  EXPECT_NE(denied.advice().find("--device=/dev/infiniband/uverbs0"), std::string::npos);
  fake_.open_errno = ENODEV;
  EXPECT_EQ(query_devices(fake_, devices_)[0].code(), Code::kFailed);
  fake_.open_errno = 0;
  fake_.query_errno = EINVAL;
  EXPECT_EQ(query_devices(fake_, devices_)[0].message(), "ibv_query_port of rxe0, port 1: Invalid argument");
}

TEST_F(VerbsDeviceQuery, AFileThatIsNotThereSaysHowToGetIt) {
  const base::TestFolder folder;
  const Status absent = check_access(folder.path(), devices_[0]);
  EXPECT_EQ(absent.code(), Code::kUnsupported);
  EXPECT_NE(absent.message().find("uverbs0 cannot be opened: No such file"), std::string::npos);
  EXPECT_NE(absent.advice().find("--device=/dev/infiniband/uverbs0"), std::string::npos);
  std::ofstream(folder.path("uverbs0")) << "";
  EXPECT_TRUE(check_access(folder.path(), devices_[0]).ok());
  devices_[0].uverbs.clear();
  EXPECT_EQ(check_access(folder.path(), devices_[0]).advice(), "sudo modprobe ib_uverbs");
}

TEST_F(VerbsDeviceQuery, ASurveyHasEachDevicesFirstTrouble) {
  const base::TestFolder folder;
  std::ofstream(folder.path("uverbs0")) << "";
  const Survey survey = survey_devices(devices_, {std::shared_ptr<void>(), &fake_}, {}, folder.path());
  ASSERT_EQ(survey.devices.size(), 2u);
  EXPECT_EQ(survey.library, "fake");
  EXPECT_TRUE(survey.devices[0].open.ok());
  EXPECT_NE(survey.devices[1].open.message().find("uverbs1 cannot be opened"), std::string::npos);
  EXPECT_EQ(survey.devices[0].gids.size(), 1u);
  EXPECT_TRUE(survey.devices[0].usable.at(0).ok());
  const Status missing(Code::kUnsupported, "libibverbs.so.1: not found");
  const Survey without = survey_devices(devices_, nullptr, missing, folder.path());
  EXPECT_EQ(without.library_error, missing);
  EXPECT_EQ(without.devices[0].open.message(), "not tried, for libibverbs does not load");
}

TEST(VerbsPlaces, PortsOfEachNodeAndGpu) {
  const SysfsTree tree;
  const std::string gpu = "pci0000:00/0000:00:01.0/0000:03:00.0", nic = "pci0000:00/0000:00:02.0/0000:04:00.0";
  tree.pci(gpu, 0);
  tree.put("devices/" + gpu + "/class", "0x030200");
  tree.pci(nic, 0);
  tree.rdma("mlx5_0", nic);
  tree.put("devices/system/node/node0/distance", "10");
  tree.put("devices/system/node/node1/distance", "10");
  const auto devices = read_devices(tree.root());
  const auto places = ports_by_place(devices, tree.root());
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].place, "cpu:0");
  EXPECT_EQ(places[0].ports.at(0).path.path_class, PathClass::kPhb);
  EXPECT_EQ(places[1].place, "cpu:1");
  EXPECT_EQ(places[1].ports.at(0).path.path_class, PathClass::kSys);
  EXPECT_EQ(places[2].place, "0000:03:00.0");
  EXPECT_EQ(places[2].ports.at(0).path.path_class, PathClass::kPhb);
  EXPECT_TRUE(ports_by_place({}, tree.root()).empty());
}

TEST(VerbsPlaces, TheDriverTellsWhereAGpuIs) {
  GpuFake gpu;
  const auto cuda_pci = cuda_pci_of(gpu);
  const auto address = cuda_pci(0);
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->to_string(), *gpu.pci_address(0));
}

}  // namespace
}  // namespace hawser::backend::verbs
