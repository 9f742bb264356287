#include "compat/ucx_params.h"

#include <gtest/gtest.h>

#include <hawser/compat/status.h>

namespace hawser::compat {
namespace {

bool is_interface(const std::string& name) { return name == "eth0" || name == "ib0"; }

UcxChoice choose(const Params& given) { return choose_for_ucx(given, is_interface).value(); }
UcxChoice choose_by(const std::string& config) { return choose({{"engine_config", config}}); }
std::vector<std::string> backends_for(const std::string& config) { return choose_by(config).backends; }

TEST(UcxParams, TransportsLimitTheBackends) {
  const std::vector<std::string> tcp = {"loopback", "tcp"}, shm = {"loopback", "shm"}, verbs = {"loopback", "verbs"};
  EXPECT_EQ(backends_for("TLS=tcp"), tcp);
  EXPECT_EQ(backends_for("tls=TCP,self"), tcp);
  EXPECT_EQ(backends_for("RCACHE_ENABLE=n,UCX_TLS=tcp,MAX_RNDV_RAILS=2"), tcp);
  EXPECT_EQ(backends_for("TLS=sm"), shm);
  EXPECT_EQ(backends_for("TLS=self,posix,cma,X=1,tcp"), shm);
  EXPECT_EQ(backends_for("TLS=tcp,sm"), (std::vector<std::string>{"loopback", "shm", "tcp"}));
  for (const char* const list : {"rc", "RC_X,self", "ud,cuda_copy", "dc_mlx5", "ib,gdr_copy,rc_verbs"}) {
    const UcxChoice choice = choose_by(std::string("TLS=") + list);
    EXPECT_EQ(choice.backends, verbs) << list;
    EXPECT_FALSE(choice.is_lenient) << list;
    EXPECT_EQ(choice.wants_rdma, std::string("TLS=") + list);
    EXPECT_TRUE(choice.warnings.empty()) << list;
  }
}

TEST(UcxParams, RdmaBesideSharedMemoryMayBeAbsent) {
  const UcxChoice choice = choose_by("TLS=sm,rc,cuda");
  EXPECT_EQ(choice.backends, (std::vector<std::string>{"loopback", "shm", "verbs"}));
  EXPECT_TRUE(choice.is_lenient);
  EXPECT_EQ(choice.wants_rdma, "TLS=sm,rc,cuda");
}

TEST(UcxParams, OtherTransportsLimitNothing) {
  for (const char* const config : {"", "TLS=^rc_gda", "TLS=all", "TLS=rc,all", "TLS=rc,tcp", "TLS=rc,sm,tcp",
                                   "TLS=self", "TLS=", "TLS=,", "tcp"}) {
    const UcxChoice choice = choose_by(config);
    EXPECT_TRUE(choice.backends.empty()) << config;
    EXPECT_TRUE(choice.warnings.empty()) << config;
  }
  const UcxChoice absent = choose_by("TLS=cuda,rocm");
  EXPECT_TRUE(absent.backends.empty());
  ASSERT_EQ(absent.warnings.size(), 1u);
  EXPECT_NE(absent.warnings[0].find("cuda,rocm"), std::string::npos);
}

TEST(UcxParams, DevicesAreThoseOfVerbsAndNetworkInterfacesAreToldAbout) {
  const UcxChoice one = choose({{"device_list", " mlx5_0:1, mlx5_1 "}});
  EXPECT_EQ(one.devices, "mlx5_0:1,mlx5_1");
  EXPECT_TRUE(one.warnings.empty());
  EXPECT_TRUE(one.backends.empty()) << "a list of devices names no transports";
  EXPECT_NE(one.wants_rdma.find("mlx5_1"), std::string::npos);
  const UcxChoice mixed = choose({{"ucx_devices", "eth0,mlx5_0"}});
  EXPECT_EQ(mixed.devices, "mlx5_0");
  ASSERT_EQ(mixed.warnings.size(), 1u);
  EXPECT_NE(mixed.warnings[0].find("eth0 changes nothing"), std::string::npos) << mixed.warnings[0];
  const UcxChoice none = choose({{"device_list", "eth0,ib0"}});
  EXPECT_TRUE(none.devices.empty() && none.wants_rdma.empty());
  EXPECT_EQ(none.warnings.size(), 1u);
}

TEST(UcxParams, AllDevicesAreNoChoiceAndAnEmptyListIsRefused) {
  const UcxChoice all = choose({{"device_list", "ALL"}, {"ucx_devices", ""}});
  EXPECT_TRUE(all.devices.empty() && all.warnings.empty() && all.wants_rdma.empty());
  const auto empty = choose_for_ucx({{"device_list", " "}}, is_interface);
  ASSERT_FALSE(empty);
  EXPECT_EQ(code_of(empty.error()), NixlCode::kBackend);
}

TEST(UcxParams, WhatIsNoValueIsRefusedByName) {
  for (const Params& given : {Params{{"num_workers", "abc"}}, Params{{"num_threads", "-1"}},
                              Params{{"split_batch_size", "1k"}}, Params{{"ucx_error_handling_mode", "perhaps"}}}) {
    const auto refused = choose_for_ucx(given, [](const std::string&) { return false; });
    ASSERT_FALSE(refused) << given.begin()->first;
    EXPECT_EQ(code_of(refused.error()), NixlCode::kInvalidParam);
    EXPECT_NE(refused.error().to_string().find(given.begin()->first), std::string::npos);
  }
}

}  // namespace
}  // namespace hawser::compat
