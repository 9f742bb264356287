#pragma once

// Recorder: writes down what a rank begins and ends, in a file that outlives its process (flight_file.h). It costs a
// store of three cache lines for each operation, and no system call.
//
// Thread rule: under the lane's lock, but for disown_after_fork.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/left_file.h"
#include "runtime/flight_file.h"

namespace hawser::runtime {

class Recorder {
 public:
  struct Site {
    std::string_view world;  ///< Its name,
    std::uint32_t rank = 0, size = 0;
    std::string_view agent = {};  ///< The name of the agent that the rank lives in.
  };
  /// `folder`/`name`.flight. Errors: what the kernel says.
  static Result<Recorder> open(const std::string& folder, std::string_view name, const Site& site, Instant now);

  Recorder(Recorder&&) = default;
  Recorder& operator=(Recorder&&) = delete;

  /// Gives what `end` takes. `entry` without its stamp, state and times.
  std::uint64_t begin(FlightEntry entry, Instant now);
  /// Another algorithm than it began with was found to be the one. Nothing, where the ring has gone on beyond it since.
  void change_algorithm(std::uint64_t stamp, std::uint32_t algorithm);
  /// The same.
  void end(std::uint64_t stamp, Code code, Instant now);
  /// The file stays, as that of a process that died: something went wrong.
  void leave() { file_.leave(); }
  void disown_after_fork() { file_.disown_after_fork(); }

 private:
  explicit Recorder(base::LeftFile file) : file_(std::move(file)) {}
  FlightHeader& header() { return *reinterpret_cast<FlightHeader*>(file_.memory().data()); }
  FlightEntry& place(std::uint64_t stamp);

  base::LeftFile file_;
  std::uint64_t last_ = 0;  ///< Stamp.
};

}  // namespace hawser::runtime
