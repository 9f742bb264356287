#pragma once

// Domain: one device opened with its protection domain, held by whatever was made in it.
//
// Registrations, queue pairs and caches each hold their Domain, so memory and queues are gone before the protection
// domain is freed, and that before the device is closed. There is nothing to call: the last holder ends it. What a
// device refuses to end is kept and tried again: a memory's key must not outlive its region unnoticed.
//
// Thread rule: open from any thread; afterwards thread-safe. Lifetime: shared; it keeps its Verbs alive.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/library/verbs.h"
#include "base/mutex.h"

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

  /// Memory that an object of this domain lets somebody at.
  struct Opened {
    std::uintptr_t address = 0;
    std::size_t size = 0;
    static constexpr Opened nothing() { return {}; }
    static constexpr Opened all() { return {0, SIZE_MAX}; }
  };
  /// Whether an object has ended whose end gave this.
  bool has_ended(int error) const {
    return error == 0 || (error == EIO && is_removed_.load(std::memory_order_acquire));
  }
  /// Ends an object of this domain by `destroy`, which returns 0 or an errno value. When it fails it is called again by
  /// `sweep` and when the domain ends. `opened`: what it lets somebody at until then.
  template <typename Destroy>
  void end(Destroy destroy, Opened opened = Opened::nothing()) {
    if (const int error = destroy(); !has_ended(error)) keep(std::move(destroy), error, opened);
  }
  /// Tries again to end what could not be ended. Cheap when there is nothing.
  void sweep();
  /// The kernel has taken the device away, and ended all that was made on it, although ending it fails from now on.
  void mark_removed(bool is_removed) { is_removed_.store(is_removed, std::memory_order_release); }
  bool is_removed() const { return is_removed_.load(std::memory_order_acquire); }
  /// Not good while something that could not be ended lets somebody at some of these bytes: the device, and the error.
  Status still_open(std::uintptr_t address, std::size_t size);

 private:
  /// More than these that open no memory are given up: a device that ends nothing is beyond help. Those that open
  /// memory are all kept, for nobody else would know: a device has no more of them than its own limit of objects.
  static constexpr std::size_t kKeptMax = 4096;
  struct Kept {
    std::function<int()> destroy;
    int error = 0;
    Opened opened;
  };
  void keep(std::function<int()> destroy, int error, Opened opened);

  Domain(std::shared_ptr<Verbs> verbs, std::string_view name) : verbs_(std::move(verbs)), name_(name) {}
  Status open_device(ibv_device* device);

  const std::shared_ptr<Verbs> verbs_;
  const std::string name_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_device_attr attributes_{};
  std::atomic<bool> has_kept_ = false;
  std::atomic<bool> is_removed_ = false;
  base::Mutex mutex_;
  std::size_t idle_kept_ HAWSER_GUARDED_BY(mutex_) = 0;  ///< Of kept_, those that open no memory.
  std::vector<Kept> kept_ HAWSER_GUARDED_BY(mutex_);     ///< Oldest first: what is later may hold what is earlier.
};

}  // namespace hawser::backend::verbs
