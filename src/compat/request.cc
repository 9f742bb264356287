#include "compat/request.h"

#include <algorithm>

#include "agent/inner.h"
#include "agent/inner_plans.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "plan/pair_rows.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kReleasePatience = std::chrono::seconds(2);
/// How long a post waits for room in its target's inbox, before it leaves the rest to who looks.
constexpr Duration kPartPatience = std::chrono::milliseconds(50);
constexpr std::string_view kPost = "post_xfer_req";
constexpr std::string_view kStatus = "get_xfer_status";

Status was_released(std::string_view call) {
  return refusal(NixlCode::kInvalidParam, call, "the request was released");
}

}  // namespace

RequestCore::~RequestCore() {
  if (!core->need_home("release_xfer_req").ok()) {
    notice.disown();
    return;
  }
  core->leave_long(this);  // Nobody looks at it from here on.
  end_notice();
}

std::uint64_t RequestCore::now_us() const {
  if (!core->telemetry()) return 0;  // Nobody is told of it, and the clock takes a hundredth of a small transfer.
  return static_cast<std::uint64_t>(Clock::steady().now().ns()) / 1000;
}

void RequestCore::set_finished(bool is_finished) {
  finished.store(is_finished, std::memory_order_release);
  if (mirror_ != nullptr) mirror_->store(is_finished ? mirror_tag_ : 0, std::memory_order_release);
}

void RequestCore::mirror_finished(std::atomic<std::uint64_t>* word, std::uint64_t tag) {
  const std::lock_guard lock(mutex);
  mirror_ = word;
  mirror_tag_ = tag;
  set_finished(finished.load(std::memory_order_relaxed));
}

void RequestCore::try_look() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (lock && !released) (void)look_locked();
}

/// Gives the plan to the library, with the notification where that has room.
Status RequestCore::offer(SubmitOptions& options) {
  std::string text;
  if (notice.goes_along()) {
    Result<std::string> ready = carried();
    if (!ready && ready.error().code() != Code::kBusy) return ready.error();
    if (ready) options.notify = text = *std::move(ready);
  }
  Result<Transfer> sent = Status(Code::kBusy, "no room");
  if (!notice.goes_along() || options.notify) sent = plan.submit(options);
  if (!sent && sent.error().code() == Code::kBusy && notice.goes_along()) {
    notice.go_apart();
    options.notify.reset();
    sent = plan.submit(options);
  }
  if (sent) transfer = std::move(*sent);
  return sent.status();
}

/// Hands the request to the library. A bound that was reached is waited for, as NIXL's queues do.
Result<bool> RequestCore::submit() {
  if (moves_nothing) {
    waiting = false;
    if (notice.goes_along()) notice.go_apart();
    return outcome();
  }
  SubmitOptions options{.durable = is_durable};
  const Status status = offer(options);
  waiting = status.code() == Code::kBusy && Clock::steady().now() < waits_until;
  if (waiting) return true;
  if (!status.ok()) {
    const bool gone = status.code() == Code::kDisconnected;
    return fail(
        refusal(gone ? NixlCode::kRemoteDisconnect : NixlCode::kBackend, kPost, "the transfer is refused", status));
  }
  give_first_turn();
  return outcome();
}

Result<bool> RequestCore::fail(const Status& status) {
  refused = status;
  if (Telemetry* const exporter = core->exporter(); exporter != nullptr) exporter->failed(code_of(status));
  end_notice();
  return refused;
}

/// Some clients post and look much later, or wait for the peer's word alone: what a turn can do is done by then.
void RequestCore::give_first_turn() {
  if (core->config().progress_thread || transfer->done() || agent::inner::moves_in_submit(plan)) return;
  core->poll();
}

Result<bool> RequestCore::look_locked() {
  core->poll();
  return waiting ? submit() : outcome();
}

