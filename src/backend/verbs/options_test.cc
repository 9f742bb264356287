// Every parameter has a range, and an error names the parameter, the value and the range. That values reach the device
// is in port_test.cc.

#include "backend/verbs/options.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::backend::verbs {
namespace {

struct Wrong {
  const char* name;
  const char* value;
  const char* range;
};

TEST(VerbsOptions, AWrongValueIsNamedWithItsRange) {
  for (const Wrong& each : {Wrong{"send_depth", "15", "from 16 to 32768"},
                            {"max_sge", "65", "from 1 to 64"},
                            {"inline", "2KiB", "at most 1KiB"},
                            {"mtu", "1500", "auto, 256, 512, 1024, 2048, 4096"},
                            {"rd_atomic", "129", "from 1 to 128"},
                            {"timeout", "32", "at most 31"},
                            {"retry", "8", "at most 7"},
                            {"rnr_retry", "8", "at most 7"},
                            {"min_rnr_timer", "32", "at most 31"},
                            {"traffic_class", "256", "at most 255"},
                            {"service_level", "16", "at most 15"},
                            {"hop_limit", "256", "at most 255"},
                            {"flow_label", "1048576", "at most 1048575"},
                            {"pkey_index", "65536", "at most 65535"},
                            {"immediates", "257", "at most 256"},
                            {"pairs", "17", "from 1 to 16"},
                            {"gpu_direct", "on", "auto, require, off"},
                            {"register_threads", "0", "from 1 to 64"},
                            {"connect_timeout", "3", "at least 50ms"},
                            {"patience", "1ms", "at least 50ms"}}) {
    const auto options = read_verbs_options({{each.name, each.value}});
    ASSERT_FALSE(options.has_value()) << each.name;
    EXPECT_EQ(options.error().code(), Code::kInvalid);
    const std::string text = options.error().to_string();
    EXPECT_NE(text.find(std::string(each.name) + " = \"" + each.value + "\""), std::string::npos) << text;
    EXPECT_NE(text.find(each.range), std::string::npos) << text;
  }
}

TEST(VerbsOptions, AllWrongValuesAreToldAtOnce) {
  const auto options = read_verbs_options({{"timeout", "32"}, {"service_level", "16"}});
  ASSERT_FALSE(options.has_value());
  const std::string text = options.error().to_string();
  EXPECT_NE(text.find("timeout"), std::string::npos) << text;
  EXPECT_NE(text.find("service_level"), std::string::npos) << text;
}

TEST(VerbsOptions, AnUnknownParameterIsAWarning) {
  const auto options = read_verbs_options({{"trafic_class", "1"}});
  ASSERT_TRUE(options.has_value());
  ASSERT_EQ(options->warnings.size(), 1u);
  EXPECT_NE(options->warnings[0].find("trafic_class"), std::string::npos) << options->warnings[0];
}

}  // namespace
}  // namespace hawser::backend::verbs
