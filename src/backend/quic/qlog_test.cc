#include "backend/quic/qlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>

#include "base/test_folder.h"

namespace hawser::backend::quic {
namespace {

using namespace std::chrono_literals;

class QlogTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Qlog>> open() {
    Route route;
    route.local = base::numeric_address({"::1", 1000}).value();
    route.remote = base::numeric_address({"10.0.0.2", 2000}).value();
    return Qlog::open(folder_.path(), kId, true, route, now_);
  }
  std::string text() const {
    std::ifstream file(folder_.path("0aff-client.sqlog"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static constexpr std::array<std::uint8_t, 2> kId = {0x0a, 0xff};
  const base::TestFolder folder_{"hawser-qlog"};
  const Instant now_ = Instant::from_ns(0) + 5s;
};

TEST_F(QlogTest, WhatHappensIsASequenceOfJsonTexts) {
  {
    const auto log = *open();
    log->at(now_ + 1500us);
    log->came(1200);
    log->sent(1300);
    log->sent(50);
    log->settle({.smoothed = 2ms, .latest = 3ms, .least = 1ms, .window = 14520, .under_way = 50});
    log->settle({.smoothed = 2ms, .latest = 3ms, .least = 1ms, .window = 14520, .under_way = 50});
    log->handshake_done();
    log->moved(4, 8, true);
    log->closed("the \"end\"\n");
  }
  const std::string all = text();
  EXPECT_NE(all.find("{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\""), std::string::npos) << all;
  EXPECT_NE(all.find("\"ODCID\":\"0aff\""), std::string::npos);
  for (const char* const event :
       {R"({"time":0.000,"name":"connectivity:connection_started","data":{"protocol":"QUIC","src_ip":"::1",)"
        R"("src_port":1000,"dst_ip":"10.0.0.2","dst_port":2000}})",
        R"({"time":1.500,"name":"transport:datagrams_received","data":{"count":1,"raw":[{"length":1200}]}})",
        R"({"time":1.500,"name":"transport:datagrams_sent","data":{"count":2,"raw":[{"length":1300},{"length":50}]}})",
        R"({"time":1.500,"name":"recovery:metrics_updated","data":{"smoothed_rtt":2.000,"latest_rtt":3.000,)"
        R"("min_rtt":1.000,"congestion_window":14520,"bytes_in_flight":50}})",
        R"("name":"connectivity:connection_state_updated","data":{"new":"handshake_complete"}})",
        R"("data":{"stream_id":4,"length":8,"from":"application","to":"transport"}})",
        R"("name":"connectivity:connection_closed","data":{"reason":"the \"end\"\u000a"}})"}) {
    EXPECT_NE(all.find(event), std::string::npos) << event << "\n" << all;
  }
  EXPECT_EQ(std::ranges::count(all, '\x1e'), 8);
  EXPECT_EQ(std::ranges::count(all, '\n'), 8);
}

TEST_F(QlogTest, AFileIsTheUsersAloneAndNoneIsWrittenOver) {
  ASSERT_TRUE(open());
  EXPECT_FALSE(open());
  EXPECT_EQ(Qlog::open(folder_.path("missing"), kId, true, {}, now_).error().code(), Code::kNotFound);
}

TEST_F(QlogTest, AFileIsBounded) {
  {
    const auto log = *open();
    const std::string reason(60'000, 'x');
    for (std::size_t i = 0; i <= Qlog::kBytesMax / reason.size(); ++i) log->closed(reason);
  }
  const std::string all = text();
  EXPECT_LE(all.size(), Qlog::kBytesMax);
  EXPECT_GT(all.size(), Qlog::kBytesMax - 100'000);
  EXPECT_NE(all.find("nothing is added"), std::string::npos);
}

}  // namespace
}  // namespace hawser::backend::quic
