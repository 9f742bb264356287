#include "base/status_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

namespace fs = std::filesystem;

class StatusPageTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".status"; }
  StatusPage create(const std::string& name) { return StatusPage::create(folder_, name).value(); }
  /// By a process that dies without a word.
  void leave_behind(const std::string& name, std::time_t seconds_ago) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto page = StatusPage::create(folder_, name);
      if (!page || !page->publish("last words").ok()) ::_exit(1);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const timespec then{std::time(nullptr) - seconds_ago, 0};
    const std::array<timespec, 2> times{then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(name).c_str(), times.data(), 0), 0);
  }

  const TestFolder root_;
  const std::string folder_ = root_.path();
};

TEST_F(StatusPageTest, WhatIsPublishedIsRead) {
  {
    StatusPage page = create("one");
    struct stat made {};
    ASSERT_EQ(::stat(page.path().c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0600u);
    EXPECT_EQ(list_status_pages(folder_), std::vector{path("one")});
    StatusReading reading = read_status_page(path("one")).value();
    EXPECT_EQ(reading.text, "");
    EXPECT_TRUE(reading.is_alive);
    EXPECT_EQ(reading.process, static_cast<std::uint32_t>(::getpid()));
    for (const std::string text : {"first", "second, and longer", "3", ""}) {
      ASSERT_TRUE(page.publish(text).ok());
      EXPECT_EQ(read_status_page(path("one"))->text, text);
    }
    page.worked(Instant::from_ns(77));
    page.sleeps(true);
    reading = read_status_page(path("one")).value();
    EXPECT_EQ(reading.worked_at.ns(), 77);
    EXPECT_TRUE(reading.is_asleep);
    EXPECT_FALSE(StatusPage::create(folder_, "one")) << "there is one already";
  }
  EXPECT_TRUE(list_status_pages(folder_).empty());
}

TEST_F(StatusPageTest, ATextMayBeAsLongAsItsPlace) {
  StatusPage page = create("one");
  const std::string most(StatusPage::kTextMax, 'x');
  ASSERT_TRUE(page.publish(most).ok());
  EXPECT_EQ(page.publish(most + "x").code(), Code::kInvalid);
  EXPECT_EQ(read_status_page(path("one"))->text, most);
}

TEST_F(StatusPageTest, AReaderNeverSeesHalfOfATextAndHalfOfAnother) {
  StatusPage page = create("one");
  ASSERT_TRUE(page.publish(std::string(20'000, 'a')).ok());
  std::atomic<bool> is_over = false;
  std::thread publisher([&] {
    for (int i = 0; !is_over; ++i) {
      ASSERT_TRUE(page.publish(std::string(10'000 + static_cast<std::size_t>(i % 7) * 1000, "abc"[i % 3])).ok());
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const Result<StatusReading> reading = read_status_page(path("one"));
    if (!reading) {
      EXPECT_EQ(reading.error().code(), Code::kBusy);
      continue;
    }
    EXPECT_EQ(reading->text.find_first_not_of(reading->text[0]), std::string::npos);
  }
  is_over = true;
  publisher.join();
}

TEST_F(StatusPageTest, ThePageOfTheDeadStaysForAnHour) {
  leave_behind("dead", 3590);
  {
    const StatusPage newcomer = create("one");
    const StatusReading reading = read_status_page(path("dead")).value();
    EXPECT_FALSE(reading.is_alive);
    EXPECT_EQ(reading.text, "last words");
  }
  leave_behind("longer", 3610);
  const StatusPage newcomer = create("one");
  EXPECT_FALSE(fs::exists(path("longer")));
  EXPECT_TRUE(fs::exists(path("dead")));
}

TEST_F(StatusPageTest, WhereManyDiedTheyGoSooner) {
  for (int i = 0; i < 64; ++i) leave_behind("dead" + std::to_string(i), 70);
  { const StatusPage newcomer = create("dead-newcomer"); }
  EXPECT_EQ(list_status_pages(folder_).size(), 64u);
  leave_behind("deadly-young", 10);
  { const StatusPage newcomer = create("one"); }
  EXPECT_EQ(list_status_pages(folder_).size(), 65u) << "a newcomer of another name looks at none of these";
  { const StatusPage newcomer = create("dead-newcomer"); }
  EXPECT_EQ(list_status_pages(folder_), std::vector{path("deadly-young")});
}

// Otherwise a page that is being made could not be locked while somebody looks at it.
TEST_F(StatusPageTest, ThoseWhoLookAreInNobodysWay) {
  std::atomic<bool> is_over = false;
  std::thread reader([&] {
    while (!is_over) {
      for (const std::string& page : list_status_pages(folder_)) (void)read_status_page(page).has_value();
    }
  });
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(StatusPage::create(folder_, "one")) << i;
  is_over = true;
  reader.join();
}

TEST_F(StatusPageTest, WhereFilesMayNotGrowTheProcessLivesAndTheTextBeforeStays) {
  StatusPage page = create("one");
  ASSERT_TRUE(page.publish("before").ok());
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{4096, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status refused = page.publish("after");
  const Result<StatusPage> other = StatusPage::create(folder_, "two");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(refused.code(), Code::kBusy);
  EXPECT_EQ(other.error().code(), Code::kBusy);
  EXPECT_EQ(read_status_page(path("one"))->text, "before");
}

TEST_F(StatusPageTest, APageOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const StatusPage page = create("one");
  ASSERT_EQ(::chown(path("one").c_str(), 12345, 12345), 0);
  EXPECT_NE(read_status_page(path("one")).error().message().find("12345"), std::string::npos);
}

TEST_F(StatusPageTest, AForkedChildLeavesItToTheParent) {
  StatusPage page = create("one");
  const pid_t child = ::fork();
  if (child == 0) {
    page.disown_after_fork();
    { const StatusPage gone(std::move(page)); }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(read_status_page(path("one"))->is_alive);
}

TEST_F(StatusPageTest, APublisherThatIsStoppedIsTold) {
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto page = StatusPage::create(folder_, "one");
    (void)!::write(pipes[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(pipes[0], &byte, 1), 1);
  EXPECT_FALSE(read_status_page(path("one"))->is_stopped);
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(read_status_page(path("one"))->is_stopped);
  EXPECT_TRUE(read_status_page(path("one"))->is_alive);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(read_status_page(path("one"))->is_alive);
  for (const int end : pipes) ::close(end);
}

TEST_F(StatusPageTest, WhatIsNoPageIsRefused) {
  const auto refusal = [&] { return read_status_page(path("odd")).error(); };
  EXPECT_EQ(refusal().code(), Code::kNotFound);
  std::ofstream(path("odd")) << "hello";
  EXPECT_EQ(refusal().code(), Code::kCorrupt);
  std::string whole;
  {
    StatusPage page = create("one");
    ASSERT_TRUE(page.publish("text").ok());
    std::ifstream file(path("one"), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto write = [&](std::size_t at, char value) {
    std::string changed = whole;
    changed[at] = value;
    std::ofstream(path("odd"), std::ios::binary) << changed;
  };
  write(0, 0);
  EXPECT_NE(refusal().message().find("begin"), std::string::npos);
  write(8, 2);
  EXPECT_NE(refusal().message().find("version"), std::string::npos);
  std::ofstream(path("odd"), std::ios::binary) << whole;
  EXPECT_EQ(read_status_page(path("odd"))->text, "text");
  fs::remove(path("odd"));
  ASSERT_EQ(::symlink("/etc/passwd", path("odd").c_str()), 0);
  EXPECT_FALSE(read_status_page(path("odd")));
}

}  // namespace
}  // namespace hawser::base
