// When ports let go of paths.

#include "agent/engine/path_releases.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class PathReleasesTest : public ::testing::Test {
 protected:
  Rig rig_;
  PathReleases& releases_ = rig_.engine.ports().releases();
  const std::vector<backend::Path*>& released_ = rig_.first.port->released;
  HandPath path_;
};

TEST_F(PathReleasesTest, AtOnceWhereNoEventsAreRead) {
  releases_.release(0, &path_);
  EXPECT_EQ(released_, std::vector<backend::Path*>{&path_});
  EXPECT_FALSE(releases_.is_released(&path_));
}

TEST_F(PathReleasesTest, AfterTheEventsWhereSomeAreRead) {
  releases_.begin_reading();
  releases_.release(0, &path_);
  releases_.part();
  EXPECT_TRUE(released_.empty());
  EXPECT_TRUE(releases_.is_released(&path_));
  releases_.end_reading();
  EXPECT_EQ(released_.size(), 1u);
}

TEST_F(PathReleasesTest, WithTheNextTurnWhereTheCallerDoesNotWaitForIt) {
  {
    const PathReleases::Later later(releases_, true);
    releases_.release(0, &path_);
  }
  EXPECT_TRUE(releases_.has_parting());
  EXPECT_TRUE(releases_.is_released(&path_));
  releases_.part();
  EXPECT_EQ(released_.size(), 1u);
  EXPECT_FALSE(releases_.has_parting());
  {
    const PathReleases::Later later(releases_, false);
    releases_.release(0, &path_);
  }
  EXPECT_EQ(released_.size(), 2u);
}

}  // namespace
}  // namespace hawser::agent
