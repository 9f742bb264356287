// C17 of the conformance list: which ports are chosen, on trees made up for it.

#include "backend/verbs/devices/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "backend/verbs/devices/device_test_tree.h"

namespace hawser::backend::verbs {
namespace {

// Two sockets. Below a switch of the first: a GPU, mlx5_0, mlx5_10 and mlx5_2. Below the second: mlx5_1 (faster).
class C17 : public testing::Test {
 protected:
  void SetUp() override {
    tree_.pci(below_first("0000:03:00.0"), 0);  // the GPU
    link_fast(below_first("0000:03:00.0"));
    add("mlx5_0", below_first("0000:04:00.0"), 0);
    add("mlx5_10", below_first("0000:05:00.0"), 0);
    add("mlx5_2", below_first("0000:06:00.0"), 0);
    add("mlx5_1", "pci0000:80/0000:80:01.0/0000:81:00.0", 1, "400 Gb/sec (4X NDR)");
    tree_.put("devices/system/node/node0/distance", "10 21");
    tree_.put("devices/system/node/node1/distance", "21 10");
    tree_.put("devices/system/node/online", "0-1");
  }

  static std::string below_first(const std::string& device) {
    return "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:" + device.substr(5, 2) + ".0/" + device;
  }
  // The device and the port of the switch above it.
  void link_fast(const std::string& way) {
    tree_.pci_link(way, "32.0 GT/s PCIe", "16");
    tree_.pci_link(std::filesystem::path(way).parent_path().string(), "32.0 GT/s PCIe", "16");
  }
  void add(const std::string& name, const std::string& way, int node, std::string_view rate = "100 Gb/sec (4X EDR)") {
    tree_.pci(way, node);
    link_fast(way);
    tree_.rdma(name, way, rate);
  }

  Result<std::vector<LocalPort>> choose(std::string hint, std::vector<std::string> names = {}) {
    devices_ = read_devices(tree_.root());
    ChooseOptions options;
    options.hint = std::move(hint);
    options.devices = std::move(names);
    options.sysfs_root = tree_.root();
    options.cuda_pci = cuda_;
    return choose_ports(devices_, options);
  }
  /// "mlx5_0:1/0 ...": name, port and rank of each; or the message of the error.
  std::string chosen(std::string hint, std::vector<std::string> names = {}) {
    const auto ports = choose(std::move(hint), std::move(names));
    if (!ports) return std::string(ports.error().message());
    std::vector<std::string> words;
    for (const LocalPort& p : *ports) words.push_back(fmt::format("{}:{}/{}", p.device->name, p.port->number, p.rank));
    return fmt::format("{}", fmt::join(words, " "));
  }

