#pragma once

// A clock for tests that passes as they say.
//
// Thread rule: one thread.

#include <chrono>

#include <hawser/time.h>

namespace hawser::base {

class TestClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  Instant now_ = Instant::from_ns(1) + std::chrono::hours(1);
};

}  // namespace hawser::base
