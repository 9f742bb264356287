#include "rdma/engine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "agent/inner.h"
#include "base/inside.h"
#include "base/try.h"
#include "rdma/messages.h"
#include "rdma/rules.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::uint64_t kSmall = 1024 * 1024;  ///< What a submit over shared memory mostly does on the spot.
constexpr std::size_t kQueueCapacity = 1u << 16;
constexpr std::size_t kMessagesPerRound = 64;
constexpr Duration kWatchNap = std::chrono::microseconds(50);
constexpr Duration kTick = std::chrono::milliseconds(2);  ///< While something waits for a peer or for room.
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
  HAWSER_TRY_ASSIGN(LocalMemory for_probes, made->local_memory(scratch, {}, true, {}));
  made->routes_.use_scratch(std::move(for_probes));
  // Who drives it says so: its peers take its silence for its death then, and do not wait out their operations' time.
  if (options.thread && !agent::inner::says_driven(agent)) {
    agent::inner::say_driven(agent, true);
    made->said_driven_ = true;
  }
  if (options.thread) made->thread_.start();
  return made;
}

Engine::Engine(Agent& agent, const BackendOptions& options, CompletionQueue queue, base::EventFd wake)
    : agent_(agent),
      options_(options),
      self_{.number = next_engine.fetch_add(1, std::memory_order_relaxed), .incarnation = agent.incarnation()},
      opener_(::getpid()),
      queue_(std::move(queue)),
      wake_(std::move(wake)),
      lent_({.buffers = options.buffers_max, .releases = options.requests_max}),
      parting_(std::make_shared<PartingRegions>([this] { wake_.signal(); })),
      ways_(agent_, self_),
      routes_(agent_, self_, lent_),
      route_facts_({.agent = agent_, .self = self_, .routes = routes_, .ways = ways_}),
      posted_({.agent = agent_, .queue = queue_, .batches = batches_, .ways = ways_, .wake = wake_}),
      requests_(options.requests_max,
                {.send = [this](const Peer& to, std::string_view bytes) { return send(to, bytes); },
                 .ways = ways_,
                 .wake = wake_}),
      replies_([this](const Peer& to, std::string_view bytes) { return send(to, bytes); }),
      lender_({.agent = agent_, .self = self_, .lent = lent_, .replies = replies_, .wake = wake_}),
      renewal_({.agent = agent_,
                .lender = lender_,
                .ask = [this](const RemoteBuffer& buffer, Peer owner,
                              Duration left) { return ask_for_handle(buffer, std::move(owner), left); }}),
      thread_({.agent = agent_,
               .queue_fd = queue_.event_fd(),
               .wake = wake_,
               .serve = [this] { return serve(); },
               .nap = [this] { return nap(); }}) {}

Engine::~Engine() { stop(); }

Duration Engine::nap() const {
  if (lent_.is_awaited() || posted_.has_watched()) return kWatchNap;
  const bool waits = lent_.has_closing() || !parting_->empty() || posted_.has_waiting() || !requests_.empty();
  return waits || !replies_.empty() ? kTick : kIdleNap;
}

bool Engine::serve() {
  const base::MutexLock round(serving_);
  bool busy = posted_.drain_queue();
  busy = take_messages() || busy;
  busy = posted_.post_waiting() || busy;
  busy = requests_.turn(Clock::steady().now()) || busy;
  busy = replies_.send_waiting(Clock::steady().now()) || busy;
  busy = lender_.look() || busy;
  busy = parting_->look() || busy;
  return posted_.look_at_watched() || busy;
}

bool Engine::take_messages() {
  std::size_t count = 0;
  for (; count < kMessagesPerRound; ++count) {
    const std::optional<Message> message = agent_.take_message(options_.channel);
    if (!message) break;
    const Parsed parsed = parse(message->bytes);
    // Bytes that are neither are dropped.
    if (parsed.reply) requests_.on_reply(message->peer, *parsed.reply);
    if (parsed.ask) lender_.answer(message->peer, *parsed.ask);
  }
  return count > 0;
}

Status Engine::send(const Peer& to, std::string_view bytes) const {
  return to.send(options_.channel, std::as_bytes(std::span(bytes))).error();
}

Result<LocalMemory> Engine::local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner, bool writable,
                                         Device device) {
  if (LocalMemory part = held_.part_of(bytes, owner, writable, device); part.valid()) return part;
  auto core = std::make_shared<MemoryCore>();
  core->writable = writable;
  core->device = device;
  core->engine = self_.number;
  core->keeper = parting_;
  core->opener = opener_;
  if (!bytes.empty()) {
    // Peers reach it only as a buffer, which is a region of its own.
    HAWSER_TRY_ASSIGN(core->region,
                      agent_.add_region({.bytes = bytes, .device = device, .rights = Rights::kNone, .listed = false}));
  }
  core->bytes = bytes;
  core->owner = std::move(owner);
  if (core->owner && !bytes.empty()) held_.add(core);
  return LocalMemory(std::move(core), 0, bytes.size());
}

Result<std::shared_ptr<BatchCore>> Engine::submit(std::span<const Op> ops, Duration timeout) {
  if (ops.size() > PostedOps::kOpsMax) {
    return untouched(Code::kInvalid, "submit: " + std::to_string(ops.size()) + " operations; at most 2^24 in a batch");
  }
  std::shared_ptr<BatchCore> batch = batches_.make(weak_from_this(), ops.size(), timeout);
  for (std::size_t i = 0; i < ops.size(); ++i) start(batch, i, ops[i], timeout <= Duration::zero());
  return batch;
}

