#pragma once

// The demo's prefill side: it owns the source KV cache and moves requests, layer by layer, into the blocks that the
// decode side gave them.
//
// A request's layers are one plan each, made from two block tables over prepared tables of blocks. All but the last are
// submitted at once; the last follows when they are done, because it carries the notification, and a notification says
// only that the bytes of its own transfer are there. Several requests are under way at a time, so no path stands idle.
//
// Thread rule: one thread. Lifetime: the agent and its regions die with it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hawser/agent.h>

#include "cli/demo_geometry.h"
#include "cli/demo_kv.h"
#include "cli/demo_record.h"
#include "cli/demo_setup.h"

namespace hawser::cli {

/// The times of one pass over one wave.
struct PassTimes {
  std::int64_t wall_ns = 0;    ///< First submit to last acknowledgement.
  std::int64_t moving_ns = 0;  ///< While at least one transfer was under way.
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> latency_ns;  ///< Per request: first submit to acknowledgement.
};

class Prefill {
 public:
  static Result<Prefill> open(const DemoSetup& setup);

  Result<std::string> card() const { return agent_.card(); }
  /// Learns of the decode side and connects.
  Status meet(std::string_view card);
  const Agent& agent() const { return agent_; }
  void poll() { agent_.poll(); }
  void wait(Duration timeout) { agent_.wait(timeout); }

  /// A wave: blocks for each request on this side, filled and summed.
  void begin_wave(const std::vector<Request>& requests, std::vector<std::vector<std::uint32_t>> targets, bool sum);
  /// Moves the whole wave once. `alive` is asked now and then; its bad status ends the pass.
  Result<PassTimes> run_pass(std::uint32_t pass, std::uint32_t concurrency,
                             const std::function<Status(std::uint32_t acknowledged)>& alive);
  /// Which blocks of a layer differ, by the other side's sums: numbers in the request's block table.
  std::vector<std::uint32_t> differing(std::uint32_t request, std::uint32_t layer,
                                       const std::vector<std::uint64_t>& sums) const;

  /// Explains the plan of the first layer that moved.
  std::string explain() const { return first_plan_ ? agent_.explain(*first_plan_) : std::string(); }
  bool huge_pages() const { return cache_.huge_pages(); }
  Status close(Duration timeout);

 private:
  struct Job {
    Request request;
    std::vector<std::uint32_t> source, target;              // block tables
    std::vector<std::uint32_t> source_index, target_index;  // the same over all planes
    std::vector<std::uint64_t> layer_sums;
  };
  class Pass;

  Prefill(const DemoSetup& setup, Agent agent, KvCache cache, CompletionQueue queue)
      : setup_(setup), agent_(std::move(agent)), cache_(std::move(cache)), queue_(std::move(queue)) {}

  DemoSetup setup_;
  Agent agent_;
  KvCache cache_;
  CompletionQueue queue_;
  Peer peer_;
  std::vector<RangeTable> source_, target_;  // by layer
  std::vector<Job> jobs_;
  std::uint32_t wave_ = 0;
  std::optional<Plan> first_plan_;
};

}  // namespace hawser::cli
