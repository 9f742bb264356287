#pragma once

// A backend that is another one, for tests that change one thing of it: derive and override that.
//
// Thread rule and lifetime: those of what is wrapped.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace hawser::backend {

class WrappedPort : public Port {
 public:
  explicit WrappedPort(std::unique_ptr<Port> inner) : inner_(std::move(inner)) {}

  Result<Path*> open_path(const PathTarget& target, Instant now) override { return inner_->open_path(target, now); }
  void release_path(Path* path) override { inner_->release_path(path); }
  std::size_t turn(Instant now, const TurnBudget& budget) override { return inner_->turn(now, budget); }
  std::size_t poll(std::span<PortEvent> out) override { return inner_->poll(out); }
  Instant next_deadline() const override { return inner_->next_deadline(); }
  int wait_fd() const override { return inner_->wait_fd(); }
  bool prepare_sleep() override { return inner_->prepare_sleep(); }
  void regions_closing(std::span<const RegionId> ids) override { inner_->regions_closing(ids); }
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override {
    return inner_->region_quiet(index, generation, holder);
  }
  void begin_close(Instant now) override { inner_->begin_close(now); }
  bool idle() const override { return inner_->idle(); }
  void describe(const WaitVisitor& visitor) const override { inner_->describe(visitor); }

 private:
  const std::unique_ptr<Port> inner_;
};

class WrappedBackend : public Backend {
 public:
  explicit WrappedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  const Traits& traits() const override { return inner_->traits(); }
  std::string address() const override { return inner_->address(); }
  std::string readable_address() const override { return inner_->readable_address(); }
  Status reachable(std::string_view peer_address) const override { return inner_->reachable(peer_address); }
  Result<std::string> add_region(const RegionEntry& region) override { return inner_->add_region(region); }
  void remove_region(const RegionEntry& region) override { inner_->remove_region(region); }
  void let_go(const RegionEntry& region) override { inner_->let_go(region); }
  Result<std::unique_ptr<Port>> open_port() override { return inner_->open_port(); }
  Params take_params() override { return inner_->take_params(); }
  std::vector<std::string> warnings() const override { return inner_->warnings(); }
  void disown_after_fork() override { inner_->disown_after_fork(); }

 private:
  const std::unique_ptr<Backend> inner_;
};

/// Opens what `inner` opens and wraps it: `make(std::unique_ptr<Backend>)` gives a std::unique_ptr<Backend>.
template <typename Make>
Factory wrapping(std::string_view name, int default_rank, const Factory& inner, Make make) {
  const auto open = [open_inner = inner.open, make](const Context& context,
                                                    const Params& params) -> Result<std::unique_ptr<Backend>> {
    Result<std::unique_ptr<Backend>> opened = open_inner(context, params);
    if (!opened) return opened.error();
    return std::unique_ptr<Backend>(make(*std::move(opened)));
  };
  return {.name = name, .default_rank = default_rank, .open = open};
}

}  // namespace hawser::backend
