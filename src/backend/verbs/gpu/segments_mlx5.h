#pragma once

// Indirect keys of mlx5: one key over the pieces of a segment, counted from 0 at its begin.
//
// A key is made by a work request on a queue pair of its own, which is connected to itself. The wait for its completion
// has a deadline, and a queue pair that failed is made anew for the next key.
//
// NOT RUN ON HARDWARE: written after the documentation of mlx5dv and tested on a fake; no mlx5 device was at hand.
//
// Thread rule: thread-safe; one key is bound at a time. Lifetime: Mlx5Keys outlives the tables that use it; keys hold
// what they need.

#include <infiniband/mlx5dv.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/verbs/devices/domain.h"
#include "backend/verbs/gpu/segments.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

/// What is called of libmlx5, with its meanings: null with errno, or an errno value.
class Mlx5 {
 public:
  virtual ~Mlx5() = default;
  virtual bool supports(ibv_device* device) = 0;
  /// A reliable queue pair that can bind lists of memory regions.
  virtual ibv_qp* create_qp(ibv_pd* pd, const ibv_qp_init_attr& attr) = 0;
  virtual mlx5dv_mkey* create_mkey(ibv_pd* pd, std::uint16_t entries) = 0;
  virtual int destroy_mkey(mlx5dv_mkey* key) = 0;
  /// One work request, signalled, its list within it.
  virtual int post_list(ibv_qp* qp, mlx5dv_mkey* key, std::uint32_t access, std::span<ibv_sge> list,
                        std::uint64_t wr_id) = 0;
};

/// Opens libmlx5.so.1. kUnsupported where there is none.
Result<std::unique_ptr<Mlx5>> open_mlx5();

class Mlx5Keys final : public IndirectKeys {
 public:
  /// How long one key may take.
  static constexpr Duration kBindMax = std::chrono::seconds(1);

  /// kUnsupported when the domain's device is none of mlx5.
  static Result<std::unique_ptr<Mlx5Keys>> open(std::shared_ptr<Domain> domain, std::shared_ptr<Mlx5> mlx5,
                                                const Clock& clock = Clock::steady());
  ~Mlx5Keys() override;

  std::size_t pieces_max() const override { return pieces_max_; }
  Result<std::shared_ptr<Registration>> bind(const std::vector<std::shared_ptr<Registration>>& pieces,
                                             const Access& access) override HAWSER_EXCLUDES(mutex_);

 private:
  class Loop;
  class Key;
  Mlx5Keys(std::shared_ptr<Domain> domain, std::shared_ptr<Mlx5> mlx5, const Clock& clock, std::size_t pieces_max);
  Status post_and_wait(mlx5dv_mkey* key, std::span<ibv_sge> list, int access) HAWSER_REQUIRES(mutex_);

  const std::shared_ptr<Domain> domain_;
  const std::shared_ptr<Mlx5> mlx5_;
  const Clock& clock_;
  const std::size_t pieces_max_;
  base::Mutex mutex_;
  std::unique_ptr<Loop> loop_ HAWSER_GUARDED_BY(mutex_);  ///< Null: made by the next bind.
  std::uint64_t next_wr_id_ HAWSER_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::backend::verbs