/// What is known without asking anybody.
Result<bool> RequestCore::outcome() {
  if (!refused.ok()) return refused;
  if (!posted) return refusal(NixlCode::kNotPosted, kStatus, "the request was not posted");
  if (is_moving()) {
    notice.pump();
    return true;
  }
  Status status = transfer ? transfer->status() : Status();
  if (status.ok() && !notice.is_settled()) {
    const Result<bool> later = tell_now();
    if (later && *later) return true;
    status = later.status();
  }
  if (!counted) {
    counted = true;
    times.xfer_duration_us = std::max(now_us() - times.start_time_us, times.post_duration_us);
    if (Telemetry* const exporter = core->exporter(); exporter != nullptr && status.ok() && transfer) {
      exporter->ended(plan.operation() == Operation::kWrite, times);
    }
  }
  if (!status.ok()) {
    const bool gone = status.code() == Code::kDisconnected;
    return fail(marked(gone ? NixlCode::kRemoteDisconnect : NixlCode::kBackend, status));
  }
  if (notice.goes_along()) notice.came_along();
  end_notice();
  set_finished(true);
  return false;
}

Result<bool> RequestCore::look() {
  core->advance();
  if (finished.load(std::memory_order_acquire)) {
    core->poll_at_times();
    return false;
  }
  HAWSER_TRY(core->need_home(kStatus));
  const std::lock_guard lock(mutex);
  if (released) return was_released(kStatus);
  return look_locked();
}

std::optional<bool> RequestCore::look_at_once() const {
  if (!core->is_at_rest()) return std::nullopt;
  if (finished.load(std::memory_order_acquire)) return false;
  const std::unique_lock lock(mutex, std::try_to_lock);  // Whoever releases it may hold it for long.
  if (!lock || released || waiting || !refused.ok() || !transfer || transfer->done()) return std::nullopt;
  return true;
}

Result<bool> RequestCore::post(const OptArgs* opt) {
  HAWSER_TRY(core->need_home(kPost));
  core->advance();
  Result<bool> answer = post_now(opt);
  if (!answer || !*answer || !sending()) return answer;
  answer = send_on();
  if (answer && *answer && sending()) core->feed_long();
  return answer;
}

bool RequestCore::is_over() const {
  if (!posted || !refused.ok()) return true;
  return !waiting && !is_moving() && notice.is_settled();
}

Result<bool> RequestCore::post_now(const OptArgs* opt) {
  const std::lock_guard lock(mutex);
  if (released) return was_released(kPost);
  if (!is_over()) {
    return refusal(NixlCode::kRepostActive, kPost, "the request was posted and is not over yet");
  }
  HAWSER_TRY(core->current(kPost, peer));
  if (opt != nullptr && opt->notification) HAWSER_TRY(NotificationSender::check_length(kPost, *opt->notification));
  end_notice();  // It views what is replaced next.
  if (opt != nullptr) notice.set(opt->notification);
  times = {.start_time_us = now_us(), .total_bytes = moves_nothing ? 0 : plan.bytes(), .desc_count = descs};
  counted = false;
  posted = true;
  notice.begin();
  waits_until = Clock::steady().now() + agent::inner::options_of(core->agent()).default_deadline;
  set_finished(false);
  refused = Status();
  transfer.reset();
  Result<bool> answer = submit();
  times.post_duration_us = std::max<std::uint64_t>(now_us() - times.start_time_us, 1);
  times.xfer_duration_us = std::max(times.xfer_duration_us, times.post_duration_us);
  return answer;
}

void RequestCore::end_notice() {
  notice.end(transfer && transfer->done() && transfer->status().ok());
  core->leave_long(this);
}

/// What goes to the peer with the data or after it. kBusy: not yet.
Result<std::string> RequestCore::carried() {
  const bool was_long = notice.is_long();
  Result<std::string> text = notice.carried();
  if (!was_long && notice.is_long()) core->join_long(this);
  return text;
}

/// The data is there. True: there is no room yet. False: the peer is told.
Result<bool> RequestCore::tell_now() {
  const bool was_long = notice.is_long();
  const Result<bool> waits = notice.tell();
  if (!was_long && notice.is_long()) core->join_long(this);
  return waits;
}

