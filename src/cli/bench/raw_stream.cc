#include "cli/bench/raw_stream.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <thread>

#include "base/fd.h"
#include "base/try.h"
#include "cli/bench/cores.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kNoLast = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLeadPasses =
    16;                                   // more than a sender can be ahead: socket buffers hold less than a few passes
constexpr std::uint64_t kWarmPasses = 2;  // not timed: they fill the buffers
constexpr Duration kRawPatience = std::chrono::seconds(20);
constexpr int kBlockingSliceUs = 20'000;  // how often a blocked side looks whether it is over
constexpr std::size_t kGatherMax = 64;

// One socket's share of the blocks in one pass.
class Share {
 public:
  Share(int fd, const RawPass& pass, std::size_t first, std::size_t count)
      : fd_(fd), pass_(pass), first_(first), count_(count) {}

  void rewind() { next_ = within_ = 0; }
  bool done() const { return next_ == count_; }
  bool fresh() const { return next_ == 0 && within_ == 0; }

  /// One call. 0: it would block; negative: the connection broke.
  ssize_t move(const RawWay& way, RawSide side) {
    std::array<iovec, kGatherMax> parts;
    std::size_t used = 0;
    std::uint64_t skip = within_, left = way.call_bytes;
    for (std::size_t i = next_; i < count_ && used < std::min(way.call_blocks, kGatherMax) && left > 0; ++i, skip = 0) {
      const std::uint64_t size = std::min(pass_.block_bytes - skip, left);
      parts[used++] = {pass_.base + pass_.offsets[first_ + i] + skip, size};
      left -= size;
    }
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = used;
    const int flags = MSG_NOSIGNAL | (way.blocking ? 0 : MSG_DONTWAIT);
    const ssize_t n = side == RawSide::kSend ? sendmsg(fd_, &message, flags) : recvmsg(fd_, &message, flags);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) return -1;
    const std::uint64_t moved = within_ + static_cast<std::uint64_t>(n);
    next_ += moved / pass_.block_bytes;
    within_ = moved % pass_.block_bytes;
    return n;
  }

 private:
  int fd_;
  const RawPass& pass_;
  std::size_t first_, count_;
  std::size_t next_ = 0;
  std::uint64_t within_ = 0;  ///< Bytes of block next_ that went already.
};

// The work of one thread: the shares of one or of all sockets.
class Group {
 public:
  Group(std::vector<Share> shares, const RawWay& way, RawSide side)
      : shares_(std::move(shares)), way_(way), side_(side) {}

  /// One pass. False: `over` came before its first byte.
  template <typename Over>
  Result<bool> run_pass(Over over) {
    for (Share& share : shares_) share.rewind();
    const std::int64_t deadline = now_ns() + kRawPatience.count();
    for (std::uint32_t idle = 0;;) {
      bool all = true, moved = false;
      for (Share& share : shares_) {
        if (share.done()) continue;
        const ssize_t n = share.move(way_, side_);
        if (n < 0) return base::errno_status(Code::kDisconnected, "a raw stream", errno);
        moved = moved || n > 0;
        all = all && share.done();
      }
      if (all) return true;
      idle = moved ? 0 : idle + 1;
      if (idle == 0 || (!way_.blocking && idle % 256 != 0)) continue;
      if (std::all_of(shares_.begin(), shares_.end(), [](const Share& s) { return s.fresh(); }) && over()) return false;
      if (now_ns() > deadline) return Status(Code::kTimedOut, "a raw stream stands still");
    }
  }

 private:
  std::vector<Share> shares_;
  RawWay way_;
  RawSide side_;
};

std::vector<Group> groups_of(std::span<const int> sockets, const RawPass& pass, const RawWay& way, RawSide side) {
  std::vector<Group> groups;
  std::vector<Share> shares;
  const std::size_t blocks = pass.offsets.size();
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const std::size_t first = blocks * i / sockets.size();
    shares.emplace_back(sockets[i], pass, first, blocks * (i + 1) / sockets.size() - first);
    if (way.threads || i + 1 == sockets.size()) groups.emplace_back(std::exchange(shares, {}), way, side);
  }
  return groups;
}

