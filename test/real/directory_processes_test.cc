// The file directory between real processes and threads: no update is lost, whoever dies.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include <hawser/directory.h>

#include "base/test_folder.h"

namespace hawser {
namespace {

constexpr int kProcesses = 4;
constexpr int kRounds = 150;
constexpr Duration kPatience = std::chrono::seconds(60);

class DirectoryProcesses : public testing::Test {
 protected:
  std::shared_ptr<Directory> open() { return file_directory(folder_.path()).value(); }

  /// Runs `work` in a child, which exits with 0 when it answers true.
  template <typename Work>
  static pid_t start(Work work) {
    const pid_t child = fork();
    if (child == 0) _exit(work() ? 0 : 1);
    return child;
  }
  static bool ended_well(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  const base::TestFolder folder_{"hawser-processes"};
};

DirectoryEvent await(Directory& directory, Ticket ticket) {
  const Clock& clock = Clock::steady();
  for (const Instant end = clock.now() + kPatience; clock.now() < end;) {
    if (auto event = directory.poll(ticket)) return *std::move(event);
    if (!directory.run_job(clock.now(), end)) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return {.ticket = ticket, .status = Status(Code::kTimedOut, "no answer")};
}

/// Adds one to the number under "count", as often as it takes until nobody was faster.
bool increment(Directory& directory) {
  for (int tries = 0; tries < 100'000; ++tries) {
    const DirectoryEvent got = await(directory, directory.get("count"));
    if (got.status.code() == Code::kTimedOut) return false;
    const bool there = got.status.ok();
    const int value = there ? std::stoi(got.entries[0].value) : 0;
    const PutOptions options{.if_version = there ? got.entries[0].version : 0};
    const DirectoryEvent put = await(directory, directory.put("count", std::to_string(value + 1), options));
    if (put.status.ok()) return true;
    if (put.status.code() != Code::kBusy) return false;
  }
  return false;
}

TEST_F(DirectoryProcesses, NoUpdateIsLost) {
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(start([&] {
      const auto directory = open();
      for (int round = 0; round < kRounds; ++round) {
        if (!increment(*directory)) return false;
      }
      return true;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
  const auto directory = open();
  EXPECT_EQ(await(*directory, directory->get("count")).entries.at(0).value, std::to_string(kProcesses * kRounds));
}

TEST_F(DirectoryProcesses, ACreatedKeyHasOneOwner) {
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(start([&, i] {
      const auto directory = open();
      for (int key = 0; key < 50; ++key) {
        const DirectoryEvent put =
            await(*directory, directory->put("lock/" + std::to_string(key), std::to_string(i), {.create_only = true}));
        const std::string mine = "mine/" + std::to_string(key) + "/" + std::to_string(i);
        if (put.status.ok()) await(*directory, directory->put(mine, "", {}));
        if (!put.status.ok() && put.status.code() != Code::kBusy) return false;
      }
      return true;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
  const auto directory = open();
  EXPECT_EQ(await(*directory, directory->list("lock/")).entries.size(), 50u);
  EXPECT_EQ(await(*directory, directory->list("mine/")).entries.size(), 50u);
}

TEST_F(DirectoryProcesses, WritersThatAreKilledHarmNobody) {
  const std::string large(200'000, 'x');
  const auto directory = open();
  for (int round = 0; round < 20; ++round) {
    const pid_t child = start([&] {
      const auto own = open();
      for (int i = 0;; ++i) await(*own, own->put("k" + std::to_string(i % 3), large, {}));
      return true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + round % 7));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_TRUE(await(*directory, directory->put("after", std::to_string(round), {})).status.ok());
    for (const DirectoryEntry& entry : await(*directory, directory->list("k")).entries) {
      ASSERT_EQ(entry.value.size(), large.size());
    }
  }
  EXPECT_TRUE(directory->warnings().empty());
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_FALSE(file.path().filename().string().starts_with(".tmp-")) << file.path();
    ++files;
  }
  EXPECT_LE(files, 5u);  // Three values, "after" and the lock.
}

/// One handle used by all threads, which also run each other's jobs; one of them follows by a watch.
void hammer(Directory& directory, Directory& watcher) {
  std::atomic<int> running{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string key = "key-" + std::to_string((t * 7 + i) % 20);
        EXPECT_TRUE(await(directory, directory.put(key, std::to_string(i), {})).status.ok());
        if (i % 5 == 0) await(directory, directory.erase(key));
      }
      --running;
    });
  }
  std::set<std::string> seen;
  const Ticket watch = watcher.watch("key-");
  const auto follow = [&] {
    while (watcher.run_job(Clock::steady().now(), Instant::max())) continue;
    while (const auto event = watcher.poll(watch)) {
      for (const DirectoryEntry& entry : event->entries) {
        if (event->kind == DirectoryEvent::Kind::kErased) {
          seen.erase(entry.key);
        } else {
          seen.insert(entry.key);
        }
      }
    }
  };
  while (running > 0) follow();
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> there;
  for (const DirectoryEntry& entry : await(directory, directory.list("key-")).entries) there.insert(entry.key);
  for (const Instant end = Clock::steady().now() + kPatience; seen != there && Clock::steady().now() < end;) follow();
  EXPECT_EQ(seen, there);
}

TEST_F(DirectoryProcesses, ThreadsShareAFileHandle) { hammer(*open(), *open()); }
TEST_F(DirectoryProcesses, ThreadsShareAnInprocHandle) {
  hammer(*inproc_directory("threads"), *inproc_directory("threads"));
}

}  // namespace
}  // namespace hawser
