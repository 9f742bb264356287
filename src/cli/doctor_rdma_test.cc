#include "cli/doctor_rdma.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hawser::cli {
namespace {

namespace verbs = backend::verbs;

verbs::Gid gid(std::uint32_t index, std::string_view bytes, verbs::GidType type) {
  return {index, *verbs::parse_gid(bytes), type, "eth0", 0};
}
const char* const kIpv4 = "0000:0000:0000:0000:0000:ffff:0a4d:0001";
const char* const kLinkLocal = "fe80:0000:0000:0000:0000:0000:0000:0001";

// A machine with one RoCE device that works, and a library that loads.
class DoctorRdma : public testing::Test {
 protected:
  void SetUp() override {
    port_.state = verbs::PortState::kActive;
    port_.link_layer = verbs::LinkLayer::kEthernet;
    port_.mbit_per_s = 100000;
    port_.active_mtu = 4096;
    port_.netdev = "eth0";
    port_.gids = {gid(0, kLinkLocal, verbs::GidType::kRoceV2), gid(1, kIpv4, verbs::GidType::kRoceV2)};
    facts_.survey.library = "libibverbs.so.1";
  }

  void set(std::vector<verbs::PortInfo> ports, Status open = {}) {
    verbs::SurveyedDevice device;
    device.info.name = "rxe0";
    device.info.ports = std::move(ports);
    device.open = std::move(open);
    for (const verbs::PortInfo& port : device.info.ports) {
      device.gids.push_back(verbs::score_gids(port.gids, port.netdev));
      device.usable.push_back(verbs::usable(device.info, port));
    }
    facts_.survey.devices = {std::move(device)};
  }
  Finding finding(std::string_view name) {
    const Findings all = rdma_findings(facts_);
    for (const Finding& f : all) {
      EXPECT_TRUE(f.verdict == Verdict::kOk || !f.remedy.empty()) << f.name << " warns without a remedy";
      EXPECT_FALSE(f.found.empty() || f.why.empty()) << f.name;
    }
    const auto at = std::find_if(all.begin(), all.end(), [&](const Finding& f) { return f.name == name; });
    EXPECT_NE(at, all.end()) << name;
    return at == all.end() ? Finding{} : *at;
  }

