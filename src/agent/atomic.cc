// The door's atomic operations.

#include "agent/atomic.h"

#include <hawser/agent.h>

#include "agent/core.h"
#include "agent/queue.h"
#include "base/inside.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

Status check_atomic_word(const std::string& call, const RemoteRange& word) {
  const std::shared_ptr<const RemoteRegion>& region = word.region;
  if (!region) {
    return Status(Code::kInvalid, call + ": the word is in no region").with_advice("take it from Peer::range");
  }
  const std::string where = "region '" + base::shown(region->name) + "'";
  if (word.size != sizeof(std::uint64_t) || word.offset % sizeof(std::uint64_t) != 0 ||
      !backend::in_bounds(word.offset, word.size, region->size)) {
    return Status(Code::kInvalid, call + ": the word (offset " + std::to_string(word.offset) + ", size " +
                                      std::to_string(word.size) + ") must be 8 bytes, aligned to 8, of " + where +
                                      " of " + std::to_string(region->size) + " bytes");
  }
  if (region->device.kind != DeviceKind::kHost) {
    return Status(Code::kUnsupported, call + ": " + where + " is " + to_string(region->device) +
                                          " memory, and atomics are done by its owner's CPU")
        .with_advice("keep words in host memory");
  }
  if (region->once != nullptr) {
    return Status(Code::kInvalid, call + ": a grant for one transfer takes no atomic operations")
        .with_advice("ask its owner for a grant without single_use");
  }
  if (!allows(region->rights, Rights::kReadWrite)) {
    return Status(Code::kDenied, call + ": no right to read and write " + where)
        .with_advice("its owner must register it with Rights::kReadWrite");
  }
  return {};
}

Status take_in(Core& core, const std::shared_ptr<AtomicCore>& op, Instant now) HAWSER_REQUIRES(in_lane) {
  if (core.engine.is_closing()) {
    return Status(Code::kInvalid, "atomic: agent '" + core.identity.name + "' is closing");
  }
  if (op->peer->state.load(std::memory_order_relaxed) == PeerState::kDown) return agent::down_status(*op->peer);
  return core.atomics.start(core.engine.sessions().of(op->peer), op, now);
}

Result<AtomicOp> start(const std::string& call, const Agent& agent, const RemoteRange& word, wire::AtomicAsk ask,
                       const AtomicOptions& options) {
  const std::shared_ptr<Core>& core = core_of(agent);
  if (!core) return Status(Code::kInvalid, call + ": the agent is empty");
  if (Status status = core->usable(call); !status.ok()) return status;
  if (Status bad = check_atomic_word(call, word); !bad.ok()) return bad;
  auto op = std::make_shared<AtomicCore>();
  op->peer = word.region->peer.lock();
  if (!op->peer || op->peer->core.lock() != core) {
    return Status(Code::kInvalid, call + ": the word's region is of no peer of this agent");
  }
  if (options.deadline < Duration::zero()) {
    return Status(Code::kInvalid,
                  call + ": the deadline " + std::to_string(options.deadline.count()) + " ns is negative")
        .with_advice("leave it zero for the agent's default_deadline");
  }
  ask.region = word.region->index;
  ask.generation = word.region->generation;
  ask.key = word.region->key;
  ask.offset = word.offset;
  const Instant now = core->now();
  op->core = core;
  op->ask = ask;
  op->cookie = options.cookie;
  op->submitted = now;
  op->deadline = now + (options.deadline == Duration::zero() ? core->options.default_deadline : options.deadline);
  if (options.queue != nullptr) {
    const std::shared_ptr<QueueCore>& queue = core_of(*options.queue);
    if (!queue) return Status(Code::kInvalid, call + ": the completion queue is empty: it was never made");
    if (!queue->reserve()) {
      return Status(Code::kBusy, call + ": the completion queue is full").with_advice("poll it; a kRoom entry follows");
    }
    op->queue = queue;
  }
  const std::shared_ptr<QueueCore> queue = op->queue;
  core->lane.lock();
  const Status refused = take_in(*core, op, now);
  if (refused.ok()) core->lane.turn(now);
  core->lane.unlock();
  if (!refused.ok()) {
    if (queue) queue->unreserve();
    return refused;
  }
  core->lane.wake();
  return AtomicOp(op);
}

}  // namespace
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

Result<AtomicOp> fetch_add(const Agent& agent, const RemoteRange& word, std::uint64_t add,
                           const AtomicOptions& options) {
  return agent::start("fetch_add", agent, word, {.kind = wire::AtomicKind::kFetchAdd, .operand = add}, options);
}

Result<AtomicOp> compare_swap(const Agent& agent, const RemoteRange& word, std::uint64_t expected,
                              std::uint64_t desired, const AtomicOptions& options) {
  return agent::start("compare_swap", agent, word,
                      {.kind = wire::AtomicKind::kCompareSwap, .operand = desired, .expected = expected}, options);
}

AtomicOp& AtomicOp::operator=(AtomicOp&& other) noexcept {
  if (this != &other) {
    AtomicOp gone(std::move(*this));
    core_ = std::move(other.core_);
  }
  return *this;
}

AtomicOp::~AtomicOp() { cancel(); }

bool AtomicOp::done() const { return core_ && core_->final.load(std::memory_order_acquire); }

Status AtomicOp::wait(Duration timeout) {
  if (!core_) return Status(Code::kInvalid, "AtomicOp::wait: this handle is empty");
  if (done()) return core_->status;
  const auto core = core_->core.lock();
  if (!core) return Status(Code::kInvalid, "AtomicOp::wait: the agent is gone");
  if (core->disowned()) return core->usable("AtomicOp::wait");
  HAWSER_TRY(core->not_inline("AtomicOp::wait"));
  if (core->lane.wait_until([this] { return done(); }, core->now() + timeout)) return core_->status;
  return Status(Code::kTimedOut, "AtomicOp::wait: not final yet; the operation goes on").with_scope(Scope::kRequest);
}

void AtomicOp::cancel() {
  if (!core_ || done()) return;
  const auto core = core_->core.lock();
  if (!core || core->disowned() || core->is_closed()) return;
  core->lane.lock();
  if (!core_->final.load(std::memory_order_relaxed)) {
    core->atomics.cancel(core->engine.sessions().of(core_->peer), *core_, core->now());
  }
  core->lane.unlock();
  core->lane.news();
}

Status AtomicOp::status() const { return done() ? core_->status : Status(); }
std::uint64_t AtomicOp::found() const { return done() ? core_->found : 0; }

HAWSER_NAMESPACE_END
