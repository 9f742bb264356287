#pragma once

// Whether a connection that was made anew works, or only looked so: one that breaks soon and carried nothing has
// failed, however well its handshake went. Who tries again pauses longer after each such failure (backoff.h), and
// gives up after some.
//
// Thread rule: one thread at a time.

#include <cstdint>

#include <hawser/time.h>

namespace hawser::proto {

/// One that carried nothing because nothing was asked of it has worked after this.
inline constexpr Duration kTrialTime = std::chrono::seconds(1);

/// How a connection ended.
struct TrialEnd {
  Instant at;
  std::uint64_t carried = 0;  ///< By the count that it began with.
  bool was_idle = false;      ///< Nothing was under way.
  bool excused = false;       ///< Broken on purpose, or by an answer which shows that it carries.
};

class Trial {
 public:
  /// It is ready. `carried` only grows while it is.
  void begin(Instant now, std::uint64_t carried);
  /// True: it has worked.
  bool end(const TrialEnd& end);
  /// How many in a row did not.
  std::uint32_t failed() const { return failed_; }

 private:
  Instant began_;
  std::uint64_t carried_ = 0;
  std::uint32_t failed_ = 0;
};

}  // namespace hawser::proto