  verbs::PortInfo port_;
  RdmaFacts facts_;
};

TEST_F(DoctorRdma, WithoutADeviceSoftRoceIsOffered) {
  const Finding f = finding("devices.rdma");
  EXPECT_EQ(f.verdict, Verdict::kOk) << "RDMA is a choice";
  EXPECT_EQ(f.found, "no device; libibverbs.so.1 loads");
  EXPECT_NE(f.remedy.find("rdma link add rxe0 type rxe netdev INTERFACE"), std::string::npos);
  facts_.in_container = true;
  EXPECT_NE(finding("devices.rdma").remedy.find("on the host of this container"), std::string::npos);
}

TEST_F(DoctorRdma, ADeviceWithoutTheLibraryWarns) {
  set({port_}, Status(Code::kUnsupported, "not tried, for libibverbs does not load"));
  facts_.survey.library.clear();
  EXPECT_EQ(finding("devices.rdma").verdict, Verdict::kWarn);
  EXPECT_NE(finding("devices.rdma").remedy.find("libibverbs1"), std::string::npos);
  EXPECT_EQ(finding("rdma.rxe0").verdict, Verdict::kWarn);
}

TEST_F(DoctorRdma, AGoodPortTellsWhatItRunsAt) {
  set({port_});
  EXPECT_EQ(finding("rdma.rxe0").verdict, Verdict::kOk);
  EXPECT_EQ(finding("rdma.rxe0:1").verdict, Verdict::kOk);
  EXPECT_EQ(finding("rdma.rxe0:1").found, "active, Ethernet, 100 Gbit/s, MTU 4096; GID 1 (10.77.0.1, RoCE v2)");
}

TEST_F(DoctorRdma, ADeviceThatDoesNotOpenPassesItsAdviceOn) {
  set({port_}, Status(Code::kDenied, "/dev/infiniband/uverbs0 cannot be opened: Permission denied")
                   .with_advice("sudo chmod a+rw /dev/infiniband/uverbs0"));
  EXPECT_EQ(finding("rdma.rxe0").verdict, Verdict::kWarn);
  EXPECT_EQ(finding("rdma.rxe0").remedy, "sudo chmod a+rw /dev/infiniband/uverbs0");
  facts_.in_container = true;
  EXPECT_EQ(finding("rdma.rxe0").remedy.find("--device"), std::string::npos) << "its file is not what is missing";
  facts_.survey.devices[0].has_file = false;
  EXPECT_NE(finding("rdma.rxe0").remedy.find("--device=/dev/infiniband"), std::string::npos);
}

TEST_F(DoctorRdma, APortThatIsDownWarnsUnlessAnotherWorks) {
  verbs::PortInfo down = port_;
  down.state = verbs::PortState::kDown;
  set({down});
  EXPECT_EQ(finding("rdma.rxe0:1").verdict, Verdict::kWarn);
  EXPECT_NE(finding("rdma.rxe0:1").remedy.find("ip link set eth0 up"), std::string::npos);
  down.number = 2;
  set({port_, down});
  EXPECT_EQ(finding("rdma.rxe0:2").verdict, Verdict::kOk);
  EXPECT_NE(finding("rdma.rxe0:2").found.find("is not active, it is down"), std::string::npos);
}

TEST_F(DoctorRdma, GidsThatReachNoFartherThanTheLinkWarn) {
  port_.gids = {gid(0, kLinkLocal, verbs::GidType::kRoceV2)};
  set({port_});
  EXPECT_EQ(finding("rdma.rxe0:1").verdict, Verdict::kWarn);
  EXPECT_NE(finding("rdma.rxe0:1").remedy.find("ip address add A.B.C.D/24 dev eth0"), std::string::npos);
}

TEST_F(DoctorRdma, NoGidAndNoRoceV2Warn) {
  port_.gids.clear();
  set({port_});
  EXPECT_EQ(finding("rdma.rxe0:1").verdict, Verdict::kWarn);
  EXPECT_NE(finding("rdma.rxe0:1").found.find("no usable GID"), std::string::npos);
  port_.gids = {gid(0, kIpv4, verbs::GidType::kRoceV1)};
  set({port_});
  EXPECT_EQ(finding("rdma.rxe0:1").verdict, Verdict::kWarn);
  EXPECT_NE(finding("rdma.rxe0:1").found.find("no RoCE v2"), std::string::npos);
}

TEST_F(DoctorRdma, InfiniBandNeedsNoGid) {
  port_.link_layer = verbs::LinkLayer::kInfiniBand;
  port_.gids.clear();
  set({port_});
  EXPECT_EQ(finding("rdma.rxe0:1").verdict, Verdict::kOk);
}

TEST_F(DoctorRdma, ALimitOfPinnedMemoryMattersWhereThereIsADevice) {
  facts_.memlock = 8u << 20;
  EXPECT_EQ(finding("memory.memlock").verdict, Verdict::kOk);
  EXPECT_EQ(finding("memory.memlock").found, "8 MiB, and no RDMA device");
  set({port_});
  EXPECT_EQ(finding("memory.memlock").verdict, Verdict::kWarn);
  EXPECT_EQ(finding("memory.memlock").found, "8 MiB: too little for RDMA to work at all");
  EXPECT_NE(finding("memory.memlock").remedy.find("ulimit -l unlimited"), std::string::npos);
  facts_.memlock = 4ull << 30;
  EXPECT_EQ(finding("memory.memlock").found, "4 GiB");
  facts_.may_exceed_memlock = true;
  EXPECT_EQ(finding("memory.memlock").verdict, Verdict::kOk);
  facts_.memlock.reset();
  EXPECT_EQ(finding("memory.memlock").found, "unlimited");
}

}  // namespace
}  // namespace hawser::cli
