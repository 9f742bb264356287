#pragma once

// RawLoop: two queue pairs in this process, one on each of two RDMA devices (or both on one), and loops that post on
// the first as plainly as libibverbs lets one: the ceiling of the backend verbs. The far end is memory alone; nobody
// moves there. For `hawser bench`, by the classes that make the backend's queue pairs.
//
// Thread rule: one thread. Lifetime: owns its memory and queue pairs.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

namespace hawser::backend::verbs {

/// Two ends to measure between: the first two devices in one subnet, so that bytes cross the cable, else one for both.
/// kUnsupported tells why there is none.
struct RawLoopDevices {
  std::string near, far;
};
Result<RawLoopDevices> find_raw_loop_devices();

struct RawLoopWay {
  std::uint64_t message_bytes = 0;  ///< Of one work request, at most.
  std::uint32_t window = 16;        ///< Work requests under way.
  std::uint32_t signal_every = 1;   ///< A request in so many has a completion.
};

class RawLoop {
 public:
  /// `bytes` of memory at each end.
  static Result<std::unique_ptr<RawLoop>> open(const RawLoopDevices& devices, std::uint64_t bytes);
  RawLoop(const RawLoop&) = delete;
  RawLoop& operator=(const RawLoop&) = delete;
  ~RawLoop();

  /// Moves all bytes over and over for about `budget`, by messages in the order of addresses. GB/s.
  Result<double> stream(Operation operation, const RawLoopWay& way, Duration budget);
  /// One write of 8 bytes, posted and its completion awaited.
  Status write_once();
  /// A write of 8 bytes, watched for in the memory there; the same back. Both ends are this thread.
  Status there_and_back();

 private:
  struct Ends;
  explicit RawLoop(std::unique_ptr<Ends> ends);
  Status finish_stream(const RawLoopWay& way);
  std::unique_ptr<Ends> ends_;
};

}  // namespace hawser::backend::verbs
