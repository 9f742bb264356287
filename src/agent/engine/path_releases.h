#pragma once

// PathReleases: paths that the agent is done with, and when their ports may let go of them.
//
// Not while a port's events are being read: a new path at the address of a released one would get its events. And those
// of a session that its user ended part with the lane's next turn: a farewell and closing sockets cost more than all
// else, and the caller does not wait for them.
//
// Thread rule: confined to the lane. Lifetime: the backends outlive it.

#include <cstddef>
#include <utility>
#include <vector>

#include "agent/engine/open_backend.h"

namespace hawser::agent {

class PathReleases {
 public:
  explicit PathReleases(std::vector<OpenBackend>& backends) : backends_(backends) {}

  /// From now on its peer takes no message for taken that it sends by it.
  void release(std::size_t backend, backend::Path* path);
  /// True where nobody may act on its events any more.
  bool is_released(const backend::Path* path) const;

  /// Paths that are released while it lives part later, if it `applies`.
  class Later {
   public:
    Later(PathReleases& releases, bool applies) : releases_(releases) { releases_.parts_later_ = applies; }
    Later(const Later&) = delete;
    Later& operator=(const Later&) = delete;
    ~Later() { releases_.parts_later_ = false; }

   private:
    PathReleases& releases_;
  };
  bool has_parting() const { return !parting_.empty(); }
  void part();

  /// Events of a port are being read.
  void begin_reading() { is_reading_ = true; }
  void end_reading();

 private:
  using Released = std::pair<std::size_t, backend::Path*>;
  void let_go(std::vector<Released>& released);

  std::vector<OpenBackend>& backends_;
  std::vector<Released> now_;
  std::vector<Released> parting_;
  bool is_reading_ = false;
  bool parts_later_ = false;
};

}  // namespace hawser::agent
