#include "runtime/calls.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"
#include "base/shown.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

namespace {

/// Whose handler this thread runs.
thread_local const Calls* runs_for = nullptr;
/// How long somebody waits for what that handler answers.
thread_local Instant runs_until = Instant::max();

/// Of which rank it runs a handler in the middle of the lane's turn.
thread_local const RankSeat* inline_for = nullptr;

/// While it lives this thread runs a handler with that deadline.
class HandlerTime {
 public:
  explicit HandlerTime(Instant deadline) : outer_(std::exchange(runs_until, deadline)) {}
  ~HandlerTime() { runs_until = outer_; }
  HandlerTime(const HandlerTime&) = delete;
  HandlerTime& operator=(const HandlerTime&) = delete;

 private:
  const Instant outer_;
};

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001B3ULL;
  return hash == wire::kCallOff ? 1 : hash;
}

CallAnswer text_bytes(std::string_view text) {
  const auto bytes = base::as_bytes(text.substr(0, kCallTextMax));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

/// Guests of one agent share its lane.
bool runs_inline_for(const RankSeat* seat) {
  if (inline_for == nullptr || seat == nullptr) return false;
  const auto& agent = core_of(seat->agent);
  return inline_for == seat || (agent != nullptr && core_of(inline_for->agent) == agent);
}

HandlerKey HandlerKey::of(std::string_view name) {
  return {.number = hash_of(name), .name = std::string(name), .is_named = true};
}

HandlerKey HandlerKey::of(std::uint64_t number) {
  const std::string text = std::to_string(number);
  return {.number = hash_of("\xff" + text), .name = text, .is_named = false};
}

std::string HandlerKey::shown() const { return is_named ? "'" + base::shown(name) + "'" : name; }

Status check_handler_name(std::string_view name) {
  if (!name.empty() && name.size() <= kHandlerNameMax) return {};
  return {Code::kInvalid, "register_handler: a name has 1 to " + std::to_string(kHandlerNameMax) + " bytes"};
}

/// What a call has under way at its caller. It outlives a call that was given up, until the answer has come.
struct CallFlight final : Listener {
  void on_end(Operation& operation) override {
    operation.final.store(true, std::memory_order_relaxed);
    calls->soon([calls = calls, id = id](Instant now) {
      const auto here = calls->flights_.find(id);
      if (here != calls->flights_.end()) calls->settle(*here->second, now);
    });
  }

  Calls* calls = nullptr;
  std::uint64_t id = 0;
  std::shared_ptr<Calling> call;  ///< Null: it was given up.
  Send send;
  Receive receive;
};

struct Calls::Incoming final : Listener {
  void on_matched(Receive& its) override {
    calls->job_bytes_ += its.got.bytes;
    calls->open_one_ = nullptr;
    is_matched = true;
    calls->soon([calls = calls](Instant now) { calls->take_in(now); });
  }
  void on_end(Operation& operation) override {
    operation.final.store(true, std::memory_order_relaxed);
    calls->soon([this](Instant now) { calls->on_in_end(*this, now); });
  }

  bool is(const void* source, std::uint64_t id) const {
    return is_matched && source_of(receive.from) == source && receive.got.tag == id;
  }

  Calls* calls = nullptr;
  bool is_matched = false;     ///< Its caller is known; arguments may still come.
  bool is_taken_back = false;  ///< Its caller waits no more.
  Receive receive;
};

struct Calls::Job {
  Peer from;
  std::uint32_t source = 0;
  std::uint64_t id = 0;
  std::unique_ptr<Incoming> incoming;  ///< With the arguments.
  std::shared_ptr<const Handler> handler;
  Instant deadline = Instant::max();
  std::atomic<bool> cancelled{false};
};

struct Calls::Parting final : Listener {
  void on_end(Operation&) override {
    calls->soon([this](Instant) { calls->partings_.remove_if([this](const Parting& one) { return &one == this; }); });
  }

  Calls* calls = nullptr;
  CallAnswer bytes;
  Send send;
};

// ---- Beginning and ending.

Calls::Calls(std::weak_ptr<RankSeat> seat, Mailbox& mailbox, Site site)
    : seat_(std::move(seat)), mailbox_(mailbox), site_(std::move(site)) {}
Calls::~Calls() = default;

void Calls::soon(std::function<void(Instant now)> job) {
  mailbox_.run_soon([is_here = weak_from_this(), job = std::move(job)](Instant now) {
    if (const std::shared_ptr<Calls> calls = is_here.lock()) job(now);
  });
}

void Calls::open(Instant now) { take_in(now); }

Status Calls::add_handler(const HandlerKey& key, CallHandler handler, HandlerOptions options) {
  const auto invalid = [](const std::string& text) { return Status(Code::kInvalid, "register_handler: " + text); };
  if (!handler) return invalid("there is no function");
  const auto made = std::make_shared<const Handler>(Handler{key.name, std::move(handler), options});
  const auto [at, is_new] = handlers_.emplace(key.number, made);
  return is_new ? Status() : invalid("handler " + key.shown() + ": '" + at->second->name + "' has been registered");
}

void Calls::stop(const Status& why, Instant now) {
  if (!stopped_.ok()) return;
  stopped_ = why;
  for (const auto& [id, flight] : flights_) {
    if (flight->call != nullptr) end_call(*flight->call, why);
    mailbox_.stop(flight->send, why, now);
    mailbox_.stop(flight->receive, why, now);
  }
  for (const std::unique_ptr<Incoming>& incoming : incoming_) mailbox_.stop(incoming->receive, why, now);
  for (Parting& parting : partings_) mailbox_.stop(parting.send, why, now);
  for (const auto& [key, job] : jobs_) job->cancelled.store(true, std::memory_order_relaxed);
  handlers_.clear();  // They may refer to what holds this.
}

void Calls::on_down(const void* source) {
  for (auto at = jobs_.lower_bound({source, 0}); at != jobs_.end() && at->first.first == source; ++at) {
    at->second->cancelled.store(true, std::memory_order_relaxed);
  }
}

bool Calls::is_quiet() {
  const std::size_t own = runs_for == this ? 1 : 0;
  const base::MutexLock lock(mutex_);
  return running_ <= own;
}

bool Calls::wait_quiet(Duration patience) {
  const std::shared_ptr<RankSeat> seat = seat_.lock();
  if (seat != nullptr && !agent::inner::not_forked(seat->agent, "World::close").ok()) return true;
  if (is_quiet() || seat == nullptr) return is_quiet();
  if (!seat->has_threads()) {
    return agent::inner::wait_until(
        seat->agent, [this] { return is_quiet(); }, agent::inner::now(seat->agent) + patience);
  }
  const Instant deadline = Clock::steady().now() + patience;
  const std::size_t own = runs_for == this ? 1 : 0;
  const base::MutexLock lock(mutex_);
  while (running_ > own) {
    if (!quiet_.wait_until(mutex_, deadline)) return running_ <= own;
  }
  return true;
}

// ---- The caller's side.

Duration Calls::patience(Duration otherwise, Instant now) {
  if (runs_until == Instant::max()) return otherwise;
  return std::max(std::min(runs_until - now, otherwise), Duration(1));
}

void Calling::on_late(Operation&, Instant now) {
  calls->give_up(*this, Status(Code::kTimedOut, text + " did not answer by the deadline"), now);
}

void Calling::on_cancel(Operation&, const Status& why, Instant now) { calls->give_up(*this, why, now); }

void Calls::end_call(Calling& call, Status status) {
  const std::shared_ptr<Calling> keep = std::move(call.flight->call);
  call.flight->call = nullptr;
  call.flight = nullptr;
  mailbox_.clear_deadline(call);
  call.status = std::move(status);
  const std::shared_ptr<Operation> self = std::move(call.self);
  call.final.store(true, std::memory_order_release);
  mailbox_.note_end();
}

void Calls::begin(const std::shared_ptr<Calling>& call, const Peer& to, std::uint64_t handler,
                  std::span<const std::byte> arguments, Duration timeout, Instant now) {
  const std::uint64_t id = next_id_++;
  auto made = std::make_unique<CallFlight>();
  CallFlight& flight = *made;
  flight.calls = this;
  flight.id = id;
  flight.call = call;
  call->calls = this;
  call->flight = &flight;
  call->self = call;
  if (!stopped_.ok()) return end_call(*call, stopped_);
  // Sent, it might be answered before the deadline is looked at, or be run for nobody.
  if (timeout < kShortestCall) {
    return end_call(*call, Status(Code::kTimedOut, call->text + " was not sent: it has less than 1 us"));
  }
  if (flights_.size() >= kCallsMax) {
    return end_call(*call, Status(Code::kBusy, call->text + ": " + std::to_string(kCallsMax) +
                                                   " calls of this rank are under way in world '" + site_.name + "'")
                               .with_advice("wait for some of them to end"));
  }
  flights_.emplace(id, std::move(made));
  mailbox_.set_deadline(*call, now + timeout);
  flight.receive.listener = &flight;
  flight.receive.pattern = {.world = site_.world, .use = wire::MessageUse::kAnswer, .source = source_of(to), .tag = id};
  if (planted(Planted::kAnswerMistaken)) flight.receive.pattern.tag = std::nullopt;
  flight.receive.has_buffer = false;
  flight.send.listener = &flight;
  flight.send.to = to;
  const auto wait = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  flight.send.envelope = {.world = site_.world,
                          .use = wire::MessageUse::kCall,
                          .tag = id,
                          .digest = handler,
                          .extra = static_cast<std::uint64_t>(wait),
                          .bytes = arguments.size()};
  flight.send.data = arguments.data();
  mailbox_.start(flight.receive, Instant::max(), now);
  mailbox_.start(flight.send, Instant::max(), now);
}

/// Both messages are stopped where the other rank has not got all arguments; else it is told, and its answer awaited.
void Calls::give_up(Calling& call, const Status& why, Instant now) {
  CallFlight& flight = *call.flight;
  end_call(call, why);
  if (!flight.send.final.load(std::memory_order_relaxed)) {
    mailbox_.stop(flight.send, why, now);
    mailbox_.stop(flight.receive, why, now);
  } else if (!flight.receive.final.load(std::memory_order_relaxed)) {
    say(flight.send.to,
        {.world = site_.world, .use = wire::MessageUse::kCall, .tag = flight.id, .digest = wire::kCallOff}, {}, now);
  }
}

void Calls::settle(CallFlight& flight, Instant now) {
  const bool sent = flight.send.final.load(std::memory_order_relaxed);
  const bool answered = flight.receive.final.load(std::memory_order_relaxed);
  if (sent && !answered && !flight.send.status.ok()) return mailbox_.stop(flight.receive, flight.send.status, now);
  if (answered && !sent) return mailbox_.stop(flight.send, Status(Code::kCancelled, "it was answered before"), now);
  if (!sent || !answered) return;
  if (flight.call != nullptr) {
    Calling& call = *flight.call;
    Receive& got = flight.receive;
    const auto code = static_cast<Code>(got.got.digest);
    const Status& lost = flight.send.status.ok() ? got.status : flight.send.status;
    if (!lost.ok() && !got.status.ok()) {
      end_call(call, Status(lost.code(), call.text + " was not reached, or its answer did not come").because(lost));
    } else if (code != Code::kOk) {
      const std::string_view text = base::as_text({got.own.get(), got.received});
      end_call(call, Status(code, call.text + ": " + base::shown(text.substr(0, kCallTextMax))));
    } else {
      call.answer = std::move(got.own);
      call.answer_size = got.received;
      end_call(call, {});
    }
  }
  flights_.erase(flight.id);
}

// ---- The side that answers.

Pattern Calls::calls_pattern() const {
  return {.world = site_.world,
          .use = wire::MessageUse::kCall,
          .source = nullptr,
          .members = site_.members,
          .tag = std::nullopt};
}

void Calls::take_in(Instant now) {
  if (open_one_ != nullptr || !stopped_.ok() || !has_room()) return;
  Incoming& incoming = *incoming_.emplace_back(std::make_unique<Incoming>());
  incoming.calls = this;
  incoming.receive.listener = &incoming;
  incoming.receive.is_standing = true;
  incoming.receive.pattern = calls_pattern();
  incoming.receive.has_buffer = false;
  open_one_ = &incoming;
  mailbox_.start(incoming.receive, Instant::max(), now);
}

void Calls::on_in_end(Incoming& incoming, Instant now) {
  const auto at = std::ranges::find_if(incoming_, [&](const auto& one) { return one.get() == &incoming; });
  std::unique_ptr<Incoming> owned = std::move(*at);
  incoming_.erase(at);
  if (open_one_ == &incoming) open_one_ = nullptr;
  const Status& status = owned->receive.status;
  if (status.ok()) return dispatch(std::move(owned), now);
  job_bytes_ -= owned->receive.got.bytes;
  // There was no memory for the arguments: left where it is, the call would be refused for ever.
  if (status.code() == Code::kBusy || status.code() == Code::kInvalid) turn_away(status, now);
  take_in(now);
}

void Calls::turn_away(const Status& why, Instant now) {
  Peer from;
  wire::MessageEnvelope envelope;
  if (mailbox_.discard(calls_pattern(), &from, &envelope)) answer(from, envelope.tag, why, now);
}

void Calls::dispatch(std::unique_ptr<Incoming> incoming, Instant now) {
  const Receive& got = incoming->receive;
  const std::uint64_t id = got.got.tag, number = got.got.digest;
  const auto handler = handlers_.find(number);
  const bool is_known = jobs_.contains({source_of(got.from), id});
  if (number != wire::kCallOff && handler != handlers_.end() && !is_known) {
    return begin_job(std::move(incoming), handler->second, now);
  }
  job_bytes_ -= got.got.bytes;
  if (number == wire::kCallOff) {
    take_back(source_of(got.from), id);
  } else if (is_known) {
    answer(got.from, id, Status(Code::kInvalid, "another call of this number is under way"), now);
  } else {
    answer(got.from, id, Status(Code::kNotFound, "nothing is registered by that name"), now);
  }
  take_in(now);
}

void Calls::begin_job(std::unique_ptr<Incoming> incoming, std::shared_ptr<const Handler> handler, Instant now) {
  auto job = std::make_shared<Job>();
  job->from = incoming->receive.from;
  job->source = site_.rank_of(job->from).value_or(UINT32_MAX);
  job->id = incoming->receive.got.tag;
  const std::uint64_t wait = incoming->receive.got.extra;
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 50;  // 35 years.
  if (wait != 0 && wait < kLongest) job->deadline = now + std::chrono::microseconds(wait);
  job->cancelled.store(incoming->is_taken_back, std::memory_order_relaxed);
  job->incoming = std::move(incoming);
  job->handler = std::move(handler);
  jobs_.emplace(JobKey{source_of(job->from), job->id}, job);
  if (job->handler->options.runs_inline) {
    finish(*job, run_inline(*job, now), now);
  } else {
    run_apart(job);
  }
  take_in(now);
}

/// Calls of the handler find the lane's lock taken, and are refused where they would wait.
Result<CallAnswer> Calls::run_inline(Job& job, Instant now) {
  const std::shared_ptr<RankSeat> seat = seat_.lock();
  if (seat == nullptr) return run(job, now);
  std::optional<Result<CallAnswer>> result;
  inline_for = seat.get();
  agent::inner::run_for_user(seat->agent, [&] { result = run(job, now); });
  inline_for = nullptr;
  return *std::move(result);
}

void Calls::run_apart(const std::shared_ptr<Job>& job) {
  const std::shared_ptr<RankSeat> seat = seat_.lock();
  if (seat == nullptr) return;
  {
    const base::MutexLock lock(mutex_);
    ++running_;
  }
  // What was dropped without having run counts no more, too.
  std::shared_ptr<void> counted(nullptr, [is_here = weak_from_this()](void*) {
    const std::shared_ptr<Calls> calls = is_here.lock();
    if (calls == nullptr) return;
    const base::MutexLock lock(calls->mutex_);
    --calls->running_;
    calls->quiet_.notify_all();
  });
  seat->run([is_here = weak_from_this(), from = seat_, job, its_count = std::move(counted)] {
    Instant now;
    {
      const std::shared_ptr<RankSeat> at = from.lock();
      const std::shared_ptr<Calls> calls = is_here.lock();
      if (at == nullptr || calls == nullptr) return;
      now = agent::inner::now(at->agent);
      runs_for = calls.get();
    }
    Result<CallAnswer> result = run(*job, now);
    runs_for = nullptr;
    const std::shared_ptr<RankSeat> at = from.lock();
    const std::shared_ptr<Calls> calls = is_here.lock();
    if (at == nullptr || calls == nullptr) return;
    static_cast<void>(agent::inner::under_lane(at->agent, "an answer", [&](Instant then) {
      calls->finish(*job, std::move(result), then);
      at->mailbox->run_jobs(then);
    }));
  });
}

Result<CallAnswer> Calls::run(const Job& job, Instant now) {
  const bool is_taken_back = job.cancelled.load(std::memory_order_relaxed) && !planted(Planted::kTakenBackRuns);
  if (is_taken_back) return Status(Code::kCancelled, "the call was taken back");
  if (now >= job.deadline) return Status(Code::kTimedOut, "the deadline was over before it could begin");
  const Receive& got = job.incoming->receive;
  const IncomingCall call = {.source = job.source,
                             .name = job.handler->name,
                             .arguments = got.made_bytes(),
                             .timeout = job.deadline == Instant::max() ? Duration::max() : job.deadline - now,
                             .cancelled = &job.cancelled};
  const HandlerTime time(job.deadline);
  try {
    return job.handler->call(call);
  } catch (const std::exception& error) {
    return Status(Code::kFailed, error.what());
  } catch (...) {
    return Status(Code::kFailed, "it threw something that is no std::exception");
  }
}

/// One that runs is told and goes on; its answer comes all the same. Word of it may overtake arguments, which are bulk.
void Calls::take_back(const void* source, std::uint64_t id) {
  const auto found = jobs_.find({source, id});
  if (found != jobs_.end()) return found->second->cancelled.store(true, std::memory_order_relaxed);
  for (const auto& incoming : incoming_) {
    if (incoming->is(source, id)) incoming->is_taken_back = true;
  }
}

void Calls::finish(const Job& job, Result<CallAnswer> result, Instant now) {
  job_bytes_ -= job.incoming->receive.got.bytes;
  const Peer to = job.from;
  const std::uint64_t id = job.id;
  jobs_.erase({source_of(to), id});
  answer(to, id, std::move(result), now);
  take_in(now);
}

void Calls::answer(const Peer& to, std::uint64_t id, Result<CallAnswer> result, Instant now) {
  if (result && result->size() > kOwnBufferMax) {
    result = Status(Code::kInvalid, "the answer is " + std::to_string(result->size()) + " bytes long, " +
                                        std::to_string(kOwnBufferMax) + " are the most");
  }
  const Code code = result ? Code::kOk : result.error().code();
  CallAnswer bytes = result ? std::move(*result) : text_bytes(result.error().message());
  say(to,
      {.world = site_.world, .use = wire::MessageUse::kAnswer, .tag = id, .digest = static_cast<std::uint64_t>(code)},
      std::move(bytes), now);
}

void Calls::say(const Peer& to, wire::MessageEnvelope envelope, CallAnswer bytes, Instant now) {
  if (!stopped_.ok()) return;
  Parting& parting = partings_.emplace_back();
  parting.calls = this;
  parting.bytes = std::move(bytes);
  parting.send.listener = &parting;
  parting.send.to = to;
  parting.send.envelope = envelope;
  parting.send.envelope.bytes = parting.bytes.size();
  parting.send.data = parting.bytes.data();
  mailbox_.start(parting.send, Instant::max(), now);
}

}  // namespace hawser::runtime