// A blocked receiver must wake up to see that it is over.
void set_patience(std::span<const int> sockets, bool blocking) {
  const timeval slice = {0, blocking ? kBlockingSliceUs : 0};
  for (const int fd : sockets) {
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof(slice));
  }
}

// Runs one function per group; those after the first on threads of their own.
template <typename Run>
Status run_groups(std::vector<Group>& groups, bool threads, Run run) {
  std::vector<Status> results(groups.size());
  std::vector<std::thread> others;
  std::optional<Unpinned> anywhere;
  if (threads) anywhere.emplace();
  for (std::size_t i = 1; i < groups.size(); ++i) {
    others.emplace_back([&, i] { results[i] = run(groups[i], i); });
  }
  results[0] = run(groups[0], 0);
  for (std::thread& thread : others) thread.join();
  for (const Status& status : results) HAWSER_TRY(status);
  return Status();
}

struct Timed {
  double median_ns = 0;  // of a pass
  std::uint64_t passes = 0;
};

// The measuring side of one group.
Status time_passes(Group& group, std::atomic<std::uint64_t>& last, RawSide side, Duration budget, Timed* timed) {
  std::vector<double> times;
  const auto never = [] { return false; };
  std::int64_t at = now_ns();
  const std::int64_t end = at + budget.count();
  std::uint64_t pass = 0;
  for (; at < end || times.size() < kSamplesMin; ++pass) {
    HAWSER_TRY(group.run_pass(never).status());
    const std::int64_t now = now_ns();
    if (pass >= kWarmPasses) times.push_back(static_cast<double>(now - at));
    at = now;
  }
  const std::uint64_t final_pass = side == RawSide::kSend ? pass : pass + kLeadPasses;
  last.store(final_pass, std::memory_order_release);
  for (; pass < final_pass; ++pass) HAWSER_TRY(group.run_pass(never).status());
  *timed = {median_of(std::move(times)), pass};
  return Status();
}

}  // namespace

void open_stream(BoardPage& page) {
  for (auto& last : page.last) last.store(kNoLast, std::memory_order_release);
}

Status run_stream(std::span<const int> sockets, const RawPass& pass, const RawWay& way, RawSide side, BoardPage& page,
                  const std::function<bool()>& over) {
  std::vector<Group> groups = groups_of(sockets, pass, way, side);
  set_patience(sockets, way.blocking);
  return run_groups(groups, way.threads, [&](Group& group, std::size_t number) -> Status {
    const auto& last = page.last[number];
    for (std::uint64_t i = 0; i < last.load(std::memory_order_acquire); ++i) {
      const auto ended = [&] { return i >= last.load(std::memory_order_acquire) || over(); };
      HAWSER_TRY_ASSIGN(const bool went, group.run_pass(ended));
      if (!went) break;
    }
    return Status();
  });
}

Result<RawRate> measure_stream(std::span<const int> sockets, const RawPass& pass, const RawWay& way, RawSide side,
                               BoardPage& page, Duration budget) {
  std::vector<Group> groups = groups_of(sockets, pass, way, side);
  std::vector<Timed> timed(groups.size());
  set_patience(sockets, way.blocking);
  HAWSER_TRY(run_groups(groups, way.threads, [&](Group& group, std::size_t number) {
    return time_passes(group, page.last[number], side, budget, &timed[number]);
  }));
  RawRate rate;
  const std::uint64_t share = pass.bytes() / groups.size();
  for (const Timed& group : timed) {
    rate.gb_per_s += static_cast<double>(share) / group.median_ns;
    rate.bytes += share * group.passes;
  }
  return rate;
}

}  // namespace hawser::cli::bench
