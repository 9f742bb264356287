#include "compat/ucx_params.h"

#include <gtest/gtest.h>

#include <hawser/compat/status.h>

namespace hawser::compat {
namespace {

std::vector<std::string> backends_for(const std::string& config) {
  return choose_for_ucx({{"engine_config", config}}).value().backends;
}

TEST(UcxParams, TransportsThatAreTcpOrSharedMemoryAloneLimitTheBackends) {
  const std::vector<std::string> tcp = {"loopback", "tcp"}, shm = {"loopback", "shm"};
  EXPECT_EQ(backends_for("TLS=tcp"), tcp);
  EXPECT_EQ(backends_for("tls=TCP,self"), tcp);
  EXPECT_EQ(backends_for("RCACHE_ENABLE=n,UCX_TLS=tcp,MAX_RNDV_RAILS=2"), tcp);
  EXPECT_EQ(backends_for("TLS=sm"), shm);
  EXPECT_EQ(backends_for("TLS=self,posix,cma,X=1,tcp"), shm);
}

TEST(UcxParams, OtherTransportsLimitNothing) {
  for (const char* const config :
       {"", "TLS=^rc_gda", "TLS=all", "TLS=tcp,sm", "TLS=rc,tcp", "TLS=self", "TLS=", "tcp"}) {
    const UcxChoice choice = choose_for_ucx({{"engine_config", config}}).value();
    EXPECT_TRUE(choice.backends.empty()) << config;
    EXPECT_TRUE(choice.warnings.empty()) << config;
  }
  const UcxChoice absent = choose_for_ucx({{"engine_config", "TLS=rc,cuda"}}).value();
  EXPECT_TRUE(absent.backends.empty());
  ASSERT_EQ(absent.warnings.size(), 1u);
  EXPECT_NE(absent.warnings[0].find("rc,cuda"), std::string::npos);
}

TEST(UcxParams, DevicesAreToldAboutAndAnEmptyListIsRefused) {
  EXPECT_EQ(choose_for_ucx({{"device_list", "mlx5_0:1"}}).value().warnings.size(), 1u);
  EXPECT_TRUE(choose_for_ucx({{"device_list", "all"}, {"ucx_devices", ""}}).value().warnings.empty());
  const auto empty = choose_for_ucx({{"device_list", " "}});
  ASSERT_FALSE(empty);
  EXPECT_EQ(code_of(empty.error()), NixlCode::kBackend);
}

}  // namespace
}  // namespace hawser::compat
