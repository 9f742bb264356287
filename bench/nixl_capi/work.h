#pragma once

// Work: what the initiator does in one measurement, in slices of time that the controller gives it.
//
// Thread rule: one thread. Lifetime: must die before its Side.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "blocks.h"
#include "side.h"

namespace nixl_bench {

enum class Kind : std::uint8_t {
  kTransfer,   ///< Create, post, poll, release; timed from post to done.
  kRepost,     ///< 64 requests in flight, each posted again when it is done.
  kRoundTrip,  ///< A write with a notification, answered by a notification.
  kRequest,    ///< The caller's time for create, post and release.
  kPrepared,   ///< prep_xfer_dlist, and make_xfer_req from it.
  kPoll,       ///< The status of a finished request, and notifications where there are none.
  kMetadata,   ///< Registration and metadata; both workers take turns, so the controller leads it (Metadata in pair.h).
};

inline constexpr std::uint32_t kOutstanding = 64;
inline constexpr std::string_view kPing = "ping";
inline constexpr std::string_view kPong = "pong";

/// Of one slice. Times are nanoseconds of one operation.
struct Timing {
  double value = 0;
  double p50 = 0;
  double p99 = 0;
  std::uint64_t count = 0;
};
/// By the row's suffix; a measurement of one row has the empty one.
using Timings = std::map<std::string, Timing>;

class Samples {
 public:
  static constexpr std::size_t kMax = 1u << 20;  ///< Later ones are not kept.

  void add(std::int64_t ns) {
    if (all_.size() < kMax) all_.push_back(static_cast<std::uint64_t>(ns));
  }
  std::size_t size() const { return all_.size(); }
  /// The value is the median. `per`: operations in one sample.
  Timing timing(std::uint32_t per = 1) const;

 private:
  std::vector<std::uint64_t> all_;
};

/// A slice of time; at least so many operations whatever they take.
class Slice {
 public:
  explicit Slice(double seconds) : end_ns_(now_ns() + static_cast<std::int64_t>(seconds * 1e9)) {}
  bool goes_on(std::size_t done) const { return done < kOperationsMin || now_ns() < end_ns_; }

 private:
  static constexpr std::size_t kOperationsMin = 3;

  std::int64_t end_ns_;
};

/// What the initiator needs to know.
struct Task {
  Kind kind = Kind::kTransfer;
  Shape shape;
  bool is_write = true;
  std::string peer;
  std::uintptr_t remote_base = 0;
};

class Work {
 public:
  /// Failure when the arena is too small.
  Work(Side& side, const Task& task);
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  virtual Timings run(double seconds) = 0;
  /// Moves the blocks of window 0, as run() does.
  virtual void once() = 0;
  /// Fills the blocks of window 0 and writes them, or reads them and compares what came.
  void verify(std::uint64_t nonce);

 protected:
  Side& side() const { return side_; }
  const Task& task() const { return task_; }
  std::size_t windows() const { return blocks_.windows; }
  nixl_capi_xfer_op_t op() const { return task_.is_write ? NIXL_CAPI_XFER_OP_WRITE : NIXL_CAPI_XFER_OP_READ; }
  const DescList& local(std::size_t window) const { return locals_[window]; }
  const DescList& remote(std::size_t window) const { return remotes_[window]; }
  nixl_capi_xfer_req_t create(std::size_t window, nixl_capi_opt_args_t options = nullptr) const {
    return side_.create(op(), local(window), remote(window), task_.peer, options);
  }

 private:
  /// Bounds the time that making the lists takes.
  static constexpr std::size_t kDescsMax = 1u << 17;

  Side& side_;
  const Task task_;
  Blocks blocks_;
  std::vector<DescList> locals_;
  std::vector<DescList> remotes_;
};

std::unique_ptr<Work> make_work(Side& side, const Task& task);

}  // namespace nixl_bench
