// Buffers that are released while a stopped process is inside: who is told, when, and how long anybody waits.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "sides.h"

#ifdef HAWSER_SANITIZE_ADDRESS_UNDEFINED
#include <sanitizer/lsan_interface.h>
#endif

namespace hawser::rdma {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBufferSize = 8 << 20;
constexpr std::byte kFlood{0xee};

/// A process that writes without end to the buffer it was told of last. Made before the test has any thread.
class User {
 public:
  User() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)::close(ends[1]);
      run(ends[0]);
    }
    (void)::close(ends[0]);
    to_ = ends[1];
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  ~User() { kill(); }

  void tell(const RemoteBuffer& buffer) const {
    const std::string handle = buffer.encode();
    const std::uint32_t size = static_cast<std::uint32_t>(handle.size());
    ASSERT_EQ(::write(to_, &size, sizeof(size)), static_cast<ssize_t>(sizeof(size)));
    ASSERT_EQ(::write(to_, handle.data(), size), static_cast<ssize_t>(size));
  }
  void stop() const {
    (void)::kill(pid_, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status)) << "the process that writes is gone";
  }
  void resume() const { (void)::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
    (void)::close(to_);
    pid_ = 0;
  }

 private:
  [[noreturn]] static void run(int from) {
    Side side("user-" + std::to_string(::getpid()), Way{"shm", true});
    std::vector<std::byte> bytes(kBufferSize, kFlood);
    const LocalMemory source = side.memory(bytes);
    RemoteBuffer buffer;
    for (;;) {
      pollfd next{.fd = from, .events = POLLIN, .revents = 0};
      if (!buffer.valid() || ::poll(&next, 1, 0) > 0) {
        std::uint32_t size = 0;
        if (::read(from, &size, sizeof(size)) != static_cast<ssize_t>(sizeof(size))) ::_exit(0);
        std::string handle(size, '\0');
        if (::read(from, handle.data(), size) != static_cast<ssize_t>(size)) ::_exit(1);
        buffer = RemoteBuffer::decode(handle).value();
      }
      (void)side.backend->submit({{.type = OpType::kWriteFromLocal, .local = source, .remote = buffer}}, kLong)->wait();
    }
  }

  pid_t pid_ = 0;
  int to_ = -1;
};

class RdmaRelease : public testing::Test {
 protected:
  /// Buffers of this owner, each with a stopped process inside. They are released meanwhile, or not.
  void open(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) users.push_back(std::make_unique<User>());
    owner.emplace("owner", Way{"shm", false});
    for (const auto& user : users) hold(*user);
  }
  void hold(const User& user) {
    // A process that is stopped between two pieces is not inside.
    for (int tries = 0; tries < 100; ++tries) {
      std::vector<std::byte>& bytes = memories.emplace_back(kBufferSize);
      const RemoteBuffer buffer = owner->backend->request_buffer(memories.size(), owner->memory(bytes)).value();
      user.tell(buffer);
      for (const Instant until = Clock::steady().now() + kLong; first_of(bytes) != kFlood;) {
        ASSERT_LT(Clock::steady().now(), until) << "nothing is written";
        (void)owner->agent.poll();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(137 * tries));
      user.stop();
      Batch first = owner->backend->release(buffer, kShort).value();
      if (!first.done()) {
        buffers.push_back(buffer);
        firsts.push_back(std::move(first));
        return;
      }
      user.resume();
    }
    FAIL() << "the process was never stopped inside";
  }
  void TearDown() override {
    for (const auto& user : users) user->kill();
    owner.reset();
  }
  static std::byte first_of(std::vector<std::byte>& bytes) {
    return std::atomic_ref<std::byte>(bytes.front()).load(std::memory_order_relaxed);
  }
  Batch release(Duration timeout) { return owner->backend->release(buffers.front(), timeout).value(); }
  void serve_until(const Batch& batch) {
    for (const Instant until = Clock::steady().now() + kLong; !batch.done() && Clock::steady().now() < until;) {
      (void)owner->backend->serve();
      (void)owner->agent.poll();
    }
    ASSERT_TRUE(batch.done()) << "the release was never told of";
  }

  static constexpr Duration kShort = 300ms;
  std::vector<std::unique_ptr<User>> users;
  std::optional<Side> owner;
  std::deque<std::vector<std::byte>> memories;
  std::vector<RemoteBuffer> buffers;
  std::vector<Batch> firsts;
};

TEST_F(RdmaRelease, ReleasesThatMeetTheFirstEndWithItAtWhateverMoment) {
  ASSERT_NO_FATAL_FAILURE(open(1));
  std::atomic<bool> over{false};
  std::thread looking([&] {
    while (!over.load()) (void)owner->backend->serve();
  });
  std::vector<Batch> others;
  int early = 0;
  for (int i = 0; i < 3000; ++i) {
    others.push_back(release(kLong));
    early += others.back().done() ? 1 : 0;
  }
  over.store(true);
  looking.join();
  EXPECT_EQ(early, 0) << "of 3000 were told that there is no such buffer, while somebody is inside";
  users.front()->kill();
  for (const Batch& each : others) {
    serve_until(each);
    ASSERT_TRUE(each.status().ok()) << each.status().to_string();
  }
}

TEST_F(RdmaRelease, EachHasATimeoutOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(open(1));
  serve_until(firsts.front());
  EXPECT_EQ(firsts.front().status().code(), Code::kTimedOut) << firsts.front().status().to_string();
  const Batch longer = release(kLong), second = release(20ms);
  Bell bell = Bell::open().value();
  ASSERT_TRUE(second.tell(bell, 7));
  serve_until(second);
  EXPECT_EQ(second.status().code(), Code::kTimedOut) << second.status().to_string();
  EXPECT_EQ(bell.take(), std::vector<std::uint64_t>{7});
  EXPECT_FALSE(longer.done());
  users.front()->kill();
  serve_until(longer);
  EXPECT_TRUE(longer.status().ok()) << longer.status().to_string();
  EXPECT_EQ(release(kLong).status().code(), Code::kNotFound);
}

TEST_F(RdmaRelease, ManyThatAreHeldCostTheBackendsEndNoMoreThanOne) {
#ifdef HAWSER_SANITIZE_ADDRESS_UNDEFINED
  const __lsan::ScopedDisabler meant;  // What somebody is inside of is never let go.
#endif
  ASSERT_NO_FATAL_FAILURE(open(3));
  const Instant before = Clock::steady().now();
  owner->backend.reset();
  const Duration took = Clock::steady().now() - before;
  EXPECT_GE(took, 4s) << "nobody was waited for";
  EXPECT_LT(took, 9s);
}

}  // namespace
}  // namespace hawser::rdma