  SysfsTree tree_;
  std::vector<DeviceInfo> devices_;
  std::function<Result<PciAddress>(std::uint32_t)> cuda_ = [](std::uint32_t ordinal) -> Result<PciAddress> {
    if (ordinal == 0) return *parse_pci_address("0000:03:00.0");
    return Status(Code::kNotFound, fmt::format("there is no CUDA device {}; there are: 0", ordinal));
  };
};

TEST_F(C17, HintsAreRead) {
  EXPECT_EQ(parse_hint("")->kind, Hint::Kind::kNone);
  EXPECT_EQ(parse_hint("cpu")->kind, Hint::Kind::kCpu);
  EXPECT_EQ(parse_hint("cpu:3")->number, 3u);
  EXPECT_EQ(parse_hint("cuda")->kind, Hint::Kind::kCuda);
  EXPECT_EQ(parse_hint("cuda:7")->number, 7u);
  EXPECT_EQ(parse_hint("nic:mlx5_0")->nic, "mlx5_0");
}

TEST_F(C17, AnUnknownHintIsAnErrorThatNamesItAndTheForms) {
  for (const char* text : {"gpu:0", "cpu:", "cpu:x", "cpu:-1", "cuda:1x", "nic", "nic:", "mlx5_0", "cpu:0:1", " cpu"}) {
    EXPECT_EQ(chosen(text), fmt::format("'{}' is no hint for a device; there are: cpu:N (a NUMA node), cuda:N (a GPU), "
                                        "nic:NAME (an RDMA device)",
                                        text));
    EXPECT_EQ(parse_hint(text).error().code(), Code::kInvalid);
  }
}

TEST_F(C17, WithoutAHintTheFastestComesFirst) { EXPECT_EQ(chosen(""), "mlx5_1:1/0 mlx5_0:1/1 mlx5_2:1/1 mlx5_10:1/1"); }

TEST_F(C17, EqualOnesStayInTheOrderOfTheirNames) {
  EXPECT_EQ(chosen("cuda:0"), "mlx5_0:1/0 mlx5_2:1/0 mlx5_10:1/0 mlx5_1:1/1");
}

TEST_F(C17, MemoryOfANodeIsServedByItsDevicesFirst) {
  EXPECT_EQ(chosen("cpu"), "mlx5_0:1/0 mlx5_2:1/0 mlx5_10:1/0 mlx5_1:1/1");
  EXPECT_EQ(chosen("cpu:1"), "mlx5_1:1/0 mlx5_0:1/1 mlx5_2:1/1 mlx5_10:1/1");
}

TEST_F(C17, BandwidthDecidesWithinAClass) {
  add("mlx5_3", below_first("0000:07:00.0"), 0, "200 Gb/sec (4X HDR)");
  EXPECT_EQ(chosen("cuda"), "mlx5_3:1/0 mlx5_0:1/1 mlx5_2:1/1 mlx5_10:1/1 mlx5_1:1/2");
}

TEST_F(C17, ThePathIsCappedByThePort) {
  const auto ports = choose("nic:mlx5_0");
  ASSERT_TRUE(ports.has_value());
  EXPECT_EQ(ports->front().path, (PciPath{PathClass::kPix, 100000}));
}

TEST_F(C17, ANicHintTakesThatDeviceOnly) {
  EXPECT_EQ(chosen("nic:mlx5_1"), "mlx5_1:1/0");
  tree_.port("mlx5_2", "2", "4: ACTIVE");
  EXPECT_EQ(chosen("nic:mlx5_2"), "mlx5_2:1/0 mlx5_2:2/0");
  EXPECT_EQ(chosen("nic:mlx5_2:2"), "mlx5_2:2/0");
}

TEST_F(C17, NamedDevicesAreTheOnlyCandidates) {
  EXPECT_EQ(chosen("", {"mlx5_2", "mlx5_1:1", "mlx5_2"}), "mlx5_1:1/0 mlx5_2:1/1");
  EXPECT_EQ(chosen("cuda:0", {"mlx5_1", "mlx5_2"}), "mlx5_2:1/0 mlx5_1:1/1");
}

TEST_F(C17, OnlyActivePortsAreCandidates) {
  for (const char* state : {"1: DOWN", "2: INIT", "3: ARMED", "5: ACTIVE_DEFER", ""}) {
    tree_.put("class/infiniband/mlx5_0/ports/1/state", state);
    EXPECT_EQ(chosen("cuda:0"), "mlx5_2:1/0 mlx5_10:1/0 mlx5_1:1/1") << state;
  }
}

TEST_F(C17, AnInactivePortThatIsAskedForIsAnErrorThatNamesIt) {
  tree_.put("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  const auto ports = choose("nic:mlx5_0");
  ASSERT_FALSE(ports.has_value());
  EXPECT_EQ(ports.error().code(), Code::kUnsupported);
  EXPECT_EQ(ports.error().message(), "port 1 of RDMA device mlx5_0 is not active, it is down");
  EXPECT_EQ(ports.error().device(), "mlx5_0");
  EXPECT_FALSE(ports.error().advice().empty());
  EXPECT_EQ(chosen("", {"mlx5_1", "mlx5_0"}), "port 1 of RDMA device mlx5_0 is not active, it is down");
}

TEST_F(C17, AnAbsentDeviceIsAnErrorThatListsWhatThereIs) {
  EXPECT_EQ(chosen("nic:mlx5_9"),
            "there is no RDMA device 'mlx5_9' on this host; there are: mlx5_0, mlx5_1, mlx5_2, mlx5_10");
  EXPECT_EQ(chosen("", {"mlx5_0:4"}), "RDMA device mlx5_0 has no port 4; it has: 1");
}

TEST_F(C17, AnAbsentCudaDeviceIsAnErrorThatNamesIt) {
  EXPECT_EQ(chosen("cuda:3"), "there is no CUDA device 3; there are: 0");
  cuda_ = nullptr;
  EXPECT_EQ(chosen("cuda:3"), "the hint cuda:3 needs a CUDA driver, and there is none");
}

TEST_F(C17, AnAbsentNumaNodeIsAnErrorThatNamesIt) {
  EXPECT_EQ(chosen("cpu:5"), "the hint cpu:5 names a NUMA node that is not here; there are: 0, 1");
}

TEST_F(C17, AHostWithoutDevicesSaysSo) {
  const auto ports = choose_ports({}, {});
  ASSERT_FALSE(ports.has_value());
  EXPECT_EQ(ports.error().code(), Code::kNotFound);
  EXPECT_NE(ports.error().advice().find("rdma link add"), std::string::npos);
}

TEST_F(C17, AHostWithOnlyInactivePortsSaysWhy) {
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10"}) {
    tree_.put(fmt::format("class/infiniband/{}/ports/1/state", name), "1: DOWN");
  }
  const auto ports = choose("");
  ASSERT_FALSE(ports.has_value());
  EXPECT_EQ(ports.error().code(), Code::kUnsupported);
  EXPECT_NE(ports.error().to_string().find("is not active, it is down"), std::string::npos);
}

TEST_F(C17, IwarpIsLeftOut) {
  tree_.put("class/infiniband/mlx5_0/node_type", "4: RNIC");
  EXPECT_EQ(chosen("cuda:0"), "mlx5_2:1/0 mlx5_10:1/0 mlx5_1:1/1");
  EXPECT_EQ(chosen("nic:mlx5_0"), "port 1 of RDMA device mlx5_0 is iWARP, which connects by rdma_cm only");
}

TEST_F(C17, ASoftwareDeviceIsTheLastChoiceForAGpu) {
  tree_.put("class/infiniband/rxe0/node_type", "1: CA");
  tree_.port("rxe0", "1", "4: ACTIVE");
  EXPECT_EQ(chosen("cuda:0"), "mlx5_0:1/0 mlx5_2:1/0 mlx5_10:1/0 mlx5_1:1/1 rxe0:1/2");
}

}  // namespace
}  // namespace hawser::backend::verbs
