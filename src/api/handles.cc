#include "api/handles.h"

#include <pthread.h>

#include <cstdio>
#include <string>

namespace hawser::api {
namespace {

// All tables of the process, for the handlers of a fork, which have no context. Two faces, so two tables.
constexpr std::size_t kTablesMax = 4;
std::array<std::atomic<std::mutex*>, kTablesMax> table_locks;

void lock_tables() {
  for (auto& lock : table_locks) {
    if (std::mutex* its = lock.load(std::memory_order_acquire)) its->lock();
  }
}
void unlock_tables() {
  for (auto& lock : table_locks) {
    if (std::mutex* its = lock.load(std::memory_order_acquire)) its->unlock();
  }
}

}  // namespace

Handles::Handles() {
  static const int registered = ::pthread_atfork(lock_tables, unlock_tables, unlock_tables);
  (void)registered;
  for (auto& lock : table_locks) {
    std::mutex* none = nullptr;
    if (lock.compare_exchange_strong(none, &mutex_)) return;
  }
}

Result<std::uint64_t> Handles::add(std::string_view call, std::uint8_t kind, std::unique_ptr<Object> object) {
  std::uint32_t index = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (made_ == kChunk * kChunksMax) {
      return Status(Code::kBusy, std::string(call) + ": there are 2^24 handles; release some");
    } else {
      // Room for its way back is made now, so that releasing never allocates.
      free_.reserve(made_ + 1 > free_.capacity() ? 2 * (made_ + kChunk) : 0);
      if (made_ % kChunk == 0) chunks_[made_ / kChunk].store(new Slot[kChunk], std::memory_order_release);
      index = made_++;
    }
  }
  Slot& its = *slot(index);
  its.object = object.release();
  its.object->placed(its.note);
  its.kind.store(kind, std::memory_order_relaxed);
  const std::uint64_t generation = its.state.load(std::memory_order_relaxed) >> 32;
  its.state.store(generation << 32 | kLive | 1, std::memory_order_release);
  return generation << 32 | std::uint64_t{kind} << 24 | index;
}

Object* Handles::pin(std::uint8_t kind, std::uint64_t id) {
  Slot* const its = slot(index_of(id));
  if (its == nullptr || kind_of(id) != kind) return nullptr;
  std::uint64_t state = its->state.load(std::memory_order_relaxed);
  do {
    if (state >> 32 != id >> 32 || (state & kLive) == 0) return nullptr;
  } while (!its->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed));
  if (its->kind.load(std::memory_order_relaxed) == kind) return its->object;
  unpin(index_of(id));  // Somebody made that number up.
  return nullptr;
}

void Handles::unpin(std::uint32_t index) {
  Slot& its = *slot(index);
  const std::uint64_t before = its.state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kUses) != 1) return;
  delete std::exchange(its.object, nullptr);
  its.note.store(0, std::memory_order_relaxed);  // Seen with the next generation's state.
  std::uint64_t generation = (before >> 32) + 1;
  if (generation > UINT32_MAX) generation = 1;
  its.state.store(generation << 32, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  free_.push_back(index);
}

bool Handles::kill(std::uint8_t kind, std::uint64_t id) {
  Slot* const its = slot(index_of(id));
  if (its == nullptr || kind_of(id) != kind || its->kind.load(std::memory_order_relaxed) != kind) return false;
  std::uint64_t state = its->state.load(std::memory_order_relaxed);
  do {
    if (state >> 32 != id >> 32 || (state & kLive) == 0) return false;
  } while (!its->state.compare_exchange_weak(state, state & ~kLive, std::memory_order_acq_rel));
  unpin(index_of(id));
  return true;
}

Status Handles::refusal(std::string_view call, std::string_view name, std::uint8_t kind, std::uint64_t id) {
  std::string text = std::string(call) + ": the " + std::string(name) + " handle ";
  if (id == 0) return Status(Code::kInvalid, text + "is null");
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "0x%llx ", static_cast<unsigned long long>(id));
  text += digits.data();
  text += kind_of(id) == kind ? "was released, or never given out" : "is of another kind";
  return Status(Code::kInvalid, std::move(text));
}

}  // namespace hawser::api
