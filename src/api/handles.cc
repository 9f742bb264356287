#include "api/handles.h"

#include <pthread.h>

#include <cstdio>
#include <string>

#include "base/thread_annotations.h"

namespace hawser::api {
namespace {

// All tables of the process, for the handlers of a fork, which have no context. Two faces, so two tables.
constexpr std::size_t kTablesMax = 4;
std::array<std::atomic<std::mutex*>, kTablesMax> table_locks;

// Clang follows no lock that outlives the function which takes it.
void lock_tables() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
  for (auto& lock : table_locks) {
    if (std::mutex* its = lock.load(std::memory_order_acquire)) its->lock();
  }
}
void unlock_tables() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
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

std::uint32_t Handles::make_slot() {
  const std::lock_guard lock(mutex_);
  if (made_ == kChunk * kChunksMax) return kNone;
  if (made_ % kChunk == 0) chunks_[made_ / kChunk].store(new Slot[kChunk], std::memory_order_release);
  return made_++;
}

std::uint32_t Handles::take_free() {
  std::uint64_t head = free_.load(std::memory_order_acquire);
  for (;;) {
    const auto index = static_cast<std::uint32_t>(head);
    if (index == kNone) return make_slot();
    // Slots are never freed, so one that somebody else takes meanwhile can still be read; the count tells of it.
    const std::uint64_t next = at(index).next.load(std::memory_order_relaxed);
    const std::uint64_t changed = ((head >> 32) + 1) << 32 | next;
    if (free_.compare_exchange_weak(head, changed, std::memory_order_acquire)) return index;
  }
}

Result<std::uint64_t> Handles::add(std::string_view call, std::uint8_t kind, std::unique_ptr<Object> object) {
  const std::uint32_t index = take_free();
  if (index == kNone) return Status(Code::kBusy, std::string(call) + ": there are 2^24 handles; release some");
  Slot& its = at(index);
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
  const std::uint64_t before = at(index).state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kUses) == 1) bury(index, before);
}

void Handles::bury(std::uint32_t index, std::uint64_t state) {
  Slot& its = at(index);
  delete std::exchange(its.object, nullptr);
  its.note.store(0, std::memory_order_relaxed);  // Seen with the next generation's state.
  std::uint64_t generation = (state >> 32) + 1;
  if (generation > UINT32_MAX) generation = 1;
  its.state.store(generation << 32, std::memory_order_release);
  std::uint64_t head = free_.load(std::memory_order_relaxed);
  std::uint64_t changed = 0;
  do {
    its.next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    changed = ((head >> 32) + 1) << 32 | index;
  } while (!free_.compare_exchange_weak(head, changed, std::memory_order_release, std::memory_order_relaxed));
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

bool Handles::kill_pinned(std::uint64_t id) {
  Slot& its = at(index_of(id));
  std::uint64_t state = its.state.load(std::memory_order_relaxed);
  do {
    if ((state & kLive) == 0) {
      unpin(index_of(id));
      return false;
    }
  } while (!its.state.compare_exchange_weak(state, (state & ~kLive) - 2, std::memory_order_acq_rel));
  if ((state & kUses) == 2) bury(index_of(id), state);
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
