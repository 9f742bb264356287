#include "compat/telemetry.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::compat {
namespace {

using Texts = ConfigSources::Texts;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Texts with(Texts more) {
  more.emplace("NIXL_TELEMETRY_ENABLE", "yes");
  more.try_emplace("NIXL_TELEMETRY_EXPORTER", "prometheus");
  return more;
}

TEST(TelemetryExport, ListensWhereNixlDoes) {
  EXPECT_EQ(telemetry_export(with({})).value().listen, "0.0.0.0:9090");
  EXPECT_EQ(telemetry_export(with({{"NIXL_TELEMETRY_PROMETHEUS_PORT", " 9400 "}})).value().listen, "0.0.0.0:9400");
  EXPECT_EQ(telemetry_export(with({{"NIXL_TELEMETRY_PROMETHEUS_LOCAL", "Y"}})).value().listen, "127.0.0.1:9090");
  EXPECT_EQ(telemetry_export(with({{"NIXL_TELEMETRY_PROMETHEUS_LOCAL", "no"}})).value().listen, "0.0.0.0:9090");
}

TEST(TelemetryExport, IsAskedForByName) {
  EXPECT_EQ(telemetry_export({}).value().listen, "");
  EXPECT_EQ(telemetry_export({{"NIXL_TELEMETRY_EXPORTER", "prometheus"}}).value().listen, "") << "telemetry is off";
  EXPECT_EQ(telemetry_export({{"NIXL_TELEMETRY_ENABLE", "yes"}}).value().listen, "");
  EXPECT_EQ(telemetry_export(with({{"NIXL_TELEMETRY_EXPORTER", "nop"}})).value().listen, "");
  EXPECT_EQ(telemetry_export(with({{"NIXL_TELEMETRY_EXPORTER", "Prometheus"}})).value().listen, "0.0.0.0:9090");
}

TEST(TelemetryExport, NamesTheVariableThatIsWrong) {
  const auto refusal = [](const char* variable, const char* text) {
    const Status status = telemetry_export(with({{variable, text}})).error();
    return has(status.to_string(), variable) ? code_of(status) : NixlCode::kSuccess;
  };
  EXPECT_EQ(refusal("NIXL_TELEMETRY_EXPORTER", "doca"), NixlCode::kNotSupported);
  EXPECT_EQ(refusal("NIXL_TELEMETRY_PROMETHEUS_PORT", "70000"), NixlCode::kInvalidParam);
  for (const char* bounds : {"x", "0", "10,10", "10,5", "1,2,-3", "1.5"}) {
    EXPECT_EQ(refusal("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", bounds), NixlCode::kInvalidParam) << bounds;
  }
}

TEST(TelemetryExport, TakesSoManyBounds) {
  std::string bounds = "1";
  for (int i = 2; i <= 256; ++i) bounds += "," + std::to_string(i);
  EXPECT_EQ(telemetry_export(with({{"NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", bounds}})).value().bounds_us.size(), 256u);
  bounds += ",257";
  EXPECT_FALSE(telemetry_export(with({{"NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", bounds}})));
}

/// A page without the host's name, which is this machine's.
std::string page_of(const Telemetry& telemetry) {
  metrics::Exposition to;
  telemetry.add_to(to);
  std::string page = to.text();
  for (std::size_t at = 0; (at = page.find("hostname=\"", at)) != std::string::npos;) {
    page.erase(at, page.find(',', at) + 1 - at);
  }
  return page;
}

TEST(Telemetry, CountsUnderTheNamesOfNixl) {
  Telemetry telemetry("a", telemetry_export(with({{"NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", "10,1000"}})).value());
  telemetry.ended(true, {.post_duration_us = 3, .xfer_duration_us = 10, .total_bytes = 100});
  telemetry.ended(true, {.post_duration_us = 4, .xfer_duration_us = 11, .total_bytes = 50});
  telemetry.ended(false, {.post_duration_us = 5, .xfer_duration_us = 2000, .total_bytes = 7});
  telemetry.failed(NixlCode::kRemoteDisconnect);
  telemetry.registered(4096);
  telemetry.deregistered(1024);
  const std::string page = page_of(telemetry);
  const auto holds = [&](const std::string& line) { return has(page, "\n" + line + "\n"); };
  EXPECT_TRUE(holds("agent_tx_bytes_total{agent_name=\"a\"} 150")) << page;
  EXPECT_TRUE(holds("agent_tx_last_bytes{agent_name=\"a\"} 50")) << page;
  EXPECT_TRUE(holds("agent_rx_bytes_total{agent_name=\"a\"} 7")) << page;
  EXPECT_TRUE(holds("agent_tx_requests_num_total{agent_name=\"a\"} 2")) << page;
  EXPECT_TRUE(holds("agent_rx_requests_num_total{agent_name=\"a\"} 1")) << page;
  EXPECT_TRUE(holds("agent_memory_registered_total{agent_name=\"a\"} 4096")) << page;
  EXPECT_TRUE(holds("agent_memory_deregistered_last_bytes{agent_name=\"a\"} 1024")) << page;
  EXPECT_TRUE(holds("agent_xfer_time_total{agent_name=\"a\"} 2021")) << page;
  EXPECT_TRUE(holds("agent_xfer_time{agent_name=\"a\"} 2000")) << page;
  EXPECT_TRUE(holds("agent_xfer_time_us_bucket{agent_name=\"a\",le=\"10\"} 1")) << "10 is within 10: " << page;
  EXPECT_TRUE(holds("agent_xfer_time_us_bucket{agent_name=\"a\",le=\"1000\"} 2")) << page;
  EXPECT_TRUE(holds("agent_xfer_time_us_bucket{agent_name=\"a\",le=\"+Inf\"} 3")) << page;
  EXPECT_TRUE(holds("agent_xfer_post_time_us_sum{agent_name=\"a\"} 12")) << page;
  EXPECT_TRUE(holds("agent_errors_total{agent_name=\"a\",status=\"remote_disconnect\"} 1")) << page;
  EXPECT_TRUE(holds("agent_errors_total{agent_name=\"a\",status=\"canceled\"} 0")) << page;
}

TEST(Telemetry, PublishesWhatIsEnabled) {
  Telemetry telemetry(
      "a", telemetry_export(with({{"NIXL_TELEMETRY_ENABLED_METRICS", "agent_tx_bytes, agent_err_*"}})).value());
  telemetry.ended(true, {.total_bytes = 1});
  const std::string page = page_of(telemetry);
  EXPECT_TRUE(has(page, "agent_tx_bytes_total") && has(page, "agent_errors_total")) << page;
  EXPECT_FALSE(has(page, "agent_rx_bytes") || has(page, "agent_xfer_time") || has(page, "requests_num")) << page;
}

}  // namespace
}  // namespace hawser::compat
