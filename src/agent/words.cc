#include "agent/words.h"

#include <hawser/agent.h>

#include <atomic>

#include "agent/core.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

bool is_open(const LocalRegion& region) { return region.state.load(std::memory_order_acquire) == RegionState::kOpen; }

Status closed_word(std::string_view call, const LocalRegion& region) {
  return Status(Code::kInvalid, std::string(call) + ": region '" + region.entry->name + "' of the word is closed");
}

}  // namespace

Status wait_for_word(LaneAccess& lane, LocalRegion& region, std::uint64_t offset, std::uint64_t at_least,
                     Instant deadline) {
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(region.entry->base + offset));
  lane.lock();
  const bool began = is_open(region);
  region.watchers += began ? 1 : 0;
  lane.unlock();
  if (!began) return closed_word("wait_signal", region);
  const auto is_there = [&] { return word.load(std::memory_order_acquire) >= at_least; };
  lane.wait_until([&] { return is_there() || !is_open(region); }, deadline);
  Status status;
  if (!is_there()) {
    status = is_open(region)
                 ? Status(Code::kTimedOut, "wait_signal: the word is " + std::to_string(word.load()) + ", not " +
                                               std::to_string(at_least) + ", after the time given")
                 : closed_word("wait_signal", region);
  }
  lane.lock();
  --region.watchers;
  lane.unlock();
  return status;
}

}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

Result<std::uint64_t> Agent::read_signal(const LocalRange& word) const {
  if (!core_) return Status(Code::kInvalid, "Agent::read_signal: this agent is empty");
  HAWSER_TRY(core_->not_forked("read_signal"));
  const bool fits =
      word.region && word.size == sizeof(std::uint64_t) && agent::is_word_at(*word.region->entry, word.offset);
  if (!fits) {
    return Status(Code::kInvalid, "read_signal: the word (offset " + std::to_string(word.offset) + ", size " +
                                      std::to_string(word.size) +
                                      ") must be 8 bytes of a region in host memory, at an address aligned to 8");
  }
  if (!agent::is_open(*word.region)) return agent::closed_word("read_signal", *word.region);
  auto* at = reinterpret_cast<std::uint64_t*>(word.region->entry->base + word.offset);
  return std::atomic_ref<std::uint64_t>(*at).load(std::memory_order_acquire);
}

Status Agent::wait_signal(const LocalRange& word, std::uint64_t at_least, Duration timeout) {
  if (!core_) return Status(Code::kInvalid, "Agent::wait_signal: this agent is empty");
  if (Status status = core_->usable("wait_signal"); !status.ok()) return status;
  const Result<std::uint64_t> first = read_signal(word);
  if (!first) return first.error();
  if (word.region->core != core_) {
    return Status(Code::kInvalid, "wait_signal: region '" + word.region->entry->name + "' is another agent's");
  }
  if (*first >= at_least) return {};
  return agent::wait_for_word(core_->lane, *word.region, word.offset, at_least, core_->now() + timeout);
}

HAWSER_NAMESPACE_END