void Engine::start(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op, bool is_late) {
  const auto fail = [&](Status status) { batch->settle(index, {.status = std::move(status)}); };
  const Result<std::uint64_t> bytes = bytes_of(shape_of(op));
  if (!bytes) return fail(bytes.error());
  if (is_late) return fail(untouched(Code::kTimedOut, "submit: the timeout is zero; nothing was posted"));
  if (op.type == OpType::kFetchAdd || op.type == OpType::kCompareSwap) return start_atomic(batch, index, op);
  if (core_of(op.local)->engine != self_.number) {
    return fail(untouched(Code::kInvalid, "submit: the local memory is registered with another backend"));
  }
  if (*bytes == 0) return start_empty(*batch, index, op);
  const Result<Found> found = routes_.find(op.remote);
  if (!found) return fail(ways_.with_ways(found.error(), op.remote));
  Result<Plan> made = routes_.plan(*found, op.type, op.local, op.remote, *bytes);
  if (!made) return fail(ways_.with_ways(made.error(), op.remote));
  // Over shared memory a small one is nearly always over within submit: no need to be told.
  const bool is_near = *bytes <= kSmall && found->is_near && op.local.device().kind == DeviceKind::kHost;
  batch->with(index, [&](Item& item) {
    item.op = op;
    if (op.notify) item.notify.emplace(*op.notify);
    item.bytes = *bytes;
    item.plan = std::move(*made);
  });
  posted_.post(batch, index, is_near);
}

void Engine::start_empty(BatchCore& batch, std::size_t index, const Op& op) {
  Status status;
  if (op.notify) {
    const Result<Found> found = routes_.find(op.remote);
    status = found ? found->peer.notify(*op.notify) : ways_.with_ways(found.error(), op.remote);
  }
  batch.settle(index, {.status = std::move(status)});
}

void Engine::start_atomic(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op) {
  const BufferCore& core = *core_of(op.remote);
  batch->with(index, [&](Item& item) {
    item.is_atomic = true;
    item.op.local = op.local;
  });
  const Ask ask{.kind = op.type == OpType::kFetchAdd ? AskKind::kFetchAdd : AskKind::kCompareSwap,
                .token = core.token,
                .offset = op.remote.offset(),
                .value = op.value,
                .expected = op.expected};
  if (self_.owns(core)) {
    const Reply done = lent_.run_atomic(ask);
    return batch->settle(index, {.status = done.status, .bytes = sizeof(std::uint64_t), .previous = done.value});
  }
  const Result<Found> found = routes_.find(op.remote);
  if (!found) return batch->settle(index, {.status = ways_.with_ways(found.error(), op.remote)});
  requests_.ask({.batch = batch, .index = index, .buffer = op.remote, .owner = found->peer, .ask = ask});
}

Result<std::shared_ptr<BatchCore>> Engine::release(const RemoteBuffer& buffer, Duration timeout) {
  if (!buffer.valid()) return Status(Code::kInvalid, "release: the buffer's handle is empty");
  const std::shared_ptr<BatchCore> batch = batches_.make(weak_from_this(), 1, timeout);
  const BufferCore& core = *core_of(buffer);
  if (self_.owns(core)) {
    lender_.release(core.token, {.batch = batch, .peer = {}, .number = 0, .deadline = batch->deadline});
    return batch;
  }
  const Result<Found> found = routes_.find(buffer);
  if (!found) {
    batch->settle(0, {.status = ways_.with_ways(found.error(), buffer)});
    return batch;
  }
  requests_.ask({.batch = batch,
                 .index = 0,
                 .buffer = buffer,
                 .owner = found->peer,
                 .ask = {.kind = AskKind::kRelease, .token = core.token}});
  return batch;
}

Result<std::string> Engine::ask_for_handle(const RemoteBuffer& buffer, Peer owner, Duration left) {
  const std::shared_ptr<BatchCore> batch = batches_.make(weak_from_this(), 1, left);
  const auto handle = std::make_shared<std::string>();
  requests_.ask({.batch = batch,
                 .index = 0,
                 .buffer = buffer,
                 .owner = std::move(owner),
                 .ask = {.kind = AskKind::kHandle, .token = {}, .name = std::string(buffer.name())},
                 .handle = handle});
  HAWSER_TRY(batch->wait(Duration::max()));
  return *handle;
}

void Engine::cancelled(BatchCore& batch) {
  requests_.cancelled(batch);
  wake_.signal();
}

void Engine::stop() {
  if (opener_ != ::getpid()) return thread_.abandon();
  thread_.stop();
  LiveBatches::All batches = batches_.take_all();
  posted_.clear();
  requests_.clear();
  replies_.clear();
  std::vector<std::shared_ptr<Owned>> buffers = lent_.take_all();
  // All are told to end before any is waited for, so that many that are held take no longer than one.
  const Instant until = Clock::steady().now() + kPartingPatience;
  tell_to_end(batches);
  std::erase_if(buffers, [](const auto& owned) { return owned->region.close(Duration::zero()).ok(); });
  await_ends(batches, until);
  for (const auto& owned : buffers) {
    (void)owned->region.close(std::max(Duration::zero(), until - Clock::steady().now()));
  }
  batches.clear();
  buffers.clear();
  parting_->end(until);
  if (std::exchange(said_driven_, false)) agent::inner::say_driven(agent_, false);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
