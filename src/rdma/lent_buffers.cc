#include "rdma/lent_buffers.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "base/inside.h"
#include "rdma/held_memory.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

std::string what(std::uint64_t id) { return "request_buffer: buffer " + std::to_string(id); }

const std::string& name_of(const Owned& owned) { return core_of(owned.handle)->name; }

bool is_lent_so(const Owned& owned, const LocalMemory& memory, Rights rights, const std::string& name) {
  const bool is_same = owned.memory.bytes().data() == memory.bytes().data() && owned.memory.size() == memory.size();
  return is_same && owned.rights == rights && name_of(owned) == name;
}

Status lent_otherwise(std::uint64_t id) {
  return Status(Code::kInvalid, what(id) + " is there already, with other memory, rights or name")
      .with_advice("release it before, or take another id");
}

Status name_taken(std::uint64_t id, const std::string& name) {
  return Status(Code::kInvalid, what(id) + ": another buffer is lent under the name '" + name + "'")
      .with_advice("release it before, or take another name");
}

}  // namespace

Owned::~Owned() {
  if (core_of(region) == nullptr || core_of(memory)->opener != ::getpid()) return;
  part(region, core_of(memory)->keeper, core_of(memory));
}

Result<std::optional<RemoteBuffer>> LentBuffers::find(std::uint64_t id, const LocalMemory& memory,
                                                      const Lending& lending) const {
  const base::MutexLock lock(mutex_);
  if (const auto known = by_id_.find(id); known != by_id_.end()) {
    if (!is_lent_so(*known->second, memory, lending.rights, lending.name)) return lent_otherwise(id);
    return std::optional(known->second->handle);
  }
  if (by_name_.contains(lending.name)) return name_taken(id, lending.name);
  if (by_id_.size() + closings_.size() >= limits_.buffers) {
    return Status(Code::kBusy, what(id) + ": buffers_max = " + std::to_string(limits_.buffers) +
                                   " are given out, or released with somebody inside")
        .with_advice("release some");
  }
  return std::optional<RemoteBuffer>();
}

Result<RemoteBuffer> LentBuffers::add(const std::shared_ptr<Owned>& owned) {
  const std::uint64_t id = owned->handle.id();
  const std::string& name = name_of(*owned);
  const base::MutexLock lock(mutex_);
  if (const auto known = by_id_.find(id); known != by_id_.end()) {
    if (!is_lent_so(*known->second, owned->memory, owned->rights, name)) return lent_otherwise(id);
    return known->second->handle;
  }
  if (!name.empty() && !by_name_.emplace(name, owned).second) return name_taken(id, name);
  by_id_.emplace(id, owned);
  by_token_.emplace(core_of(owned->handle)->token, owned);
  return owned->handle;
}

std::size_t LentBuffers::size() const {
  const base::MutexLock lock(mutex_);
  return by_id_.size();
}

std::shared_ptr<Owned> LentBuffers::by_token(const base::Id128& token) const {
  const base::MutexLock lock(mutex_);
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : found->second;
}

std::optional<RemoteBuffer> LentBuffers::by_name(const std::string& name) const {
  const base::MutexLock lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second->handle;
}

Reply LentBuffers::run_atomic(const Ask& ask) const {
  Reply done{.number = ask.number, .status = {}, .value = 0};
  const auto refuse = [&](Code code, const std::string& text) {
    done.status = Status(code, "atomic: " + text).with_buffer(BufferState::kUntouched);
    return done;
  };
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

Status LentBuffers::release(const base::Id128& token, Ack& ack, std::shared_ptr<Owned>* first) {
  const base::MutexLock lock(mutex_);
  if (const auto found = by_token_.find(token); found != by_token_.end()) {
    *first = std::move(found->second);
    by_token_.erase(found);
    by_id_.erase((*first)->handle.id());
    if (const std::string& name = name_of(**first); !name.empty()) by_name_.erase(name);
    closings_[token].owned = *first;
  }
  const auto found = closings_.find(token);
  if (found == closings_.end()) {
    return Status(Code::kNotFound, "release: the owner has no such buffer; it was released before");
  }
  if (found->second.acks.size() >= limits_.releases) {
    return Status(Code::kBusy,
                  "release: requests_max = " + std::to_string(limits_.releases) + " wait for this buffer's release");
  }
  found->second.acks.push_back(std::move(ack));
  return {};
}

std::vector<std::shared_ptr<Owned>> LentBuffers::closing() const {
  std::vector<std::shared_ptr<Owned>> all;
  const base::MutexLock lock(mutex_);
  all.reserve(closings_.size());
  for (const auto& [token, closing] : closings_) all.push_back(closing.owned);
  return all;
}

bool LentBuffers::has_closing() const {
  const base::MutexLock lock(mutex_);
  return !closings_.empty();
}

bool LentBuffers::is_awaited() const {
  const base::MutexLock lock(mutex_);
  return std::ranges::any_of(closings_, [](const auto& each) { return !each.second.acks.empty(); });
}

std::optional<std::vector<Ack>> LentBuffers::take_due(const Owned& owned, bool has_closed, Instant now) {
  const base::MutexLock lock(mutex_);
  const auto found = closings_.find(core_of(owned.handle)->token);
  if (found == closings_.end()) return std::nullopt;
  std::vector<Ack>& acks = found->second.acks;
  const auto waits = [&](const Ack& ack) { return !has_closed && now < ack.deadline; };
  const auto first_due = std::stable_partition(acks.begin(), acks.end(), waits);
  std::vector<Ack> due(std::make_move_iterator(first_due), std::make_move_iterator(acks.end()));
  acks.erase(first_due, acks.end());
  if (has_closed) closings_.erase(found);  // The caller holds `owned`: nothing is let go under the lock.
  return due;
}

std::vector<std::shared_ptr<Owned>> LentBuffers::take_all() {
  std::vector<std::shared_ptr<Owned>> all;
  const base::MutexLock lock(mutex_);
  for (auto& [id, owned] : by_id_) all.push_back(std::move(owned));
  for (auto& [token, closing] : closings_) all.push_back(std::move(closing.owned));
  by_id_.clear();
  by_token_.clear();
  by_name_.clear();
  closings_.clear();
  return all;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
