#pragma once

// ForeignPages: what one registration of the caller's own memory holds in this process: its range, so that nobody moves
// pages under it, and the adoptions that its range meets, so that none is given back while it stands.
//
// Pages belong to the process, not to an agent, so the book of who holds what is process-wide; and it is what a fork
// must know of adopted pages.
//
// Thread rule: thread-safe; moving pages is under the book's lock, and other registrations of foreign memory wait for
// it. Lifetime: releases when it dies.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/adopted/adoption.h"

namespace hawser::backend {

/// Ranges that may overlap. They come and go by hundreds of thousands, and few are ever asked about: so adding and
/// removing costs a store, and a look goes through all.
class RangeList {
 public:
  /// Its place, for remove().
  std::size_t add(AddressRange range);
  void remove(std::size_t place);
  bool any(AddressRange range) const;
  std::size_t count() const { return ranges_.size() - free_.size(); }
  std::size_t room() const { return ranges_.size(); }

 private:
  std::vector<AddressRange> ranges_;  ///< Free places are empty.
  std::vector<std::size_t> free_;
};

/// What a peer of this host maps of a region.
struct SharedFile {
  int fd = -1;
  std::uint64_t place = 0;  ///< Where the region begins in the file.
  std::uint64_t head = 0;   ///< Bytes at its beginning that are not in the file, but in this process only.
  std::uint64_t tail = 0;   ///< Likewise at its end.
};

class ForeignPages {
  struct Private {};

 public:
  ForeignPages(Private, AddressRange range, bool asked) : range_(range), was_asked_(asked) {}
  /// Adoptions of one process: each has a descriptor and up to three mappings.
  static constexpr std::size_t kAdoptionsMax = 4096;

  /// Never fails: what cannot be adopted stays as it is, see refusal(). Not `adopt`: nothing is moved; but where
  /// another registration had these pages adopted, they are held.
  static std::shared_ptr<ForeignPages> hold(std::span<std::byte> bytes, Rights rights, bool adopt);
  ~ForeignPages();
  ForeignPages(const ForeignPages&) = delete;
  ForeignPages& operator=(const ForeignPages&) = delete;

  /// Of an adopted registration.
  const std::optional<SharedFile>& file() const { return file_; }
  /// Why there is no file; good when there is one.
  const Status& refusal() const { return refusal_; }
  bool was_asked() const { return was_asked_; }
  /// Of the first adoption of this process for which there is no guard against writers: why; else good. For a warning.
  const Status& unguarded() const { return unguarded_; }

  /// Nobody touches the memory through this registration any more. The last one of an adoption gives its pages back;
  /// bad when that failed: the bytes are there, but not as memory of an allocator should be. Idempotent.
  Status release();
  /// The same when the caller may be writing to the memory: it stays shared for good, and nothing is moved.
  void keep();

 private:
  const AddressRange range_;
  const bool was_asked_;
  std::uint32_t life_ = 0;             ///< Of the book; another one is a parent's.
  std::size_t place_ = 0;              ///< In the book's list of ranges.
  std::vector<std::uintptr_t> holds_;  ///< Adoptions, by their first page.
  std::optional<SharedFile> file_;
  Status refusal_;
  Status unguarded_;
  bool is_released_ = false;  ///< Under the book's lock.

  friend struct ForeignBook;
};

}  // namespace hawser::backend
