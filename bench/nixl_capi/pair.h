#pragma once

// Pair: two workers, target and initiator, with one library. Two libraries never share a process.
//
// Thread rule: one thread. Lifetime: the processes are killed with it.

#include <sys/types.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "channel.h"
#include "rows.h"

namespace nixl_bench {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// One `--lib`.
struct LibraryEntry {
  std::string name;
  std::string path;
  Variables environment;  ///< Set in its workers alone.
};

/// A worker process, seen from the controller. Failures say which one it is, and how it ended if it did.
class WorkerProcess {
 public:
  WorkerProcess(std::string role, const Variables& environment);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  int fd() const { return channel_->fd(); }
  void tell(const Json& command);
  Json answer(Deadline deadline);
  Json call(const Json& command, Deadline deadline) {
    tell(command);
    return answer(deadline);
  }

 private:
  /// Asks it to end, and waits a while.
  void quit();
  /// Kills what is left of it; in words.
  std::string end();

  const std::string role_;
  pid_t pid_ = -1;
  std::unique_ptr<Channel> channel_;
};

class Pair {
 public:
  Pair(const LibraryEntry& library, const Setting& setting, std::uint64_t arena, const std::array<int, 2>& cores);

  void prepare(const Measurement& measurement);
  Timings slice(const Measurement& measurement, double seconds);
  /// New bytes, moved as the measurement does, and compared. Failure when they differ.
  void verify(const Measurement& measurement);
  void clear();

  /// Where the target's memory lies, for raw copies into it.
  pid_t target_pid() const { return target_pid_; }
  std::uintptr_t target_base() const { return target_base_; }

 private:
  Json open(WorkerProcess& worker, const std::string& name, int core) const;
  /// The initiator's answer, while the target lets its library move on.
  Json led(const Json& command, std::chrono::milliseconds patience);
  Json await_initiator(Deadline deadline);
  /// It is not to say anything while it serves.
  [[noreturn]] void blame_target();
  Timings metadata_slice(std::uint32_t count, double seconds);
  void metadata_cycle(std::uint32_t count, std::map<std::string, Samples>& samples);

  const LibraryEntry& library_;
  const Setting setting_;
  const std::uint64_t arena_;
  const std::string target_name_;
  std::uint64_t nonce_ = 1;
  WorkerProcess target_;
  WorkerProcess initiator_;
  pid_t target_pid_ = -1;
  std::uintptr_t target_base_ = 0;
};

}  // namespace nixl_bench
