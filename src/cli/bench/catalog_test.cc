#include "cli/bench/catalog.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace hawser::cli::bench {
namespace {

TEST(BenchCatalog, PatternsMatchWholeIds) {
  EXPECT_TRUE(matches("shm.write.64k", "shm.write.64k"));
  EXPECT_TRUE(matches("shm.write.64k", "shm.*"));
  EXPECT_TRUE(matches("shm.write.64k", "*.64?"));
  EXPECT_TRUE(matches("shm.write.64k", "tcp.*,shm.*k"));
  EXPECT_TRUE(matches("shm.write.64k", "*"));
  EXPECT_FALSE(matches("shm.write.64k", "shm.write"));
  EXPECT_FALSE(matches("shm.write.64k", "tcp.*,*.1m"));
  EXPECT_FALSE(matches("shm.write.64k", ""));
}

TEST(BenchCatalog, IdsAreUniqueAndEachRowSaysWhatItIs) {
  std::set<std::string> ids;
  for (const Row& row : all_rows({})) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_FALSE(row.what.empty()) << row.id;
    EXPECT_FALSE(row.unit.empty()) << row.id;
    EXPECT_NE(row.target.kind, Target::Kind::kNone) << row.id;
  }
  EXPECT_GT(ids.size(), 80u);
}

// Documents, scripts and older reports name rows by these. New rows may come; none of these may go or be called
// otherwise.
constexpr std::string_view kStableIds = R"(
    shm.small.write8 shm.plan1000x8 shm.notify_rtt shm.write.64k shm.write.1m shm.write.64m shm.write.64k.batch
    shm.read.64k shm.read.1m shm.read.64m shm.read.64k.batch shm.scatter.write.1000x4k shm.scatter.write.1000x16k
    shm.scatter.write.1000x64k shm.scatter.write.8000x4k shm.scatter.write.8000x16k shm.scatter.write.8000x64k
    shm.scatter.read.1000x4k shm.scatter.read.1000x16k shm.scatter.read.1000x64k shm.scatter.read.8000x4k
    shm.scatter.read.8000x16k shm.scatter.read.8000x64k shm.foreign.write.1m shm.foreign.write.64m
    shm.foreign.write.1000x4k shm.foreign.write.1000x16k shm.foreign.write.1000x64k shm.foreign.read.1m
    shm.foreign.read.64m shm.foreign.read.1000x4k shm.foreign.read.1000x16k shm.foreign.read.1000x64k
    shm.consume.64k shm.consume.1m shm.consume.64m tcp.notify_rtt tcp.write.1m.c2 tcp.write.64m.c2 tcp.read.1m.c2
    tcp.read.64m.c2 tcp.write.1m.c1 tcp.write.64m.c1 tcp.read.1m.c1 tcp.read.64m.c1 tcp.write.1m.threads
    tcp.scatter.write.1000x4k tcp.scatter.write.1000x16k tcp.scatter.write.1000x64k tcp.read.1m.threads
    tcp.scatter.read.1000x4k tcp.scatter.read.1000x16k tcp.scatter.read.1000x64k cpu_per_gb.tcp
    mixed.rtt_under_bulk.shm mixed.rtt_under_bulk.tcp ucx.shm.put_lat8 ucx.shm.tag_lat8 ucx.shm.put.4k
    ucx.shm.put.16k ucx.shm.put.64k ucx.shm.put.256k ucx.shm.put.1m ucx.shm.put.4m ucx.shm.put.16m ucx.shm.put.64m
    ucx.shm.get.4k ucx.shm.get.16k ucx.shm.get.64k ucx.shm.get.256k ucx.shm.get.1m ucx.shm.get.4m ucx.shm.get.16m
    ucx.shm.get.64m ucx.shm.tag.4k ucx.shm.tag.16k ucx.shm.tag.64k ucx.shm.tag.256k ucx.shm.tag.1m ucx.shm.tag.4m
    ucx.shm.tag.16m ucx.shm.tag.64m ucx.tcp.put_lat8 ucx.tcp.tag_lat8 ucx.tcp.put.4k ucx.tcp.put.16k ucx.tcp.put.64k
    ucx.tcp.put.256k ucx.tcp.put.1m ucx.tcp.put.4m ucx.tcp.put.16m ucx.tcp.put.64m ucx.tcp.get.4k ucx.tcp.get.16k
    ucx.tcp.get.64k ucx.tcp.get.256k ucx.tcp.get.1m ucx.tcp.get.4m ucx.tcp.get.16m ucx.tcp.get.64m ucx.tcp.tag.4k
    ucx.tcp.tag.16k ucx.tcp.tag.64k ucx.tcp.tag.256k ucx.tcp.tag.1m ucx.tcp.tag.4m ucx.tcp.tag.16m ucx.tcp.tag.64m
    ucx.verbs.put_lat8 ucx.verbs.tag_lat8 ucx.verbs.put.4k ucx.verbs.put.16k ucx.verbs.put.64k ucx.verbs.put.256k
    ucx.verbs.put.1m ucx.verbs.put.4m ucx.verbs.put.16m ucx.verbs.put.64m ucx.verbs.get.4k ucx.verbs.get.16k
    ucx.verbs.get.64k ucx.verbs.get.256k ucx.verbs.get.1m ucx.verbs.get.4m ucx.verbs.get.16m ucx.verbs.get.64m
    ucx.verbs.tag.4k ucx.verbs.tag.16k ucx.verbs.tag.64k ucx.verbs.tag.256k ucx.verbs.tag.1m ucx.verbs.tag.4m
    ucx.verbs.tag.16m ucx.verbs.tag.64m verbs.put_lat8 verbs.notify_lat8 verbs.message_lat8 verbs.write_lat8
    verbs.blocks.4096x16k verbs.write.4k verbs.write.16k verbs.write.64k verbs.write.256k verbs.write.1m
    verbs.write.4m verbs.write.16m verbs.write.64m verbs.read.4k verbs.read.16k verbs.read.64k verbs.read.256k
    verbs.read.1m verbs.read.4m verbs.read.16m verbs.read.64m plan.index100k table.build1m table.bytes1m
    card.bytes100k card.load100k submit.10 submit.100k idle.cpu100 idle.cpu100.tcp open.agent first.write.shm
    first.write.tcp shm.poll_idle)";

TEST(BenchCatalog, IdsAreStable) {
  std::set<std::string> ids;
  for (const Row& row : all_rows({})) ids.insert(row.id);
  std::istringstream words{std::string(kStableIds)};
  std::size_t count = 0;
  for (std::string id; words >> id; ++count) EXPECT_TRUE(ids.contains(id)) << id << " is gone";
  EXPECT_EQ(count, 168u);
}

TEST(BenchCatalog, SizesAreSpelledAsInIds) {
  EXPECT_EQ(size_id(8), "8");
  EXPECT_EQ(size_id(4096), "4k");
  EXPECT_EQ(size_id(64u << 20), "64m");
}

}  // namespace
}  // namespace hawser::cli::bench
