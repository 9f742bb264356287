// What an owner does: it lends memory, releases it for whoever asks, and ends.

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent/inner.h"
#include "agent/inner_regions.h"
#include "base/abandon.h"
#include "base/inside.h"
#include "base/try.h"
#include "rdma/engine.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

Status not_there(std::uint64_t id) {
  return Status(Code::kNotFound, "buffer " + std::to_string(id) + " is not of this process, or was released")
      .with_buffer(BufferState::kUntouched)
      .with_advice("only its owner has its memory; read or write it instead");
}

Duration left_until(Instant until) { return std::max(Duration::zero(), until - Clock::steady().now()); }

}  // namespace

Result<LocalMemory> Engine::local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner, bool writable,
                                         Device device) {
  if (LocalMemory part = held_.part_of(bytes, owner, writable, device); part.valid()) return part;
  auto core = std::make_shared<MemoryCore>();
  core->writable = writable;
  core->device = device;
  core->engine = number_;
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

Result<RemoteBuffer> Engine::request_buffer(std::uint64_t id, const LocalMemory& memory, const Lending& lending) {
  const std::string what = "request_buffer: buffer " + std::to_string(id);
  const Rights rights = lending.rights;
  if (!memory.valid() || memory.size() == 0) {
    return Status(Code::kInvalid, what + " has no memory").with_advice("give at least one byte");
  }
  if (!memory.writable() && allows(rights, Rights::kWrite)) {
    return Status(Code::kDenied, what + " is read-only memory").with_advice("ask for Rights::kRead");
  }
  if (rights == Rights::kNone) {
    return Status(Code::kInvalid, what + " gives no right").with_advice("lend it to be read, written, or both");
  }
  if (lending.name.size() > kBufferNameMax) {
    return Status(Code::kInvalid, what + " has a name of " + std::to_string(lending.name.size()) + " bytes")
        .with_advice("at most 255 are allowed");
  }
  HAWSER_TRY_ASSIGN(std::optional<RemoteBuffer> known, lent_.find(id, memory, lending));
  if (known) return *std::move(known);
  auto core = std::make_shared<BufferCore>();
  core->id = id;
  core->token = base::random_id128();
  core->whole = memory.size();
  core->name = lending.name;
  core->owner = agent_.name();
  core->incarnation = incarnation_;
  auto owned = std::make_shared<Owned>();
  owned->memory = memory;
  owned->rights = rights;
  // Its name is for errors and logs. The token is not in it, for who knows that may release the buffer.
  HAWSER_TRY_ASSIGN(owned->region, agent_.add_region({.name = "rdma buffer " + std::to_string(id),
                                                      .bytes = memory.bytes(),
                                                      .device = memory.device(),
                                                      .rights = rights,
                                                      .listed = false}));
  HAWSER_TRY_ASSIGN(owned->whole, agent_.self().region(owned->region.index()));
  HAWSER_TRY_ASSIGN(core->grant, agent::inner::whole_grant(owned->region));
  HAWSER_TRY_ASSIGN(core->card, agent_.partial_card({}));
  owned->handle = RemoteBuffer(std::move(core), 0, memory.size());
  return lent_.add(owned);
}

Result<LocalMemory> Engine::local_of(const RemoteBuffer& buffer) const {
  if (!buffer.valid()) return Status(Code::kInvalid, "local_of: the buffer's handle is empty");
  const std::shared_ptr<Owned> owned = is_own(*core_of(buffer)) ? lent_.by_token(core_of(buffer)->token) : nullptr;
  if (!owned) return not_there(buffer.id());
  return owned->memory.slice(buffer.offset(), buffer.size());
}

Result<std::shared_ptr<BatchCore>> Engine::release(const RemoteBuffer& buffer, Duration timeout) {
  if (!buffer.valid()) return Status(Code::kInvalid, "release: the buffer's handle is empty");
  const std::shared_ptr<BatchCore> batch = make_batch(1, timeout);
  if (is_own(*core_of(buffer))) {
    close(core_of(buffer)->token, {.batch = batch, .peer = {}, .number = 0, .deadline = batch->deadline});
    return batch;
  }
  const Result<Found> found = find(buffer);
  if (!found) {
    batch->settle(0, {.status = with_ways(found.error(), buffer)});
    return batch;
  }
  request(batch, 0, buffer, found->peer, {.kind = AskKind::kRelease, .token = core_of(buffer)->token});
  return batch;
}

void Engine::close(const base::Id128& token, Ack ack) {
  std::shared_ptr<Owned> owned;
  const Status refusal = lent_.release(token, ack, &owned);
  if (!refusal.ok()) return acknowledge(ack, refusal);
  if (!owned || !look_at_closing(owned)) wake_.signal();
}

// Its region refuses new uses from the first look on.
bool Engine::look_at_closing(const std::shared_ptr<Owned>& owned) {
  const Status status = owned->region.close(Duration::zero());
  const auto due = lent_.take_due(*owned, status.ok(), Clock::steady().now());
  if (!due) return true;
  for (const Ack& ack : *due) acknowledge(ack, status);
  return status.ok() || !due->empty();
}

bool Engine::look_at_closings() {
  bool moved = false;
  for (const std::shared_ptr<Owned>& each : lent_.closing()) moved = look_at_closing(each) || moved;
  return moved;
}

void Engine::acknowledge(const Ack& ack, const Status& status) {
  if (ack.batch) return ack.batch->settle(0, {.status = status});
  reply(ack.peer, {.number = ack.number, .status = status, .value = 0});
}

void Engine::stop() {
  if (opener_ != ::getpid()) {
    base::abandon(thread_);  // It exists in the parent only.
    return;
  }
  stop_.store(true, std::memory_order_release);
  wake_.signal();
  if (thread_.joinable()) thread_.join();
  decltype(batches_) batches;
  decltype(waiting_) waiting;
  decltype(watched_) watched;
  decltype(requests_) requests;
  {
    const base::MutexLock lock(mutex_);
    batches.swap(batches_);
    waiting.swap(waiting_);
    watched.swap(watched_);
    requests.swap(requests_);
    replies_.clear();
  }
  std::vector<std::shared_ptr<Owned>> buffers = lent_.take_all();
  const Instant until = Clock::steady().now() + kPartingPatience;
  end_all(batches, buffers, until);
  for (auto* each : {&waiting, &watched}) each->clear();
  requests.clear();
  batches.clear();
  buffers.clear();
  parting_->end(until);
  if (std::exchange(said_driven_, false)) agent::inner::say_driven(agent_, false);
}

// All are told to end before any is waited for, so that many that are held take no longer than one.
void Engine::end_all(const Batches& batches, std::vector<std::shared_ptr<Owned>>& buffers, Instant until) {
  for (const auto& [serial, batch] : batches) {
    batch->cancel();
    for (std::size_t i = 0; i < batch->size(); ++i) {
      bool posted = false;
      batch->with(i, [&](const Item& item) { posted = item.posted; });
      if (!posted) batch->settle(i, {.status = Status(Code::kCancelled, "the rdma backend was closed")});
    }
  }
  std::erase_if(buffers, [](const auto& owned) { return owned->region.close(Duration::zero()).ok(); });
  for (const auto& [serial, batch] : batches) {
    (void)batch->wait(left_until(until));
    if (!batch->done()) (void)new std::shared_ptr<BatchCore>(batch);  // What it uses must never go.
  }
  for (const auto& owned : buffers) (void)owned->region.close(left_until(until));
}

}  // namespace rdma
HAWSER_NAMESPACE_END
