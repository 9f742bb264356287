#pragma once

// FileDesk: what peers ask of this agent's files. Payload goes through staged memory, so that neither a stream nor the
// lane waits for a device: written bytes land there before a Mover takes them to the file, and read ones are there
// before their answer is framed.
//
// Thread rule: confined to the port's lane. Memory: kStagedMax bytes in all, kStagedPerPeer for each peer and no more
// than a share of what is free; initiators keep to half of the first. A peer that does not move gives its memory back
// (Target::next_keep_period). Lifetime: outlives the machines whose jobs it does; a job of one that is gone still runs
// to its end, and is dropped; what comes for its file meanwhile waits for that end. The destructor gives the system two
// seconds to end what it was handed; the rest is left behind with its memory (fileio/leftovers.h).

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/stream.h"
#include "base/slot_table.h"
#include "fileio/mover.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class FileDesk;
class Target;

/// Bytes of chunks to files that an initiator has in flight on one path.
inline constexpr std::uint64_t kFileBytesMax = 16u << 20;
inline constexpr std::uint64_t kStagedPerPeer = 2 * kFileBytesMax;
inline constexpr std::uint64_t kStagedMax = 512u << 20;
/// Once half of that is in use, what a peer holds beyond one chunk may be this part of what is free, so that the first
/// peers do not take what others need.
inline constexpr std::uint64_t kStagedShare = 16;

/// Staged memory, page-aligned. Goes back to its desk.
class Staged {
 public:
  Staged() = default;
  Staged(Staged&& other) noexcept
      : desk_(std::exchange(other.desk_, nullptr)), bytes_(other.bytes_), capacity_(other.capacity_) {}
  Staged& operator=(Staged&& other) noexcept;
  ~Staged() { reset(); }

  explicit operator bool() const { return desk_ != nullptr; }
  std::byte* data() const { return bytes_; }
  std::uint64_t capacity() const { return capacity_; }
  void reset();
  /// Out of the desk's hands and account.
  std::shared_ptr<void> release();

 private:
  friend class FileDesk;
  Staged(FileDesk* desk, std::byte* bytes, std::uint64_t capacity) : desk_(desk), bytes_(bytes), capacity_(capacity) {}

  FileDesk* desk_ = nullptr;
  std::byte* bytes_ = nullptr;
  std::uint64_t capacity_ = 0;
};

/// One chunk of a peer on a file of this agent.
struct FileJob {
  hawser::Operation op = hawser::Operation::kRead;  ///< kRead: from the file into `memory`.
  bool covered = false;
  bool durable = false;
  wire::Outcome outcome = wire::Outcome::kOk;
  Target* target = nullptr;  ///< Whose it is; null: its path is gone.
  Path* path = nullptr;
  std::uint32_t reply = 0;  ///< A read's number at its target.
  std::uint32_t region = 0, generation = 0;
  std::uint64_t bytes = 0;
  wire::ChunkHead chunk;
  std::shared_ptr<fileio::File> file;
  std::uint64_t file_offset = 0;  ///< Where the region begins in it.
  std::vector<Piece> pieces;      ///< `local` lies in `memory`, `remote` is the offset in the file.
  Staged memory;
};

class FileDesk {
 public:
  FileDesk(const Context& context, Network& network) : context_(context), network_(network) {}
  ~FileDesk();

  /// Files can be served here. The first call opens what that takes.
  bool open();
  /// Whether `open` was called with success: before, there is nothing to do here.
  bool is_open() const { return mover_ != nullptr; }
  /// In place of what `open` would take.
  void use(std::unique_ptr<fileio::Queue> queue);
  /// For one who holds `held` bytes already. Nothing when that is its share, or kStagedMax is reached.
  Staged stage(std::uint64_t bytes, std::uint64_t held = 0);
  void start(FileJob job);
  /// Nothing is told to `target` any more; its jobs end soon.
  void abandon(const Target* target);

  /// Moves bytes; at most about `buffered_max` through the page cache. Returns how much was done.
  std::size_t turn(std::uint64_t buffered_max);
  /// The next job that ended and is its target's still.
  bool poll(FileJob* job);
  bool can_sleep() const;
  std::uint64_t staged() const { return staged_; }
  /// No job of the region is left; those that are end as soon as the kernel lets go.
  bool region_quiet(std::uint32_t index, std::uint32_t generation);

 private:
  friend class Staged;
  struct Active {
    FileJob job;
    base::SlotId task;
  };

  static bool is_stray(const FileJob& job) { return job.target == nullptr && job.op == hawser::Operation::kWrite; }
  bool must_wait(const FileJob& job) const;
  bool can_feed() const;
  void feed();
  void end(FileJob job, wire::Outcome outcome);
  void collect();
  void stop_closed();
  void leave();
  void give_back(std::byte* bytes, std::uint64_t capacity);
  wire::Outcome outcome_of(const FileJob& job, const fileio::Moved& moved) const;

  const Context& context_;
  Network& network_;
  bool tried_ = false;
  std::unique_ptr<fileio::Mover> mover_;
  base::SlotTable<Active> active_{fileio::kRequestsMax};
  std::list<FileJob> waiting_;  ///< For the mover; each has staged memory, which bounds them.
  std::list<FileJob> ended_;    // A deque takes half a KiB while it is empty, and most agents serve no file.
  std::vector<const fileio::File*> strays_;  ///< Of each active write whose path is gone.
  std::vector<std::byte*> spares_;
  std::uint64_t staged_ = 0;
};

}  // namespace hawser::backend::stream