std::optional<std::size_t> RequestCore::sending() const {
  const std::lock_guard lock(mutex);
  return refused.ok() ? notice.sending(is_moving()) : std::nullopt;
}

/// Some clients post and wait for the peer's word alone, so what it is to be told goes out now where it can.
Result<bool> RequestCore::send_on() {
  Result<bool> answer = true;
  std::size_t before = sending().value_or(0);  // What went by now was told of.
  for (auto sent = sending(); answer && *answer && sent; sent = sending()) {
    const Instant now = Clock::steady().now();
    if (*sent != before) core->sender().room_watch().room(peer);
    before = *sent;
    if (now >= core->sender().room_watch().no_room(peer, now) + kPartPatience) break;
    (void)core->agent().wait(std::chrono::milliseconds(1));
    answer = look();
  }
  return answer;
}

Result<std::optional<XferTelemetry>> RequestCore::telemetry() {
  constexpr std::string_view kCall = "get_xfer_telemetry";
  HAWSER_TRY(core->need_home(kCall));
  if (!core->telemetry()) {
    return refusal(NixlCode::kNoTelemetry, kCall, "telemetry was not asked for")
        .with_advice("set capture_telemetry, or NIXL_TELEMETRY_ENABLE=yes, before the agent is made");
  }
  const std::lock_guard lock(mutex);
  if (released) return was_released(kCall);
  HAWSER_TRY_ASSIGN(const bool busy, look_locked());
  if (busy) return std::optional<XferTelemetry>();
  return std::optional(times);
}

Result<CostEstimate> RequestCore::estimate() {
  constexpr std::string_view kCall = "estimate_xfer_cost";
  HAWSER_TRY(core->need_home(kCall));
  const std::lock_guard lock(mutex);
  if (released) return was_released(kCall);
  if (moves_nothing) return CostEstimate();
  HAWSER_TRY_ASSIGN(const agent::inner::RouteCost cost, agent::inner::route_cost(plan));
  CostEstimate estimate;
  estimate.duration = Duration(static_cast<std::int64_t>(cost.predicted_ns));
  return estimate;
}

Status RequestCore::release() {
  if (!core->need_home("release_xfer_req").ok()) {  // Nothing of it is in this process, and its locks are the parent's.
    released.store(true, std::memory_order_release);
    set_finished(false);
    return {};
  }
  const std::lock_guard lock(mutex);
  if (released) return {};
  if (transfer && !transfer->done()) {
    // After this nothing touches the memory any more: clients reuse it at once.
    transfer->cancel();
    const Status status = transfer->wait(kReleasePatience);
    if (!transfer->done()) {
      return refusal(NixlCode::kRepostActive, "release_xfer_req", "the request is in flight still", status)
          .with_advice("leave the memory as it is, and release again");
    }
  }
  end_notice();
  released.store(true, std::memory_order_release);
  set_finished(false);
  waiting = false;
  transfer.reset();
  plan = Plan();
  return {};
}

