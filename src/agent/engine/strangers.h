#pragma once

// Strangers: peers of whom an address is known and nothing else. A path is opened there; its hello says who it is.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/admission_ticket.h"
#include "agent/engine/ports.h"
#include "agent/peer_core.h"

namespace hawser::agent {

class Strangers {
 public:
  explicit Strangers(Ports& ports) : ports_(ports) {}

  /// Opens a path to whoever listens there; `take` tells later what came of it.
  Result<std::uint64_t> open(std::string_view address, std::string_view name, const AdmissionTicket& ticket,
                             Instant deadline, Instant now);
  /// Null with good status: not yet.
  Result<std::shared_ptr<PeerCore>> take(std::uint64_t number) const;
  void drop(std::uint64_t number);
  void drop_all();

  /// True where the path is one of theirs. It is so no more once it was told of.
  bool is_theirs(const backend::Path* path) const;
  void on_up(const backend::Path* path, const Result<std::shared_ptr<PeerCore>>& met);
  void on_down(const backend::Path* path, const Status& why);

 private:
  struct Stranger {
    std::uint64_t number = 0;
    std::size_t backend = 0;
    backend::Path* path = nullptr;
    std::string name;
    std::shared_ptr<PeerCore> peer;
    Status failure;
  };

  Stranger* find(const backend::Path* path);

  Ports& ports_;
  std::vector<Stranger> all_;
  std::uint64_t next_number_ = 1;
};

}  // namespace hawser::agent
