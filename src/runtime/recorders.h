#pragma once

// Recorders: the flight recorders of all worlds that live in one agent. Each opened world has one of its own, with its
// groups and the worlds that it is shrunk to.
//
// Thread rule: under the lane's lock, but for disown_after_fork. Lifetime: a place lives until `remove`.

#include <list>
#include <optional>

#include "runtime/recorder.h"

namespace hawser::runtime {

class Recorders {
 public:
  /// Empty: nothing is written down.
  using Place = std::optional<Recorder>;

  Place& add(Recorder recorder) { return all_.emplace_back(std::move(recorder)); }
  void remove(const Place& place) {
    all_.remove_if([&place](const Place& each) { return &each == &place; });
  }
  /// The files are the parent's. Only system calls.
  void disown_after_fork() {
    for (Place& each : all_) {
      if (each) each->disown_after_fork();
    }
  }

 private:
  std::list<Place> all_;
};

}  // namespace hawser::runtime
