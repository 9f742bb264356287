// fork: in the child the parent's worlds refuse every call at once, and the parent's ranks notice nothing.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>

#include "../sanitized.h"
#include "local_worlds.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

/// Exit status of a child that runs `child`, which returns less than 100. A child that hangs is killed.
int in_child(const std::function<int()>& child) {
  constexpr unsigned kPatience = 20;  // Seconds.
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(kPatience);
    ::_exit(child());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

bool names_opener(const Status& status, pid_t opener) {
  return status.code() == Code::kInvalid && status.to_string().find(std::to_string(opener)) != std::string::npos;
}

/// Gives 0, or which call of the child did not answer as it should.
int try_all_calls(World& world, Request& receive, pid_t opener) {
  std::array<std::byte, 8> bytes = {};
  if (!names_opener(receive.wait(5s), opener)) return 1;
  if (receive.done()) return 2;
  receive.cancel();
  if (!names_opener(world.isend(bytes, 1, 0).wait(5s), opener)) return 3;
  if (!names_opener(world.ireceive(bytes, 1, 0).wait(5s), opener)) return 4;
  if (!names_opener(world.ibarrier().wait(5s), opener)) return 5;
  if (!names_opener(world.icall(1, "stay", {}).wait(5s), opener)) return 6;
  if (!names_opener(world.agree(true, 5s).error(), opener)) return 7;
  if (!names_opener(world.shrink({}, 5s).error(), opener)) return 8;
  if (!names_opener(world.recovered(5s).error(), opener)) return 9;
  if (!names_opener(world.split(0, 0).error(), opener)) return 10;
  if (!names_opener(world.duplicate().error(), opener)) return 11;
  if (!names_opener(world.register_handler("x", [](const IncomingCall&) { return CallAnswer(); }), opener)) return 12;
  if (world.probe(kAnySource, std::nullopt, 5s)) return 13;
  if (!world.failures(0, 5s).empty()) return 14;
  if (!names_opener(world.leave(5s), opener)) return 15;
  if (!names_opener(world.shutdown(5s), opener)) return 16;
  if (!names_opener(world.close(5s), opener)) return 17;
  return 0;
}

class WorldForkTest : public LocalWorlds {};

TEST_F(WorldForkTest, ACallOfTheChildAnswersAtOnce) {
  if (kIsSanitized) GTEST_SKIP() << "a thread may hold a sanitizer's lock when the process forks";
  open(2, "shm", RecoveryPolicy::kAutomatic);
  std::atomic<bool> stays = true;
  for (World& world : worlds_) {
    const Status status = world.register_handler("stay", [&](const IncomingCall&) -> Result<CallAnswer> {
      stays.wait(true);
      return CallAnswer();
    });
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  std::array<std::byte, 8> bytes = {};
  Request receive = worlds_[0].ireceive(bytes, 1, 7);
  Request call = worlds_[1].icall(0, "stay", {});  // A thread of rank 0 is in the handler, or soon will be.
  const pid_t opener = ::getpid();
  EXPECT_EQ(in_child([&] {
              const auto begun = std::chrono::steady_clock::now();
              if (const int wrong = try_all_calls(worlds_[0], receive, opener); wrong != 0) return wrong;
              return std::chrono::steady_clock::now() - begun < 4s ? 0 : 99;
            }),
            0);
  EXPECT_EQ(in_child([&] {  // All destructors, too.
              receive = Request();
              worlds_.clear();
              return 0;
            }),
            0);
  ASSERT_TRUE(worlds_[1].isend(bytes, 0, 7).wait(60s).ok());
  EXPECT_TRUE(receive.wait(60s).ok());
  stays = false;
  stays.notify_all();
  EXPECT_TRUE(call.wait(60s).ok());
  meet(worlds_);
  EXPECT_TRUE(worlds_[0].failed().empty());
  EXPECT_TRUE(worlds_[1].failed().empty());
}

}  // namespace
}  // namespace hawser
