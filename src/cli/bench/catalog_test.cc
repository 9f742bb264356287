#include "cli/bench/catalog.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(BenchCatalog, SizesAreSpelledAsInIds) {
  EXPECT_EQ(size_id(8), "8");
  EXPECT_EQ(size_id(4096), "4k");
  EXPECT_EQ(size_id(64u << 20), "64m");
}

}  // namespace
}  // namespace hawser::cli::bench
