#pragma once

// PlannedFailures: which calls fail, by name, and with what.
//
// Thread rule: one thread.

#include <cerrno>
#include <map>
#include <string>

namespace hawser::backend::verbs {

class PlannedFailures {
 public:
  /// The `nth` next call of this name (1: the next) fails with `error`; from then on it works again.
  void fail(const std::string& call, int error, int nth = 1) { failures_[call] = {error, nth}; }
  /// All calls of this name fail until `clear`.
  void fail_always(const std::string& call, int error) { failures_[call] = {error, -1}; }
  void clear() { failures_.clear(); }

  /// A call: true, with errno set, if it has to fail.
  bool fails(const std::string& call) {
    const auto found = failures_.find(call);
    if (found == failures_.end()) return false;
    errno = found->second.error;
    if (found->second.nth < 0) return true;
    if (--found->second.nth > 0) return false;
    failures_.erase(found);
    return true;
  }

 private:
  struct Failure {
    int error = 0;
    int nth = 0;
  };
  std::map<std::string, Failure> failures_;
};

}  // namespace hawser::backend::verbs
