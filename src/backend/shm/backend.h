#pragma once

// ShmBackend: what an agent's shm has outside its lane: the socket by which it is found, and the gates of its regions.
//
// Thread rule: thread-safe; its port is confined to a lane. Lifetime: outlives its port. In a forked child nothing of
// it may be destroyed after disown_after_fork(): its descriptor numbers may belong to others by then.

#include <memory>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/shm/control.h"
#include "backend/shm/fork_list.h"
#include "backend/shm/gate.h"
#include "backend/shm/options.h"
#include "backend/shm/place.h"

namespace hawser::backend::shm {

class ShmBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> open(const Context& context, Options options);

  const Traits& traits() const override { return traits_; }
  std::string address() const override;
  std::string readable_address() const override { return place_->path(); }
  Status reachable(std::string_view peer_address) const override;
  Result<std::string> add_region(const RegionEntry& region) override;
  void remove_region(const RegionEntry& region) override;
  Result<std::unique_ptr<Port>> open_port() override;
  Params take_params() override { return std::exchange(options_.in_force, {}); }
  std::vector<std::string> warnings() const override { return options_.warnings; }
  void disown_after_fork() override { forks_.close_all(); }
  const Gates& gates() const { return *gates_; }

 private:
  ShmBackend(const Context& context, Options options) : context_(context), options_(std::move(options)) {}

  const Context context_;
  Options options_;
  Traits traits_;
  base::Id128 boot_;
  Probe probe_;
  base::Id128 probe_value_;  ///< What peers read to find out whether they may.
  ForkList forks_;           // before all that holds descriptors
  std::unique_ptr<Place> place_;
  std::unique_ptr<Gates> gates_;
};

}  // namespace hawser::backend::shm