namespace {

Operation operation_of(XferOp op) { return op == XferOp::kWrite ? Operation::kWrite : Operation::kRead; }

Status check_operation(std::string_view call, XferOp op) {
  if (op == XferOp::kRead || op == XferOp::kWrite) return {};
  return refusal(NixlCode::kInvalidParam, call, base::format("operation {} is unknown", static_cast<int>(op)));
}

/// Pairs that move something.
struct Moving {
  std::vector<std::int32_t> local, remote;
};

/// Of as many indices on either side.
Result<Moving> moving_pairs(std::string_view call, const PreparedCore& ours, std::span<const std::int32_t> local_index,
                            const PreparedCore& theirs, std::span<const std::int32_t> remote_index) {
  Moving moving;
  for (std::size_t at = 0; at < local_index.size(); ++at) {
    const auto l = static_cast<std::uint32_t>(local_index[at]), r = static_cast<std::uint32_t>(remote_index[at]);
    if (l >= ours.rows.count() || r >= theirs.rows.count() || ours.rows.at(l).size != theirs.rows.at(r).size) {
      return hawser::plan::wrong_pair(call, ours.rows, local_index, theirs.rows, remote_index, at);
    }
    if (ours.rows.at(l).size == 0) continue;
    moving.local.push_back(local_index[at]);
    moving.remote.push_back(remote_index[at]);
  }
  return moving;
}

/// `backends`: those that can all of it; not none. It has no plan yet.
Result<std::unique_ptr<RequestCore>> empty_request(std::string_view call, const std::shared_ptr<AgentCore>& core,
                                                   const Peer& peer, BackendMask backends, const OptArgs* opt) {
  if (opt != nullptr && opt->notification) HAWSER_TRY(NotificationSender::check_length(call, *opt->notification));
  auto request = std::make_unique<RequestCore>(core, peer);
  if (opt != nullptr) request->notice.set(opt->notification);
  request->backend = core->first_of(backends);
  return request;
}

Result<std::unique_ptr<RequestCore>> request_of(std::string_view call, const std::shared_ptr<AgentCore>& core,
                                                const Peer& peer, BackendMask backends, Result<Plan> plan,
                                                const OptArgs* opt) {
  if (!plan) return plan.error();
  HAWSER_TRY_ASSIGN(auto request, empty_request(call, core, peer, backends, opt));
  request->plan = std::move(*plan);
  return request;
}

}  // namespace

Result<std::unique_ptr<RequestCore>> make_request(std::string_view call, XferOp op, const PreparedCore& ours,
                                                  std::span<const std::int32_t> local_index, const PreparedCore& theirs,
                                                  std::span<const std::int32_t> remote_index, const OptArgs* opt) {
  HAWSER_TRY(check_operation(call, op));
  const std::size_t given = local_index.size();
  HAWSER_TRY_ASSIGN(const BackendMask wanted, ours.core->backends_in(call, opt));
  const BackendMask mask =
      ours.backends & theirs.backends & wanted & ours.core->movers(ours.type, theirs.type, theirs.peer->is_self());
  if (mask == 0) {
    return refusal(NixlCode::kInvalidParam, call, "no backend moves between the memories of both sides");
  }
  Moving moving;
  if ((ours.has_empty || theirs.has_empty) && local_index.size() == remote_index.size() && !local_index.empty()) {
    HAWSER_TRY_ASSIGN(moving, moving_pairs(call, ours, local_index, theirs, remote_index));
    local_index = moving.local;
    remote_index = moving.remote;
    if (local_index.empty()) {
      HAWSER_TRY_ASSIGN(auto request, empty_request(call, ours.core, *theirs.peer, mask, opt));
      request->moves_nothing = true;
      request->descs = given;
      return request;
    }
  }
  HAWSER_TRY_ASSIGN(auto request,
                    request_of(call, ours.core, *theirs.peer, mask,
                               agent::inner::plan_rows(call, ours.core->agent(), *theirs.peer, operation_of(op),
                                                       {ours.rows, ours.locals, local_index},
                                                       {theirs.rows, theirs.remotes, remote_index}),
                               opt));
  request->descs = given;
  request->is_durable = op == XferOp::kWrite && theirs.is_synced;
  return request;
}

Result<std::unique_ptr<RequestCore>> make_request(std::string_view call, XferOp op,
                                                  const std::shared_ptr<AgentCore>& core, JoinedLists&& lists,
                                                  const OptArgs* opt) {
  HAWSER_TRY(check_operation(call, op));
  const std::size_t given = lists.made.pieces.pair_count;
  HAWSER_TRY_ASSIGN(auto request, request_of(call, core, lists.peer, lists.backends,
                                             agent::inner::plan_pieces(call, core->agent(), lists.peer,
                                                                       operation_of(op), std::move(lists.made)),
                                             opt));
  request->descs = given;
  return request;
}

}  // namespace compat
HAWSER_NAMESPACE_END
