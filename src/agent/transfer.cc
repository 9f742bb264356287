// The door's Plan and Transfer: submitting, waiting, cancelling.

#include <hawser/transfer.h>

#include "agent/core.h"
#include "agent/fork_guard.h"
#include "agent/plan.h"
#include "agent/queue.h"
#include "agent/slot.h"
#include "base/inside.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

Status bad_submit(std::string what) { return Status(Code::kInvalid, "submit: " + std::move(what)); }

Status bad_word(std::uint64_t offset, std::uint64_t size) {
  return bad_submit("the signal's word (offset " + std::to_string(offset) + ", size " + std::to_string(size) +
                    ") must be 8 bytes of a region, aligned to 8");
}

Status take_local_word(const SignalWord* from, const Core& core, LocalWord* to) {
  if (from == nullptr) return {};
  const std::shared_ptr<LocalRegion>& region = from->word.region;
  if (!region || from->word.size != sizeof(std::uint64_t) || from->word.offset % sizeof(std::uint64_t) != 0 ||
      !backend::in_bounds(from->word.offset, from->word.size, region->entry->size)) {
    return bad_word(from->word.offset, from->word.size);
  }
  if (region->core.get() != &core) {
    return bad_submit("the word's region '" + region->entry->name + "' is another agent's, of '" +
                      region->core->options.name + "' and not of '" + core.options.name + "'");
  }
  if (region->entry->base == nullptr) return bad_submit("a word of a file cannot be a signal");
  if (region->entry->device.kind != DeviceKind::kHost) return bad_submit("a word in GPU memory cannot be a signal");
  if (!is_word_at(*region->entry, from->word.offset)) {
    return bad_submit("region '" + region->entry->name + "' begins at an address that is no multiple of 8")
        .with_advice("register memory that is aligned to 8 for words");
  }
  to->region = region;
  to->word = reinterpret_cast<std::atomic<std::uint64_t>*>(region->entry->base + from->word.offset);
  to->value = from->value;
  return {};
}

Status take_signal(const SignalTarget* from, const PlanCore& plan, RemoteWord* to) {
  if (from == nullptr) return {};
  const std::shared_ptr<const RemoteRegion>& region = from->word.region;
  if (!region || region->peer.lock() != plan.peer)
    return bad_submit("the signal's word is not in a region of the plan's peer");
  if (from->word.size != sizeof(std::uint64_t) || from->word.offset % sizeof(std::uint64_t) != 0 ||
      !backend::in_bounds(from->word.offset, from->word.size, region->size)) {
    return bad_word(from->word.offset, from->word.size);
  }
  if (region->device.kind != DeviceKind::kHost) return bad_submit("a signal's word must be in host memory");
  if (!allows(region->rights, Rights::kWrite)) {
    return Status(Code::kDenied, "submit: no right to write the signal in region '" + base::shown(region->name) + "'");
  }
  if (region->once != nullptr) {
    return bad_submit("a grant for one transfer takes no signal")
        .with_advice("let the word lie in a region of the card, or in a grant without single_use");
  }
  *to = {.region = region, .offset = from->word.offset, .add = from->add};
  return {};
}

/// A leader that has ended is taken too: the lane looks at how it ended.
Status take_leader(const Transfer* from, SlotPool& pool, Slot& slot) {
  if (from == nullptr) return {};
  if (slot_of(*from) == nullptr) {
    return from->done() ? Status() : bad_submit("after_transfer is an empty handle: it was never submitted");
  }
  if (slot_of(*from)->pool != &pool) {
    return bad_submit("after_transfer is a transfer of another agent")
        .with_advice("wait for it, or let it set a word of this agent (done, after)");
  }
  pool.follow(slot, *slot_of(*from));
  return {};
}

/// Only files have a state that is more than visible.
Status check_durable(const PlanCore& plan) {
  for (const auto& region : plan.remotes) {
    if (region->device.kind == DeviceKind::kFile) continue;
    return bad_submit("durable is for plans into files, and region '" + base::shown(region->name) + "' is " +
                      to_string(region->device) + " memory");
  }
  return {};
}

