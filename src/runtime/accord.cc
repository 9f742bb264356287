#include "runtime/accord.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"
#include "runtime/rank_bitmap.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

Accord::Accord(std::uint64_t world, std::string name, std::uint32_t rank, std::span<const Peer> ranks, Mailbox& mailbox)
    : world_(world),
      name_(std::move(name)),
      ranks_(ranks.begin(), ranks.end()),
      mailbox_(mailbox),
      agreement_(rank, static_cast<std::uint32_t>(ranks.size()),
                 [this](std::uint32_t to, const AgreementMessage& message) { tell(to, message); }) {}

Accord::~Accord() { stop(Status(Code::kCancelled, "world '" + name_ + "' was closed")); }

void Accord::tell(std::uint32_t to, const AgreementMessage& message) {
  const AgreementValue& value = message.value;
  std::vector<bool> dead = value.dead;
  dead.resize(ranks_.size());
  mailbox_.tell(ranks_[to],
                {{.kind = wire::RuntimeKind::kAgree,
                  .world = world_,
                  .number = message.number,
                  .last_good = value.last_good,
                  .phase = message.phase,
                  .ballot = message.ballot,
                  .calls = value.calls,
                  .flag = value.flag},
                 bitmap_of(value.failed) + bitmap_of(dead)},
                now_);
}

void Accord::begin(const std::shared_ptr<Agreeing>& call, Duration timeout, Instant now, bool holds) {
  now_ = now;
  const Status over = stopped_.ok() ? closed_ : stopped_;
  if (call_ != nullptr || !over.ok()) {
    const Status busy = Status(Code::kBusy, "world '" + name_ + "': another agree or shrink of this rank is under way")
                            .with_advice("wait for it to end");
    call->status = over.ok() ? busy : over;
    if (call->ending) call->ending(*call);
    return call->final.store(true, std::memory_order_release);
  }
  call_ = call;
  call->self = call;
  call->until = now + timeout;
  call->late = [this](Instant at) { on_late(at); };
  call->cancelled = [this](const Status& why) { end(why); };
  // Some time before the end the leader is asked for whom it waits, so that the error can tell.
  constexpr Duration kTimeToAsk = std::chrono::seconds(1);
  constexpr int kPart = 4;
  mailbox_.set_deadline(*call, call->until - std::min<Duration>(timeout / kPart, kTimeToAsk));
  // One that was given up may have been decided meanwhile.
  const bool is_decided =
      unfinished_ != 0 && !planted(Planted::kAgreesAnew) && agreement_.decision(unfinished_) != nullptr;
  holds_ = holds && !is_decided;
  call->number = agreement_.number();
  if (is_decided) call->number = unfinished_;
  if (!holds_ && !is_decided) call->number = agreement_.vote(call->value);
  end_if_decided();
}

void Accord::release(Instant now) {
  if (call_ == nullptr || !std::exchange(holds_, false)) return;
  now_ = now;
  call_->number = agreement_.vote(call_->value);
  end_if_decided();
}

void Accord::note_failed(std::uint32_t rank, Instant now) {
  if (!stopped_.ok() || planted(Planted::kAccordDeaf)) return;
  now_ = now;
  agreement_.note_failed(rank);
  end_if_decided();
}

void Accord::hear(std::uint32_t from, const wire::RuntimeMessage& message, Instant now) {
  if (!stopped_.ok()) return;
  now_ = now;
  const std::size_t half = message.body.size() / 2;
  agreement_.hear(from, {.number = message.number,
                         .phase = message.phase,
                         .ballot = message.ballot,
                         .value = {.calls = message.calls,
                                   .flag = message.flag,
                                   .last_good = message.last_good,
                                   .failed = ranks_of(message.body.first(half), ranks_.size()),
                                   .dead = ranks_of(message.body.subspan(half), ranks_.size())}});
  end_if_decided();
}

void Accord::on_late(Instant now) {
  now_ = now;
  if (!std::exchange(call_->has_asked, true)) {
    agreement_.ask_for_absent();
    return mailbox_.set_deadline(*call_, call_->until);
  }
  end(Status(Code::kTimedOut, "the ranks of world '" + name_ + "' did not agree by the deadline; it waits for rank " +
                                  list_of(agreement_.absent()))
          .with_advice("call it again: the agreement goes on"));
}

void Accord::end_if_decided() {
  if (call_ == nullptr) return;
  const AgreementValue* const decision = agreement_.decision(call_->number);
  if (decision == nullptr) return;
  call_->value = *decision;
  const bool differ = (decision->calls & (decision->calls - 1)) != 0;
  end(differ ? Status(Code::kInvalid,
                      "world '" + name_ + "': some ranks called agree, others shrink, or their quorums differ")
             : Status());
}

void Accord::stop(const Status& why) {
  if (stopped_.ok()) stopped_ = why;
  if (call_ != nullptr) end(why);
}

void Accord::close(const Status& why) {
  if (closed_.ok()) closed_ = why;
  if (call_ != nullptr) end(why);
}

void Accord::end(Status status) {
  const std::shared_ptr<Agreeing> call = std::move(call_);
  call_ = nullptr;
  mailbox_.clear_deadline(*call);
  unfinished_ = agreement_.decision(call->number) == nullptr ? call->number : 0;
  call->status = std::move(status);
  if (call->ending) call->ending(*call);
  const std::shared_ptr<Operation> keep = std::move(call->self);
  call->final.store(true, std::memory_order_release);
  mailbox_.note_end();
}

}  // namespace hawser::runtime
