#include "runtime/recorders.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/test_folder.h"

namespace hawser::runtime {
namespace {

constexpr Instant kOpened = Instant::from_ns(1'000'000);

class RecordersTest : public testing::Test {
 protected:
  Recorder open(const std::string& name) {
    return Recorder::open(folder_.path(), name, {.world = name, .rank = 0, .size = 2, .agent = "node"}, kOpened)
        .value();
  }
  std::size_t count(const std::string& name) {
    return read_flight(folder_.path(name + ".flight")).value().entries.size();
  }

  base::TestFolder folder_;
  Recorders all_;
};

TEST_F(RecordersTest, EachWorldHasItsOwn) {
  Recorders::Place& one = all_.add(open("one"));
  Recorders::Place& two = all_.add(open("two"));
  one->begin({}, kOpened), one->begin({}, kOpened), two->begin({}, kOpened);
  EXPECT_EQ(count("one"), 2U);
  EXPECT_EQ(count("two"), 1U);
  all_.remove(one);
  EXPECT_EQ(list_flights(folder_.path()), std::vector{folder_.path("two.flight")});
  two->begin({}, kOpened);
  EXPECT_EQ(count("two"), 2U);
}

TEST_F(RecordersTest, APlaceMayBeEmptied) {
  Recorders::Place& one = all_.add(open("one"));
  one.reset();
  EXPECT_TRUE(list_flights(folder_.path()).empty());
  all_.disown_after_fork();
  all_.remove(one);
}

TEST_F(RecordersTest, AForkedChildLeavesAllFilesAlone) {
#if defined(__SANITIZE_THREAD__) || defined(HAWSER_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
  all_.add(open("one"));
  all_.add(open("two"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    all_.disown_after_fork();
    { const Recorders gone = std::exchange(all_, {}); }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(list_flights(folder_.path()).size(), 2U);
  EXPECT_TRUE(read_flight(folder_.path("two.flight")).value().is_alive);
}

}  // namespace
}  // namespace hawser::runtime
