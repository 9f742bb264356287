#pragma once

// CqPool: the completion queues of one device in one lane, shared by its queue pairs, and the channel that wakes for
// them. A queue never has more sharers than it has room for all that they could complete at once.
//
// Thread rule: confined to the lane. Lifetime: outlives the queue pairs that lease from it.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/domain.h"

namespace hawser::backend::verbs {

class CqPool {
 public:
  /// `depth`: completions that one queue pair can cause before any is polled. Errors: kUnsupported when the device
  /// cannot hold those of even one, else of the calls that failed.
  static Result<std::unique_ptr<CqPool>> open(std::shared_ptr<Domain> domain, std::uint32_t depth);
  ~CqPool();

  /// A queue for one more queue pair; it is given back by `give_back`, after the queue pair was destroyed.
  Result<ibv_cq*> lease();
  void give_back(ibv_cq* cq);
  std::size_t count() const { return queues_.size(); }

  /// Whether completions were lost: whoever leases it must lease another.
  bool is_broken(const ibv_cq* cq) const;

  /// The device says that it failed: as if completions of it were lost. False: it is none of these.
  bool mark_broken(const ibv_cq* cq);

  /// Up to `out.size()` completions, of all queues in turn. Negative: a queue broke (overrun); told once, and after the
  /// completions that came with it.
  int poll(std::span<ibv_wc> out);
  /// Asks to be woken by the next completion of any queue; poll once more before sleeping. False: a call failed, do not
  /// sleep.
  bool arm();
  /// Takes in what the channel told.
  void drain_events();
  int wait_fd() const { return channel_->fd; }

 private:
  struct Queue {
    ibv_cq* cq = nullptr;
    std::uint32_t sharers = 0;
    std::uint32_t room = 0;  ///< Sharers at most.
    bool broken = false;
  };
  // Soft-RoCE takes 0.1 ms for each entry of a queue, and most agents have few peers: queues double.
  static constexpr std::uint32_t kSharersFirst = 2;
  static constexpr std::uint32_t kSharersMax = 16;

  CqPool(std::shared_ptr<Domain> domain, ibv_comp_channel* channel, std::uint32_t depth, std::uint32_t sharers)
      : domain_(std::move(domain)), channel_(channel), depth_(depth), sharers_max_(sharers) {}

  void destroy(ibv_cq* cq);

  const std::shared_ptr<Domain> domain_;
  ibv_comp_channel* const channel_;
  const std::uint32_t depth_;
  const std::uint32_t sharers_max_;
  std::vector<Queue> queues_;
  std::size_t first_ = 0;     ///< Queue that is polled first.
  bool tells_break_ = false;  ///< The next poll tells that a queue broke.
};

}  // namespace hawser::backend::verbs
