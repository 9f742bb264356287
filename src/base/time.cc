#include <ctime>

#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

namespace {

class SteadyClock final : public Clock {
 public:
  Instant now() const override {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return Instant::from_ns(static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec);
  }
};

}  // namespace

const Clock& Clock::steady() {
  // On the heap on purpose: threads that outlive static destruction may still ask for the time.
  static const Clock& clock = *new SteadyClock;
  return clock;
}

HAWSER_NAMESPACE_END
