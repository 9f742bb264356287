#include "base/intrusive_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hawser::base {
namespace {

struct Job {
  explicit Job(int n) : number(n) {}
  virtual ~Job() = default;
  int number;
  ListHook hook;
  ListHook other_hook;
};
using Jobs = IntrusiveList<Job, &Job::hook>;
using OtherJobs = IntrusiveList<Job, &Job::other_hook>;

template <typename List>
std::vector<int> numbers(List& list) {
  std::vector<int> result;
  for (const Job& job : list) result.push_back(job.number);
  return result;
}

TEST(IntrusiveList, KeepsOrder) {
  Job a(1), b(2), c(3), d(4);
  Jobs jobs;
  EXPECT_TRUE(jobs.empty());
  EXPECT_EQ(jobs.front(), nullptr);
  EXPECT_EQ(jobs.pop_front(), nullptr);
  jobs.push_back(b);
  jobs.push_back(d);
  jobs.push_front(a);
  jobs.insert_before(d, c);
  EXPECT_EQ(numbers(jobs), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(jobs.front(), &a);
  EXPECT_EQ(jobs.back(), &d);
  Jobs::erase(c);
  Jobs::erase(c);
  EXPECT_FALSE(c.hook.is_linked());
  EXPECT_EQ(jobs.pop_front(), &a);
  EXPECT_EQ(numbers(jobs), (std::vector{2, 4}));
}

TEST(IntrusiveList, OneElementInTwoLists) {
  Job a(1), b(2);
  Jobs jobs;
  OtherJobs others;
  jobs.push_back(a);
  jobs.push_back(b);
  others.push_back(b);
  others.push_back(a);
  EXPECT_EQ(numbers(jobs), (std::vector{1, 2}));
  EXPECT_EQ(numbers(others), (std::vector{2, 1}));
}

TEST(IntrusiveList, TheBodyOfALoopMayEraseItsElement) {
  Job a(1), b(2), c(3);
  Jobs jobs;
  for (Job* job : {&a, &b, &c}) jobs.push_back(*job);
  for (Job& job : jobs) {
    if (job.number != 2) Jobs::erase(job);
  }
  EXPECT_EQ(numbers(jobs), (std::vector{2}));
}

TEST(IntrusiveList, EitherSideMayDieFirst) {
  Job outlives(1);
  {
    Jobs jobs;
    jobs.push_back(outlives);
    {
      Job dies(2);
      jobs.push_back(dies);
    }
    EXPECT_EQ(numbers(jobs), (std::vector{1}));
  }
  EXPECT_FALSE(outlives.hook.is_linked());
}

TEST(IntrusiveListDeathTest, OneListAtATime) {
  Job a(1);
  Jobs one;
  Jobs two;
  one.push_back(a);
  EXPECT_DEATH(two.push_back(a), "one list at a time");
}

}  // namespace
}  // namespace hawser::base
