#include "runtime/recovery.h"

#include <string>
#include <utility>

namespace hawser::runtime {

std::string_view to_string(RecoveryPolicy policy) {
  switch (policy) {
    case RecoveryPolicy::kManual:
      return "manual";
    case RecoveryPolicy::kAutomatic:
      return "automatic";
    case RecoveryPolicy::kAbort:
      return "abort";
  }
  return "unknown";
}

Recovery::Step Recovery::next() {
  if (!has_failed_ || is_calling_ || is_over()) return Step::kNothing;
  is_calling_ = policy_ == RecoveryPolicy::kAutomatic;
  return is_calling_ ? Step::kShrink : Step::kNothing;
}

Recovery::Step Recovery::note_failure() {
  const bool is_first = !std::exchange(has_failed_, true);
  if (policy_ == RecoveryPolicy::kAbort) return is_first ? Step::kAbort : Step::kNothing;
  return next();
}

Status Recovery::note_call(std::string_view call, std::string_view world) {
  if (policy_ == RecoveryPolicy::kAutomatic && has_failed_) {
    return Status(Code::kBusy, std::string(call) + ": a rank of world '" + std::string(world) +
                                   "' has failed, and the world recovers by itself")
        .with_advice("take the next world from World::recovered");
  }
  is_calling_ = true;
  return {};
}

Recovery::Step Recovery::note_call_over() {
  is_calling_ = false;
  return next();
}

void Recovery::end(Made made) {
  if (is_over()) return;
  made_ = std::move(made);
  is_over_.store(true, std::memory_order_release);
}

void Recovery::end(const Status& why) {
  if (is_over()) return;
  status_ = why;
  is_over_.store(true, std::memory_order_release);
}

Result<Recovery::Made> Recovery::take(std::string_view world) {
  if (!status_.ok()) return status_;
  if (is_taken_ || made_.world == nullptr) {
    return Status(Code::kInvalid, "recovered: the event of world '" + std::string(world) + "' was taken before")
        .with_advice("ask the next world for the next event");
  }
  is_taken_ = true;
  return std::exchange(made_, {});
}

}  // namespace hawser::runtime
