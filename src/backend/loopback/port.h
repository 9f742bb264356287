#pragma once

// LoopbackPort: paths from an agent to itself. What a path sends comes back on the same path.
//
// A chunk is copied while its region's entry stands in the table; each part of a large one looks again. All of it
// happens under the lane's lock, so a closed region is quiet as soon as its closer can ask.
//
// Thread rule: confined to its lane. Lifetime: the context's references outlive it.

#include <memory>
#include <string>

#include "backend/self_backend.h"

namespace hawser::backend::loopback {

inline constexpr SelfKind kKind{.name = "loopback", .agent = "this agent", .regions = "host memory"};

class LoopbackPort;

class LoopbackPath final : public SelfPath {
 public:
  explicit LoopbackPath(LoopbackPort& port);

  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool move_at_once(const Chunk& chunk) override { return is_up() && !has_chunks() && copy_at_once({&chunk, 1}) == 1; }
  void cancel(std::uint64_t transfer) override;
  std::string describe() const override { return "loopback within this process"; }

  /// Works on a job, ends it when it is finished, and returns the bytes copied.
  std::uint64_t work(Job& job, std::uint64_t limit);

 protected:
  bool reaches(const RegionEntry& region) const override { return region.device.kind == DeviceKind::kHost; }
  void end_chunks(const Status& why) override;

 private:
  std::uint32_t copy_at_once(std::span<const Chunk> chunks);
  void end_job(Job& job, const Status& status);

  LoopbackPort& port_;
};

class LoopbackPort final : public SelfPort {
 public:
  LoopbackPort(const Context& context, std::string address, std::uint64_t inline_bytes_max)
      : SelfPort(context, kKind, std::move(address)), inline_bytes_max_(inline_bytes_max) {}

  std::size_t turn(Instant now, const TurnBudget& budget) override;
  bool has_news(Instant) override { return news() != 0 || !queue().empty(); }
  int wait_fd() const override { return -1; }
  bool prepare_sleep() override { return news() == 0 && queue().empty(); }
  bool region_quiet(std::uint32_t, std::uint32_t, std::string*) override { return true; }

  std::uint64_t inline_bytes_max() const { return inline_bytes_max_; }

 protected:
  std::unique_ptr<SelfPath> make_path() override { return std::make_unique<LoopbackPath>(*this); }

 private:
  const std::uint64_t inline_bytes_max_;
};

}  // namespace hawser::backend::loopback
