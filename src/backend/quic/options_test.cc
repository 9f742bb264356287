#include "backend/quic/options.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::backend::quic {
namespace {

Result<QuicOptions> read(Params params) {
  params.emplace("listen", "127.0.0.1");
  return read_quic_options(params, Security::kDefault);
}

QuicOptions must_read(const std::string& name, const std::string& value) {
  const auto options = read({{name, value}});
  EXPECT_TRUE(options) << name << "=" << value << ": " << options.error().to_string();
  return options ? *options : QuicOptions();
}

void expect_refused(const std::string& name, const std::string& value) {
  const auto options = read({{name, value}});
  ASSERT_FALSE(options) << name << "=" << value;
  EXPECT_EQ(options.error().code(), Code::kInvalid);
  EXPECT_NE(options.error().to_string().find(name), std::string::npos) << options.error().to_string();
}

TEST(QuicOptionsTest, ALogNeedsAFolder) {
  EXPECT_EQ(must_read("qlog", "/tmp").qlog, "/tmp");
  expect_refused("qlog", "/nowhere/at/all");
}

TEST(QuicOptionsTest, WithoutParametersTheyAreTheDefaults) {
  const QuicOptions options = read({}).value();
  EXPECT_EQ(options.streams, 4u);
  EXPECT_EQ(options.small, 16u * 1024);
  EXPECT_EQ(options.window, 16u << 20);
  EXPECT_EQ(options.datagram, 0u);
  EXPECT_EQ(options.sndbuf, 0);
  EXPECT_EQ(options.rcvbuf, 0);
  EXPECT_FALSE(options.congestion);
  EXPECT_EQ(options.port, 0);
  EXPECT_TRUE(options.warnings.empty());
}

TEST(QuicOptionsTest, EachIsTakenUpToItsBoundAndNotBeyond) {
  EXPECT_EQ(must_read("streams", "1").streams, 1u);
  EXPECT_EQ(must_read("streams", "8").streams, 8u);
  expect_refused("streams", "0");
  expect_refused("streams", "9");
  EXPECT_EQ(must_read("small", "0").small, 0u);
  EXPECT_EQ(must_read("small", "1MiB").small, 1u << 20);
  expect_refused("small", "1048577");
  EXPECT_EQ(must_read("window", "1MiB").window, 1u << 20);
  EXPECT_EQ(must_read("window", "1GiB").window, 1u << 30);
  expect_refused("window", "1048575");
  expect_refused("window", "1073741825");
  EXPECT_EQ(must_read("datagram", "1200").datagram, 1200u);
  EXPECT_EQ(must_read("datagram", "60000").datagram, 60'000u);
  expect_refused("datagram", "1199");
  expect_refused("datagram", "60001");
  EXPECT_EQ(must_read("sndbuf", "1GiB").sndbuf, 1 << 30);
  EXPECT_EQ(must_read("rcvbuf", "1GiB").rcvbuf, 1 << 30);
  expect_refused("sndbuf", "1073741825");
  expect_refused("rcvbuf", "1073741825");
}

TEST(QuicOptionsTest, CongestionIsOneOfItsWords) {
  EXPECT_EQ(must_read("congestion", "cubic").congestion, Congestion::kCubic);
  EXPECT_EQ(must_read("congestion", "reno").congestion, Congestion::kReno);
  EXPECT_EQ(must_read("congestion", "bbr").congestion, Congestion::kBbr);
  EXPECT_FALSE(must_read("congestion", "auto").congestion);
  expect_refused("congestion", "vegas");
}

TEST(QuicOptionsTest, APortOrARangeOfPorts) {
  const QuicOptions one = must_read("port", "7000");
  EXPECT_EQ(one.port, 7000);
  EXPECT_EQ(one.port_last, 7000);
  const QuicOptions range = must_read("port", "7000-7003");
  EXPECT_EQ(range.port, 7000);
  EXPECT_EQ(range.port_last, 7003);
  expect_refused("port", "65536");
  expect_refused("port", "7003-7000");
}

TEST(QuicOptionsTest, AParameterThatNobodyKnowsIsAWarning) {
  const QuicOptions options = must_read("strems", "2");
  ASSERT_EQ(options.warnings.size(), 1u);
  EXPECT_NE(options.warnings[0].find("strems"), std::string::npos) << options.warnings[0];
}

TEST(QuicOptionsTest, AllWrongValuesAreNamedAtOnce) {
  const auto options = read({{"streams", "many"}, {"window", "1"}});
  ASSERT_FALSE(options);
  EXPECT_NE(options.error().to_string().find("streams"), std::string::npos) << options.error().to_string();
  EXPECT_NE(options.error().to_string().find("window"), std::string::npos) << options.error().to_string();
}

}  // namespace
}  // namespace hawser::backend::quic
