#include "sim/course_maker.h"

#include <algorithm>

#include "sim/test_users.h"

namespace hawser::simulation {
namespace {

using CourseMakerTest = TwoUsersTest;

TEST_F(CourseMakerTest, APlanHasTheBytesOfItsLeases) {
  CourseMaker maker(theater, rng);
  for (int i = 0; i < 20; ++i) {
    const Course* course = maker.make(a, b);
    if (course == nullptr) continue;
    std::uint64_t bytes = 0;
    for (const Pair& pair : course->pairs) bytes += pair.local_lease.size;
    EXPECT_EQ(course->plan.bytes(), bytes);
    EXPECT_EQ(course->to, &b);
  }
  EXPECT_FALSE(a.courses.empty());
}

TEST_F(CourseMakerTest, ALifeKeepsSoManyIdleCourses) {
  CourseMaker maker(theater, rng);
  std::size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(maker.make_room(a)) << "all are idle";
    static_cast<void>(maker.make(a, b));
    most = std::max(most, a.courses.size());
  }
  EXPECT_EQ(most, 24u);
}

}  // namespace
}  // namespace hawser::simulation
