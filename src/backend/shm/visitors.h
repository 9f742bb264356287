#pragma once

// Visitors: who knocks at an agent's socket, from connecting to a good `open`. Those who may not come in are told why,
// also while there are no descriptors left.
//
// Thread rule: confined to the port's lane. Memory: kMax visitors.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/admission_count.h"
#include "backend/shm/control.h"
#include "backend/shm/fork_list.h"
#include "backend/shm/packet.h"
#include "backend/shm/watches.h"
#include "base/line_gate.h"
#include "base/log.h"

namespace hawser::backend::shm {

class Visitors {
 public:
  static constexpr std::size_t kMax = 64;  ///< Connected and not proven yet.

  struct Uses {
    const Watches& watches;
    ForkList& forks;
    const Identity& identity;
    const base::Logger& log;
    /// Makes a path of one that said `open`, and takes its socket. Bad: it is told why.
    std::function<Status(ForkFd& socket, Packet& packet, const Open& open)> admit;
  };
  struct Visitor {
    ForkFd socket;
    Instant deadline;
    Watch watch;
    bool is_done = false;
  };

  explicit Visitors(Uses uses) : uses_(std::move(uses)) {}

  Status listen(int socket);
  /// The listening socket, or a visitor, has news.
  void on_listener(Instant now);
  void on_visitor(Visitor& visitor, Instant now);
  /// Lets go of those who are done or say nothing, and listens again once that was put off.
  void turn(Instant now);
  /// When turn() has something to do.
  Instant next_deadline() const;
  /// Nobody comes in any more.
  void close();
  AdmissionCounters counters() const { return admissions_.counters(); }

 private:
  static constexpr std::size_t kAcceptsPerLook = 16;

  void turn_away(const Status& shortage, Instant now);
  void hold_reserve();
  void pause_listening(Instant now);
  Status welcome(Visitor& visitor, Packet& packet);
  void refuse(int socket, const Status& why) const;

  const Uses uses_;
  int listener_ = -1;
  Watch listener_watch_{Watch::Kind::kListener, this};
  bool is_closed_ = false;
  std::vector<std::unique_ptr<Visitor>> visitors_;
  Instant listen_at_ = Instant::max();  ///< When visitors are let in again, after descriptors ran out.
  Instant tell_shortage_at_ = Instant::min();
  ForkFd reserve_;  ///< Given up for a moment to turn visitors away when there are no descriptors left.
  base::LineGate line_gate_;
  AdmissionCount admissions_;
};

}  // namespace hawser::backend::shm
