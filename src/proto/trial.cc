#include "proto/trial.h"

namespace hawser::proto {

void Trial::begin(Instant now, std::uint64_t carried) {
  began_ = now;
  carried_ = carried;
}

bool Trial::end(const TrialEnd& end) {
  const bool lived = end.was_idle && end.at - began_ >= kTrialTime;
  const bool worked = end.excused || end.carried != carried_ || lived;
  failed_ = worked ? 0 : failed_ + 1;
  return worked;
}

}  // namespace hawser::proto
