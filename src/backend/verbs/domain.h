#pragma once

// Domain: one device opened with its protection domain, held by whatever was made in it.
//
// Registrations, queue pairs and caches each hold their Domain, so memory and queues are gone before the protection
// domain is freed, and that before the device is closed. There is nothing to call: the last holder ends it.
//
// Thread rule: open from any thread; afterwards const. Lifetime: shared; it keeps its Verbs alive.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/verbs.h"

namespace hawser::backend::verbs {

class Domain {
 public:
  /// Opens the device called `name` ("mlx5_0"). kNotFound names the devices that there are; kDenied and kBusy say what
  /// a container or a limit must allow. Nothing stays open after an error.
  static Result<std::shared_ptr<Domain>> open(std::shared_ptr<Verbs> verbs, std::string_view name);

  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  Verbs& verbs() const { return *verbs_; }
  const std::shared_ptr<Verbs>& shared_verbs() const { return verbs_; }
  const std::string& name() const { return name_; }
  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  /// Whether peers can be given the right to atomic operations.
  bool has_atomics() const { return attributes_.atomic_cap != IBV_ATOMIC_NONE; }

 private:
  Domain(std::shared_ptr<Verbs> verbs, std::string_view name) : verbs_(std::move(verbs)), name_(name) {}
  Status open_device(ibv_device* device);

  const std::shared_ptr<Verbs> verbs_;
  const std::string name_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_device_attr attributes_{};
};

}  // namespace hawser::backend::verbs