/// Checks the options of a submission that is not plain, and takes what plain ones have nothing of. On an error the
/// caller drops the slot.
Status fill_extras(Slot& slot, const PlanCore& plan, const SubmitOptions& options) {
  if (options.notify && options.notify->size() > kMessageMax) {
    return bad_submit("a notification of " + std::to_string(options.notify->size()) +
                      " bytes; at most kMessageMax, 65536");
  }
  if (options.deadline < Duration::zero()) {
    return bad_submit("the deadline " + std::to_string(options.deadline.count()) + " ns is negative")
        .with_advice("leave it zero for the agent's default_deadline");
  }
  slot.has_extras = true;
  if (Status bad = take_signal(options.signal, plan, &slot.signal); !bad.ok()) return bad;
  if (Status bad = take_local_word(options.after, *plan.core, &slot.after); !bad.ok()) return bad;
  if (Status bad = take_local_word(options.done, *plan.core, &slot.done_word); !bad.ok()) return bad;
  if (Status bad = take_leader(options.after_transfer, *plan.core->slots, slot); !bad.ok()) return bad;
  return options.durable ? check_durable(plan) : Status();
}

void fill(Slot& slot, const std::shared_ptr<PlanCore>& plan, const SubmitOptions& options, Instant now) {
  const Core& core = *plan->core;
  slot.notify_size.reset();
  if (options.notify) {
    slot.notify.assign(*options.notify);
    slot.notify_size = options.notify->size();
  }
  slot.place_taken = false;
  slot.cookie = options.cookie;
  slot.label = options.label;
  slot.priority = options.priority;
  slot.durable = options.durable;
  slot.submitted = now;
  slot.deadline = now + (options.deadline == Duration::zero() ? core.options.default_deadline : options.deadline);
  slot.plan = plan;
}

/// Gives back a slot that never was accepted.
void discard(Slot* slot) {
  if (slot->queue) slot->queue->unreserve();
  slot->plan.reset();
  slot->forget_extras();
  SlotPool* pool = slot->pool;
  pool->finished(slot);
  pool->drop_handle(slot);
}

/// What can be known without the lane's lock. The lane looks again.
Status check_alive(const Slot& slot) {
  PeerCore& peer = *slot.plan->peer;
  if (peer.state.load(std::memory_order_acquire) == PeerState::kDown) return agent::down_status(peer);
  return check_locals(slot);
}

/// Leaves a slot to the lane's holder, with its place at the peer: what is wrong already is told to the caller, not to
/// the transfer.
Status leave(Core& core, Slot* slot) {
  PeerCore& peer = *slot->plan->peer;
  if (Status dead = check_alive(*slot); !dead.ok()) return dead;
  if (Status full = take_place(*slot, peer); !full.ok()) return full;
  if (core.lane.leave(slot)) {
    if (core.is_closed()) {  // Its last turn may be over.
      core.lane.lock();
      core.refuse_what_is_left();
      core.lane.unlock();
    }
    return {};
  }
  give_place_back(*slot, peer);
  return Status(Code::kBusy, "submit: " + std::to_string(kSubmissionsMax) + " submissions wait for the lane");
}

/// Whether the submitting thread should do the work itself. Where a driver runs, only what is over at once.
bool worth_doing_here(const Core& core, const PlanCore& plan) {
  constexpr std::uint64_t kSmall = 64 * 1024;
  return !core.lane.driven() || plan.pieces.bytes <= kSmall;
}

/// Whether all that is asked for is that the bytes be moved, and the peer be notified.
bool is_plain(const SubmitOptions& options) {
  return (!options.notify || options.notify->size() <= kMessageMax) && options.queue == nullptr &&
         options.signal == nullptr && options.after == nullptr && options.after_transfer == nullptr &&
         options.done == nullptr && !options.durable && options.deadline >= Duration::zero();
}

/// Most small transfers over shared memory are only a copy. Those are done here, without a slot; false: do it with one.
bool done_at_once(Core& core, PlanCore& plan, const std::optional<std::string_view>& notify) {
  if (plan.chunk_count() != 1 || plan.is_single_use || !worth_doing_here(core, plan)) return false;
  if (notify && plan.peer->is_self) return false;  // Its own next turn has to be asked for.
  if (!plan.peer->use().moves_at_once.load(std::memory_order_relaxed)) return false;
  if (plan.peer->state.load(std::memory_order_acquire) == PeerState::kDown) return false;
  if (!core.lane.try_lock()) return false;
  core.lane.let_older_go_first();
  const bool done = core.engine.at_once().move(plan, notify);
  core.lane.unlock();
  return done;
}

}  // namespace
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

