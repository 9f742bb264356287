#include "backend/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/host_memory.h"

namespace hawser::backend {
namespace {

TEST(Arena, IsWritableAndRoundedUp) {
  auto arena = Arena::create(5000, Rights::kReadWrite, HugePages::kOff).value();
  EXPECT_EQ(arena->bytes().size() % arena->page_size(), 0u);
  ASSERT_GE(arena->bytes().size(), 5000u);
  std::memset(arena->bytes().data(), 0x5a, arena->bytes().size());
  void* other = ::mmap(nullptr, arena->bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(std::memcmp(other, arena->bytes().data(), arena->bytes().size()), 0);
  ::munmap(other, arena->bytes().size());
}

TEST(Arena, IsSealed) {
  auto arena = Arena::create(8192, Rights::kReadWrite, HugePages::kOff).value();
  EXPECT_NE(::ftruncate(arena->fd(), 4096), 0);
  EXPECT_NE(::ftruncate(arena->fd(), 1 << 20), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Arena, ReadOnlyCannotBeMappedForWritingAgain) {
  auto arena = Arena::create(8192, Rights::kRead, HugePages::kOff).value();
  arena->bytes()[0] = std::byte{1};  // the owner may
  EXPECT_EQ(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd(), 0), MAP_FAILED);
  void* other = ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, arena->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(*static_cast<std::byte*>(other), std::byte{1});
  ::munmap(other, 8192);
}

TEST(Arena, AbandonedMemoryStaysMapped) {
  auto arena = Arena::create(4096, Rights::kReadWrite, HugePages::kOff).value();
  std::byte* base = arena->bytes().data();
  const std::size_t size = arena->bytes().size();
  arena->abandon();
  arena.reset();
  *base = std::byte{7};
  EXPECT_EQ(*base, std::byte{7});
  ::munmap(base, size);
}

TEST(Arena, BadSizesAndMissingHugePagesAreSaid) {
  EXPECT_EQ(Arena::create(0, Rights::kRead, HugePages::kOff).error().code(), Code::kInvalid);
  EXPECT_EQ(Arena::create(SIZE_MAX, Rights::kRead, HugePages::kAuto).error().code(), Code::kInvalid);
  auto automatic = Arena::create(4u << 20, Rights::kReadWrite, HugePages::kAuto);
  ASSERT_TRUE(automatic) << automatic.error().to_string();
  auto huge = Arena::create(4u << 20, Rights::kReadWrite, HugePages::kRequire);
  if (!huge) {
    EXPECT_FALSE(huge.error().advice().empty());
  } else {
    EXPECT_GT((*huge)->page_size(), 4096u);
  }
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool put(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

/// A control group of the test's own with a limit, in which the child is; of either version. Empty where none may be.
std::string make_group(pid_t child, std::uint64_t limit) {
  const std::string name = "/hawser-test-" + std::to_string(child);
  for (const auto& [mount, file] :
       {std::pair<std::string, std::string>{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes"},
        std::pair<std::string, std::string>{"/sys/fs/cgroup", "/memory.max"}}) {
    const std::string folder = mount + name;
    if (::mkdir(folder.c_str(), 0700) != 0) continue;
    if (put(folder + file, std::to_string(limit)) && put(folder + "/cgroup.procs", std::to_string(child)))
      return folder;
    ::rmdir(folder.c_str());
  }
  return {};
}

// Without a look at the group the kernel kills the process while it takes the pages.
TEST(TrialsArena, MoreThanTheContainerHasIsRefusedByName) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char word = 0;
    if (::read(go[0], &word, 1) != 1) ::_exit(9);
    const auto fits = Arena::create(8u << 20, Rights::kReadWrite, HugePages::kOff);
    if (!fits) ::_exit(1);
    const auto arena = Arena::create(256u << 20, Rights::kReadWrite, HugePages::kAuto);
    if (arena || arena.error().code() != Code::kBusy) ::_exit(2);
    ::_exit(arena.error().to_string().find("memory limit of 67108864 bytes") == std::string::npos ? 3 : 0);
  }
  const std::string group = make_group(child, 64u << 20);
  if (group.empty()) ::kill(child, SIGKILL);
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  const int code = exit_code_of(child);
  ::close(go[0]);
  ::close(go[1]);
  if (group.empty()) GTEST_SKIP() << "no control group may be made here";
  ::rmdir(group.c_str());
  EXPECT_EQ(code, 0) << "1: what fits was refused, 2: not kBusy, 3: the limit is not named, 1009: it was killed";
}

// The kernel would end this process, or others, while it takes the pages.
TEST(TrialsArena, MoreThanTheHostHasIsRefusedByName) {
  if (!base::host_memory_left()) GTEST_SKIP() << "/proc/meminfo does not tell what is left";
  const Status status = Arena::create(std::size_t{1} << 46, Rights::kReadWrite, HugePages::kOff).error();
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_NE(status.to_string().find("the host has"), std::string::npos) << status.to_string();
}

TEST(TrialsArena, MoreThanTheProcessesFileLimitIsRefusedByName) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(9);
    const auto arena = Arena::create(2 << 20, Rights::kReadWrite, HugePages::kOff);
    if (arena || arena.error().code() != Code::kBusy) ::_exit(2);
    ::_exit(arena.error().to_string().find("RLIMIT_FSIZE = 1048576") == std::string::npos ? 3 : 0);
  }
  EXPECT_EQ(exit_code_of(child), 0) << "2: not kBusy, 3: the limit is not named, above 1000: ended by a signal";
}

}  // namespace
}  // namespace hawser::backend
