// Buffers that this process gave out: registered, looked up, and changed by atomics.

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "agent/inner_regions.h"
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

bool same_memory(const LocalMemory& a, const LocalMemory& b) {
  return a.bytes().data() == b.bytes().data() && a.size() == b.size();
}

bool is_lent_so(const Owned& owned, const LocalMemory& memory, const Lending& lending) {
  return same_memory(owned.memory, memory) && owned.rights == lending.rights &&
         core_of(owned.handle)->name == lending.name;
}

Status name_taken(const std::string& what, const std::string& name) {
  return Status(Code::kInvalid, what + ": another buffer is lent under the name '" + name + "'")
      .with_advice("release it before, or take another name");
}

bool holds(const MemoryCore& core, std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto its_begin = reinterpret_cast<std::uintptr_t>(core.bytes.data());
  return begin >= its_begin && bytes.size() <= core.bytes.size() &&
         begin - its_begin <= core.bytes.size() - bytes.size();
}

}  // namespace

LocalMemory Engine::part_of_held(std::span<std::byte> bytes, const std::shared_ptr<const void>& owner, bool writable,
                                 Device device) {
  constexpr int kStepsMax = 16;  // Beyond, it is registered for itself.
  if (bytes.empty()) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::vector<std::shared_ptr<MemoryCore>> seen;  // Let go without the lock: the last one closes its region.
  const base::MutexLock lock(mutex_);
  auto place = held_.upper_bound(begin);
  for (int step = 0; step < kStepsMax && place != held_.begin(); ++step) {
    --place;
    std::shared_ptr<MemoryCore>& core = seen.emplace_back(place->second.lock());
    if (!core) {
      place = held_.erase(place);
      continue;
    }
    if (!holds(*core, bytes) || core->writable != writable || core->device != device) continue;
    const std::uint64_t offset = begin - place->first;
    MemoryCore* const whole = core.get();
    using Kept = std::pair<std::shared_ptr<const void>, std::shared_ptr<MemoryCore>>;
    return LocalMemory({std::make_shared<Kept>(owner, core), whole}, offset, bytes.size());
  }
  return {};
}

void Engine::hold(const std::shared_ptr<MemoryCore>& core) {
  const base::MutexLock lock(mutex_);
  if (held_.size() >= held_max_) {  // Those that are gone; what is left may double until the next time.
    std::erase_if(held_, [](const auto& each) { return each.second.expired(); });
    held_max_ = std::max(kHeldLeast, 2 * held_.size());
  }
  held_.emplace(reinterpret_cast<std::uintptr_t>(core->bytes.data()), core);
}

Result<LocalMemory> Engine::local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner, bool writable,
                                         Device device) {
  if (LocalMemory part = part_of_held(bytes, owner, writable, device); part.valid()) return part;
  auto core = std::make_shared<MemoryCore>();
  core->writable = writable;
  core->device = device;
  core->engine = number_;
  core->keeper = weak_from_this();
  core->opener = opener_;
  if (!bytes.empty()) {
    // Peers reach it only as a buffer, which is a region of its own.
    HAWSER_TRY_ASSIGN(core->region,
                      agent_.add_region({.bytes = bytes, .device = device, .rights = Rights::kNone, .listed = false}));
  }
  core->bytes = bytes;
  core->owner = std::move(owner);
  if (core->owner && !bytes.empty()) hold(core);
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
  {
    const base::MutexLock lock(mutex_);
    if (const auto known = owned_.find(id); known != owned_.end()) {
      if (is_lent_so(*known->second, memory, lending)) return known->second->handle;
      return Status(Code::kInvalid, what + " is there already, with other memory, rights or name")
          .with_advice("release it before, or take another id");
    }
    if (by_name_.contains(lending.name)) return name_taken(what, lending.name);
    if (owned_.size() + closings_.size() >= options_.buffers_max) {
      return Status(Code::kBusy, what + ": buffers_max = " + std::to_string(options_.buffers_max) +
                                     " are given out, or released with somebody inside")
          .with_advice("release some");
    }
  }
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
  const base::Id128 token = core->token;
  owned->handle = RemoteBuffer(std::move(core), 0, memory.size());
  const base::MutexLock lock(mutex_);
  const bool has_name = !core_of(owned->handle)->name.empty();
  if (has_name && !owned_.contains(id) && by_name_.contains(lending.name)) return name_taken(what, lending.name);
  const auto [place, is_new] = owned_.emplace(id, owned);
  if (is_new) by_token_.emplace(token, owned);
  if (is_new && has_name) by_name_.emplace(lending.name, token);
  // Two callers may ask at once for one id; the first gets in.
  if (!is_new && !is_lent_so(*place->second, memory, lending)) {
    return Status(Code::kInvalid, what + " is there already, with other memory, rights or name")
        .with_advice("take another id");
  }
  return place->second->handle;
}

std::shared_ptr<Owned> Engine::owned_by(const base::Id128& token) const {
  const base::MutexLock lock(mutex_);
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : found->second;
}

Result<LocalMemory> Engine::local_of(const RemoteBuffer& buffer) const {
  if (!buffer.valid()) return Status(Code::kInvalid, "local_of: the buffer's handle is empty");
  const std::shared_ptr<Owned> owned = is_own(*core_of(buffer)) ? owned_by(core_of(buffer)->token) : nullptr;
  if (!owned) return not_there(buffer.id());
  return owned->memory.slice(buffer.offset(), buffer.size());
}

std::size_t Engine::buffer_count() const {
  const base::MutexLock lock(mutex_);
  return owned_.size();
}

Reply Engine::run_atomic(const Ask& ask) {
  Reply done{.number = ask.number, .status = {}, .value = 0};
  const auto refuse = [&](Code code, const std::string& text) {
    done.status = Status(code, "atomic: " + text).with_buffer(BufferState::kUntouched);
    return done;
  };
  // Whoever releases the buffer takes it out under this lock first: once that is acknowledged nobody is at the word.
  const base::MutexLock lock(mutex_);
  const auto found = by_token_.find(ask.token);
  if (found == by_token_.end()) return refuse(Code::kNotFound, "the buffer was released");
  const Owned& owned = *found->second;
  if (!allows(owned.rights, Rights::kReadWrite)) return refuse(Code::kDenied, "the buffer gives no right to it");
  if (const Device device = owned.memory.device(); device.kind != DeviceKind::kHost) {
    return refuse(Code::kUnsupported,
                  "the word is on " + to_string(device) + ", where its owner's processor does none");
  }
  const std::span<std::byte> bytes = owned.memory.bytes();
  if (ask.offset > bytes.size() || bytes.size() - ask.offset < sizeof(std::uint64_t)) {
    return refuse(Code::kInvalid, "offset " + std::to_string(ask.offset) + " leaves the buffer");
  }
  std::byte* const at = bytes.data() + ask.offset;
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0) {
    return refuse(Code::kInvalid, "the word is not aligned to 8 in its owner's memory");
  }
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
  if (ask.kind == AskKind::kFetchAdd) {
    done.value = word.fetch_add(ask.value, std::memory_order_acq_rel);
  } else {
    done.value = ask.expected;
    (void)word.compare_exchange_strong(done.value, ask.value, std::memory_order_acq_rel);
  }
  return done;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
