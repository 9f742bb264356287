#include "rdma/engine.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <hawser/driver.h>
#include <hawser/grant.h>

#include "agent/inner.h"
#include "agent/inner_peers.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "base/spin.h"
#include "base/spin_window.h"
#include "base/try.h"
#include "rdma/rules.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::uint64_t kSmall = 1024 * 1024;  ///< What a submit over shared memory mostly does on the spot.
constexpr unsigned kIndexBits = 24;
constexpr std::size_t kOpsMax = std::size_t{1} << kIndexBits;
constexpr std::size_t kQueueCapacity = 1u << 16;
constexpr std::size_t kCompletionsPerRound = 256;
constexpr std::size_t kWatchedPerRound = 256;
constexpr Duration kWatchNap = std::chrono::microseconds(50);
constexpr Duration kTick = std::chrono::milliseconds(2);  ///< While something waits for a peer or for room.
constexpr Duration kSpin = DriverOptions().spin, kSpinMax = std::chrono::microseconds(300);
constexpr Duration kLedNap = std::chrono::milliseconds(1);
constexpr Duration kIdleNap = std::chrono::seconds(1);

std::atomic<std::uint64_t> next_engine{1};

Status untouched(Code code, std::string text) {
  return Status(code, std::move(text)).with_buffer(BufferState::kUntouched);
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::open(Agent& agent, const BackendOptions& options) {
  HAWSER_TRY_ASSIGN(CompletionQueue queue, agent.make_queue(kQueueCapacity));
  HAWSER_TRY_ASSIGN(base::EventFd wake, base::EventFd::open());
  constexpr std::uint32_t kCredit = 1024;
  HAWSER_TRY(agent.open_channel(options.channel, kCredit));
  std::shared_ptr<Engine> made(new Engine(agent, options, std::move(queue), std::move(wake)));
  static std::byte scratch[sizeof(std::uint64_t)];
  HAWSER_TRY_ASSIGN(made->scratch_, made->local_memory(scratch, {}, true, {}));
  // Who drives it says so: its peers take its silence for its death then, and do not wait out their operations' time.
  if (options.thread && !agent::inner::says_driven(agent)) {
    agent::inner::say_driven(agent, true);
    made->said_driven_ = true;
  }
  if (options.thread) made->thread_ = std::thread([its = made.get()] { its->run(); });
  return made;
}

Engine::Engine(Agent& agent, const BackendOptions& options, CompletionQueue queue, base::EventFd wake)
    : agent_(agent),
      options_(options),
      number_(next_engine.fetch_add(1, std::memory_order_relaxed)),
      incarnation_(agent.incarnation()),
      opener_(::getpid()),
      queue_(std::move(queue)),
      wake_(std::move(wake)),
      lent_({.buffers = options.buffers_max, .releases = options.requests_max}),
      parting_(std::make_shared<PartingRegions>([this] { wake_.signal(); })) {}

Engine::~Engine() { stop(); }

void Engine::run() {
  const bool drives = !agent::inner::is_driven(agent_);
  std::array<pollfd, 3> watched = {pollfd{.fd = queue_.event_fd(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wake_.fd(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = drives ? agent_.event_fd() : -1, .events = POLLIN, .revents = 0}};
  Instant busy = Clock::steady().now();
  base::SpinWindow spin(kSpin, kSpinMax);
  while (!stop_.load(std::memory_order_acquire)) {
    // Who waits for an operation moves the agent on by itself, with less delay than by way of this thread.
    const bool is_led = drives && waiters_.load(std::memory_order_relaxed) > 0;
    const bool moved = drives && !is_led && agent_.poll() > 0;
    const bool served = serve();
    if (served || moved) {
      busy = Clock::steady().now();
      continue;
    }
    // As a Driver: what follows at once finds this thread awake.
    const Instant now = Clock::steady().now();
    if (drives && !is_led && now - busy < spin.window()) {
      base::cpu_relax();
      continue;
    }
    const Duration pause = is_led ? std::min(kLedNap, nap()) : nap();
    const timespec patience = {.tv_sec = pause.count() / 1'000'000'000, .tv_nsec = pause.count() % 1'000'000'000};
    (void)::ppoll(watched.data(), is_led ? 2 : 3, &patience, nullptr);
    (void)wake_.drain();
    spin.slept(Clock::steady().now() - now);
  }
}

Duration Engine::nap() const {
  if (lent_.is_awaited()) return kWatchNap;
  if (lent_.has_closing() || !parting_->empty()) return kTick;
  const base::MutexLock lock(mutex_);
  if (!watched_.empty()) return kWatchNap;
  return waiting_.empty() && requests_.empty() && replies_.empty() ? kIdleNap : kTick;
}

bool Engine::serve() {
  const base::MutexLock round(serving_);
  bool busy = drain_queue();
  busy = take_messages() || busy;
  busy = post_waiting() || busy;
  busy = send_requests() || busy;
  busy = send_replies() || busy;
  busy = look_at_closings() || busy;
  busy = parting_->look() || busy;
  return look_at_watched() || busy;
}

bool Engine::drain_queue() {
  std::array<Completion, kCompletionsPerRound> entries;
  const std::size_t count = queue_.poll(entries);
  for (const Completion& entry : std::span(entries).first(count)) {
    if (entry.kind != CompletionKind::kTransfer) continue;  // Messages and room are looked for each round.
    std::shared_ptr<BatchCore> batch;
    {
      const base::MutexLock lock(mutex_);
      const auto found = batches_.find(entry.cookie >> kIndexBits);
      if (found != batches_.end()) batch = found->second;
    }
    const std::size_t index = entry.cookie & (kOpsMax - 1);
    if (!batch || batch->look(index)) continue;
    const base::MutexLock lock(mutex_);  // Reported a moment before it is final: looked at again.
    watched_.emplace_back(std::move(batch), index);
  }
  return count > 0;
}

std::shared_ptr<BatchCore> Engine::make_batch(std::size_t size, Duration timeout) {
  const base::MutexLock lock(mutex_);
  auto batch = std::make_shared<BatchCore>(weak_from_this(), ++next_serial_, size, Clock::steady().now() + timeout);
  if (size > 0) batches_.emplace(batch->serial, batch);
  return batch;
}

Result<std::shared_ptr<BatchCore>> Engine::submit(std::span<const Op> ops, Duration timeout) {
  if (ops.size() > kOpsMax) {
    return untouched(Code::kInvalid, "submit: " + std::to_string(ops.size()) + " operations; at most 2^24 in a batch");
  }
  std::shared_ptr<BatchCore> batch = make_batch(ops.size(), timeout);
  for (std::size_t i = 0; i < ops.size(); ++i) start(batch, i, ops[i], timeout <= Duration::zero());
  return batch;
}

void Engine::start(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op, bool is_late) {
  const auto fail = [&](Status status) { batch->settle(index, {.status = std::move(status)}); };
  const Result<std::uint64_t> bytes = bytes_of(shape_of(op));
  if (!bytes) return fail(bytes.error());
  if (is_late) return fail(untouched(Code::kTimedOut, "submit: the timeout is zero; nothing was posted"));
  if (op.type == OpType::kFetchAdd || op.type == OpType::kCompareSwap) return start_atomic(batch, index, op);
  if (core_of(op.local)->engine != number_) {
    return fail(untouched(Code::kInvalid, "submit: the local memory is registered with another backend"));
  }
  if (*bytes == 0) return start_empty(*batch, index, op);
  const Result<Found> found = find(op.remote);
  if (!found) return fail(with_ways(found.error(), op.remote));
  Result<Plan> made = plan(*found, op.type, op.local, op.remote, *bytes);
  if (!made) return fail(with_ways(made.error(), op.remote));
  // Over shared memory a small one is nearly always over within submit: no need to be told.
  bool is_near = *bytes <= kSmall && found->is_near && op.local.device().kind == DeviceKind::kHost;
  batch->with(index, [&](Item& item) {
    item.op = op;
    if (op.notify) item.notify.emplace(*op.notify);
    item.bytes = *bytes;
    item.plan = std::move(*made);
  });
  post(batch, index, is_near);
}

void Engine::start_empty(BatchCore& batch, std::size_t index, const Op& op) {
  Status status;
  if (op.notify) {
    const Result<Found> found = find(op.remote);
    status = found ? found->peer.notify(*op.notify) : with_ways(found.error(), op.remote);
  }
  batch.settle(index, {.status = std::move(status)});
}

Result<Found> Engine::find(const RemoteBuffer& buffer) {
  BufferCore& core = *core_of(buffer);
  if (is_own(core)) {
    const std::shared_ptr<Owned> owned = lent_.by_token(core.token);
    if (owned) return Found{.engine = number_, .peer = agent_.self(), .whole = owned->whole, .is_near = true};
    return untouched(Code::kNotFound, "buffer " + std::to_string(core.id) + " of this process was released")
        .with_advice("ask its owner for a new one");
  }
  {
    const base::MutexLock lock(core.mutex);
    if (core.found.engine == number_ && core.found.peer.state() != PeerState::kDown) return core.found;
  }
  HAWSER_TRY_ASSIGN(Found found, meet(core));
  // No peer's GPU is reached through shared memory, whatever was known when another buffer of it was met.
  found.is_near = region_info(found.whole).device.kind == DeviceKind::kHost && is_near(found, buffer);
  const base::MutexLock lock(core.mutex);
  core.found = found;
  return found;
}

// The handle's card is loaded for a peer that is new or was down.
Result<Found> Engine::meet(const BufferCore& core) {
  HAWSER_TRY_ASSIGN(const wire::Card card, wire::decode_card(base::as_bytes(core.card)));
  HAWSER_TRY_ASSIGN(Peer peer, agent::inner::meet(agent_, card));
  if (!agent::inner::has_card(peer) || peer.state() == PeerState::kDown) {
    HAWSER_TRY_ASSIGN(peer, agent_.add_peer(std::string_view(core.card)));
  }
  HAWSER_TRY_ASSIGN(const GrantedRegion granted, peer.import_grant(std::string_view(core.grant)));
  return Found{.engine = number_, .peer = std::move(peer), .whole = granted.whole()};
}

Result<Plan> Engine::plan(const Found& found, OpType type, const LocalMemory& local, const RemoteBuffer& remote,
                          std::uint64_t bytes) {
  const LocalRange ours = core_of(local)->region.range(local.offset(), bytes);
  const RemoteRange theirs{.region = found.whole.region, .offset = remote.offset(), .size = bytes};
  if (type == OpType::kWriteFromLocal) {
    return agent_.plan_write(found.peer, std::span(&ours, 1), std::span(&theirs, 1));
  }
  return agent_.plan_read(found.peer, std::span(&theirs, 1), std::span(&ours, 1));
}

void Engine::post(const std::shared_ptr<BatchCore>& batch, std::size_t index, bool is_near) {
  Status failure;
  RemoteBuffer remote;
  bool is_over = false;
  batch->with(index, [&](Item& item) {
    remote = item.op.remote;
    const Duration left = batch->deadline - Clock::steady().now();
    if (item.cancelled) {
      failure = untouched(Code::kCancelled, "submit: cancelled before it was posted");
    } else if (left <= Duration::zero()) {
      failure = untouched(Code::kTimedOut, "submit: there was no room until the timeout; nothing was posted")
                    .because(item.busy);
    } else {
      SubmitOptions options{.deadline = left, .queue = is_near ? nullptr : &queue_};
      options.cookie = batch->serial << kIndexBits | index;
      if (item.notify) options.notify = *item.notify;
      Result<Transfer> sent = item.plan.submit(options);
      item.posted = sent.has_value();
      if (sent) item.transfer = std::move(*sent);
      failure = sent.error();
      if (failure.code() == Code::kBusy) item.busy = failure;
      is_over = item.posted && item.transfer.done();
    }
  });
  // A turn right here is what a small one lacks, where its turn is ours to take.
  if (is_near && failure.ok() && !is_over && !agent::inner::is_driven(agent_)) {
    (void)agent_.poll();
    is_over = batch->look(index);
  }
  if (is_over) {
    (void)batch->look(index);
  } else if (failure.code() == Code::kBusy) {
    const base::MutexLock lock(mutex_);
    waiting_.emplace_back(batch, index);
  } else if (!failure.ok()) {
    batch->settle(index, {.status = with_ways(failure, remote)});
  } else if (is_near) {
    const base::MutexLock lock(mutex_);
    watched_.emplace_back(batch, index);
  } else {
    return;
  }
  if (!is_over) wake_.signal();
}

bool Engine::post_waiting() {
  std::size_t count = 0;
  {
    const base::MutexLock lock(mutex_);
    count = waiting_.size();
  }
  bool moved = false;
  for (std::size_t i = 0; i < count; ++i) {
    std::pair<std::shared_ptr<BatchCore>, std::size_t> next;
    {
      const base::MutexLock lock(mutex_);
      if (waiting_.empty()) return moved;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const std::size_t before = count - i - 1;
    post(next.first, next.second, false);
    const base::MutexLock lock(mutex_);
    if (waiting_.size() > before) return moved;  // Still no room.
    moved = true;
  }
  return moved;
}

bool Engine::look_at_watched() {
  std::vector<std::pair<std::shared_ptr<BatchCore>, std::size_t>> some;
  {
    const base::MutexLock lock(mutex_);
    const auto count = static_cast<std::ptrdiff_t>(std::min(watched_.size(), kWatchedPerRound));
    some.assign(std::make_move_iterator(watched_.begin()), std::make_move_iterator(watched_.begin() + count));
    watched_.erase(watched_.begin(), watched_.begin() + count);
  }
  const std::size_t before = some.size();
  std::erase_if(some, [](const auto& each) { return each.first->look(each.second); });
  const base::MutexLock lock(mutex_);
  const bool moved = some.size() != before;
  for (auto& each : some) watched_.push_back(std::move(each));
  return moved;
}

void Engine::ended(std::uint64_t serial) {
  std::shared_ptr<BatchCore> kept;  // Dropped without the lock.
  const base::MutexLock lock(mutex_);
  const auto found = batches_.find(serial);
  if (found == batches_.end()) return;
  kept = std::move(found->second);
  batches_.erase(found);
}

void Engine::cancelled(BatchCore& batch) {
  std::vector<std::size_t> unsent;
  {
    const base::MutexLock lock(mutex_);
    for (const auto& [number, request] : requests_) {
      if (request.batch.get() == &batch && !request.is_release) unsent.push_back(request.index);
    }
    std::erase_if(requests_,
                  [&](const auto& each) { return each.second.batch.get() == &batch && !each.second.is_release; });
  }
  // An atomic that was sent may be done or not.
  for (const std::size_t index : unsent) batch.settle(index, {.status = Status(Code::kCancelled, "atomic: cancelled")});
  wake_.signal();
}

}  // namespace rdma
HAWSER_NAMESPACE_END
