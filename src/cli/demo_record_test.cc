#include "cli/demo_record.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

TEST(DemoRecord, SurvivesTheWay) {
  const Record record{3, 17, {5, 1, 4000000000u}, {1, 2, 0xffffffffffffffffu}};
  const auto again = decode_record(encode(record));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->pass, 3u);
  EXPECT_EQ(again->request, 17u);
  EXPECT_EQ(again->blocks, record.blocks);
  EXPECT_EQ(again->layer_sums, record.layer_sums);
}

TEST(DemoRecord, RefusesEveryTruncationAndEveryExtension) {
  const std::string bytes = encode(Record{1, 2, {3, 4}, {5}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_record(bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_record(bytes + "x"));
}

TEST(DemoRecord, AcksAndRecordsAreToldApart) {
  const std::string ack = encode(Ack{1, 2});
  ASSERT_TRUE(decode_ack(ack));
  EXPECT_EQ(decode_ack(ack)->request, 2u);
  EXPECT_FALSE(decode_record(ack));
  EXPECT_FALSE(decode_ack(encode(Record{1, 2, {}, {}})));
  EXPECT_FALSE(decode_ack(ack.substr(1)));
}

}  // namespace
}  // namespace hawser::cli
