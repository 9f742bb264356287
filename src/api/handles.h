#pragma once

// Handles: what the C faces give out instead of pointers. A handle is a number made of an index, a kind and a
// generation; one that is null, released, of another kind or made up is found out by looking, never by a crash.
//
// Thread rule: thread-safe. Looking up takes no lock. An object that is in use by one thread while another releases its
// handle dies when the first is done with it.
// Lifetime: a table is never destroyed, because clients release handles in static destructors.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <hawser/status.h>

namespace hawser::api {

/// A word beside a handle's object that is read without a pin. It outlives the object.
using Note = std::atomic<std::uint64_t>;

/// The object of a handle. Derived types have `kKind` (1 to 255, unique in their table) and `kName`, for messages.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  /// Called once, before the handle is given out. `note` is 0, and is written by the object alone as long as it lives.
  virtual void placed(Note& note) { (void)note; }
};

class Handles {
 public:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kChunksMax = 16384;  ///< So 2^24 handles at once.

  /// Keeps the object alive. Move-only.
  template <typename T>
  class Ref {
   public:
    Ref(Handles* table, std::uint32_t index, T* object) : table_(table), index_(index), object_(object) {}
    Ref(Ref&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), index_(other.index_), object_(other.object_) {}
    Ref& operator=(Ref&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(index_, other.index_);
      std::swap(object_, other.object_);
      return *this;
    }
    ~Ref() {
      if (table_ != nullptr) table_->unpin(index_);
    }
    /// The pin stays, and is somebody else's to end.
    void forget() { table_ = nullptr; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }

   private:
    Handles* table_;
    std::uint32_t index_;
    T* object_;
  };

  /// Safe across forks: the child finds the table unlocked.
  Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  /// kBusy when there are too many. The object is destroyed then.
  template <typename T>
  Result<std::uint64_t> add(std::string_view call, std::unique_ptr<T> object) {
    return add(call, T::kKind, std::move(object));
  }
  /// kInvalid, saying what is wrong with the handle.
  template <typename T>
  Result<Ref<T>> find(std::string_view call, std::uint64_t id) {
    Object* object = pin(T::kKind, id);
    if (object == nullptr) return refusal(call, T::kName, T::kKind, id);
    return Ref<T>(this, index_of(id), static_cast<T*>(object));
  }
  /// True where the live object behind `id` noted the handle `owner`, which is live, too. Cheap: nothing is pinned, and
  /// what the object wrote before its note (release) is seen.
  template <typename T>
  bool has_noted(std::uint64_t id, std::uint64_t owner) {
    const Slot* const its = slot(index_of(id));
    const Slot* const owners = slot(index_of(owner));
    return its != nullptr && owners != nullptr && kind_of(id) == T::kKind && owner != 0 &&
           has_noted(*its, id, *owners, owner);
  }
  /// True where `id` names a live object of that kind now. For mere checks: nothing is pinned.
  template <typename T>
  bool names(std::uint64_t id) {
    const Slot* const its = slot(index_of(id));
    return its != nullptr && kind_of(id) == T::kKind && is_live(*its, id) &&
           its->kind.load(std::memory_order_relaxed) == T::kKind;
  }
  /// What `find` answers where there is none.
  template <typename T>
  static Status unknown(std::string_view call, std::uint64_t id) {
    return refusal(call, T::kName, T::kKind, id);
  }
  /// The handle is dead from now on; the object dies with its last use.
  template <typename T>
  Status release(std::string_view call, std::uint64_t id) {
    return kill(T::kKind, id) ? Status() : refusal(call, T::kName, T::kKind, id);
  }
  /// As above, unless `refuse(object)` gives an error, which is the answer then.
  template <typename T, typename Refuse>
  Status release_unless(std::string_view call, std::uint64_t id, Refuse refuse) {
    Object* const object = pin(T::kKind, id);
    if (object == nullptr) return refusal(call, T::kName, T::kKind, id);
    Ref<T> ref(this, index_of(id), static_cast<T*>(object));
    if (Status why = refuse(*ref); !why.ok()) return why;
    ref.forget();
    return kill_pinned(id) ? Status() : refusal(call, T::kName, T::kKind, id);
  }

 private:
  // state: generation in the upper half, then whether the handle is live, then how many use the object. A live handle
  // itself counts as one use.
  static constexpr std::uint64_t kLive = 1ull << 31;
  static constexpr std::uint64_t kUses = kLive - 1;
  struct Slot {
    std::atomic<std::uint64_t> state{1ull << 32};
    std::atomic<std::uint8_t> kind{0};
    Object* object = nullptr;
    Note note{0};
    std::atomic<std::uint32_t> next{kNone};  ///< While it is free: the next one that is.
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  friend class Noted;
  static std::uint32_t index_of(std::uint64_t id) { return static_cast<std::uint32_t>(id) & 0xffffff; }
  static std::uint8_t kind_of(std::uint64_t id) { return static_cast<std::uint8_t>(id >> 24); }
  static bool has_noted(const Slot& its, std::uint64_t id, const Slot& owners, std::uint64_t owner) {
    // The caller had `id` before, so the note is this object's or a later one's. A handle that still lives tells which.
    return its.note.load(std::memory_order_acquire) == owner && is_live(its, id) && is_live(owners, owner);
  }
  Result<std::uint64_t> add(std::string_view call, std::uint8_t kind, std::unique_ptr<Object> object);
  Slot* slot(std::uint32_t index) {
    Slot* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &chunk[index % kChunk];
  }
  /// For a slot that was made.
  Slot& at(std::uint32_t index) { return chunks_[index / kChunk].load(std::memory_order_acquire)[index % kChunk]; }
  static bool is_live(const Slot& its, std::uint64_t id) {
    const std::uint64_t state = its.state.load(std::memory_order_acquire);
    return state >> 32 == id >> 32 && (state & kLive) != 0;
  }
  Object* pin(std::uint8_t kind, std::uint64_t id);
  void unpin(std::uint32_t index);
  bool kill(std::uint8_t kind, std::uint64_t id);
  /// Also ends the caller's pin. False: somebody else was first.
  bool kill_pinned(std::uint64_t id);
  /// After the last use.
  void bury(std::uint32_t index, std::uint64_t state);
  /// kNone: there is no room.
  std::uint32_t take_free();
  std::uint32_t make_slot();
  static Status refusal(std::string_view call, std::string_view name, std::uint8_t kind, std::uint64_t id);

  std::array<std::atomic<Slot*>, kChunksMax> chunks_{};
  std::atomic<std::uint64_t> free_{kNone};  ///< The first free slot, below a count of changes, so that ABA is seen.
  std::mutex mutex_;                        ///< Over what follows.
  std::uint32_t made_ = 0;
};

/// The answer of has_noted for one pair of handles, for callers that ask often: slots are never freed, so they are
/// found once. Trivial, so that a thread can have one at no cost.
class Noted {
 public:
  constexpr Noted() = default;
  /// Handles that has_noted has found live.
  Noted(Handles& table, std::uint64_t id, std::uint64_t owner)
      : id_(id), owner_(owner), its_(&table.at(Handles::index_of(id))), owners_(&table.at(Handles::index_of(owner))) {}
  bool still(std::uint64_t id, std::uint64_t owner) const {
    return id == id_ && owner == owner_ && its_ != nullptr && Handles::has_noted(*its_, id, *owners_, owner);
  }

 private:
  std::uint64_t id_ = 0, owner_ = 0;
  const Handles::Slot* its_ = nullptr;
  const Handles::Slot* owners_ = nullptr;
};

}  // namespace hawser::api