Operation Plan::operation() const { return core_ ? core_->operation : Operation::kWrite; }
std::uint64_t Plan::bytes() const { return core_ ? core_->pieces.bytes : 0; }
std::uint64_t Plan::range_count() const { return core_ ? core_->pieces.pair_count : 0; }
std::uint64_t Plan::piece_count() const { return core_ ? core_->pieces.all.size() : 0; }

Result<Transfer> Plan::submit(const SubmitOptions& options) const {
  if (!core_) return agent::bad_submit("this plan is empty: it was never made");
  agent::Core& core = *core_->core;
  if (core.disowned() || core.is_closed()) return core.usable("submit");
  const bool plain = agent::is_plain(options);
  if (plain && agent::done_at_once(core, *core_, options.notify)) return Transfer::ended(core_->pieces.bytes);
  const Instant now = core.now();
  agent::Slot* slot = core.slots->take();
  if (slot == nullptr) {
    return Status(Code::kBusy,
                  "submit: limits.transfers = " + std::to_string(core.slots->limit()) + " are in flight or held")
        .with_advice("wait for some to end and drop their handles");
  }
  if (Status bad = plain ? Status() : agent::fill_extras(*slot, *core_, options); !bad.ok()) {
    agent::discard(slot);
    return bad;
  }
  agent::fill(*slot, core_, options, now);
  if (options.queue != nullptr) {
    slot->queue = core_of(*options.queue);
    if (!slot->queue || !slot->queue->reserve()) {
      const bool full = slot->queue != nullptr;
      slot->queue.reset();  // Nothing was reserved there.
      agent::discard(slot);
      if (!full) return agent::bad_submit("the completion queue is empty: it was never made");
      return Status(Code::kBusy, "submit: the completion queue is full").with_advice("poll it; a kRoom entry follows");
    }
  }
  if (!agent::worth_doing_here(core, *core_) || !core.lane.try_lock()) {
    const Status refused = agent::leave(core, slot);
    if (refused.ok()) return Transfer(slot);
    agent::discard(slot);
    return refused;
  }
  core.lane.let_older_go_first();
  const Status refused = core.engine.dispatcher().start(*slot, now);
  core.lane.unlock();
  if (!refused.ok()) {
    agent::discard(slot);
    return refused.with_peer(core_->peer->name);
  }
  // What goes to the agent itself rings no bell: its notification waits for the next turn. The owner of a grant for one
  // transfer is told of the end in a turn, too.
  const bool needs_turn = core_->peer->is_self || core_->is_single_use;
  if (slot->phase.load(std::memory_order_relaxed) != agent::Phase::kFinal || needs_turn) core.lane.wake();
  return Transfer(slot);
}

Transfer& Transfer::operator=(Transfer&& other) noexcept {
  if (this != &other) {
    Transfer gone(std::move(*this));
    slot_ = std::exchange(other.slot_, nullptr);
    ended_bytes_ = std::exchange(other.ended_bytes_, kNotEnded);
  }
  return *this;
}

void Transfer::drop() {
  if (slot_->pool->disowned()) return;
  if (!is_final()) cancel();
  slot_->pool->drop_handle(slot_);
}

bool Transfer::is_final() const { return slot_->phase.load(std::memory_order_acquire) == agent::Phase::kFinal; }

Status Transfer::wait(Duration timeout) {
  if (slot_ == nullptr) return done() ? Status() : Status(Code::kInvalid, "Transfer::wait: this handle is empty");
  if (is_final()) return slot_->status;
  const auto core = slot_->pool->core.lock();
  if (!core) return Status(Code::kInvalid, "Transfer::wait: the agent is gone");
  if (core->disowned()) return core->usable("Transfer::wait");
  HAWSER_TRY(core->not_inline("Transfer::wait"));
  if (core->lane.wait_until([this] { return is_final(); }, core->now() + timeout)) return slot_->status;
  return Status(Code::kTimedOut, "Transfer::wait: not final yet; the transfer goes on").with_scope(Scope::kRequest);
}

void Transfer::cancel() {
  if (slot_ == nullptr || is_final() || slot_->pool->disowned()) return;
  const auto core = slot_->pool->core.lock();
  if (!core) return;
  slot_->cancel_asked.store(true, std::memory_order_release);
  core->lane.ask_cancel(slot_);
}

Status Transfer::status() const { return slot_ != nullptr && is_final() ? slot_->status : Status(); }

std::uint64_t Transfer::bytes() const {
  if (slot_ == nullptr) return done() ? ended_bytes_ : 0;
  return slot_->bytes_done.load(std::memory_order_relaxed);
}

HAWSER_NAMESPACE_END
