#pragma once

// An arena is memory that Agent::allocate hands out: a memory file that peers on this host can map.
//
// Preallocated (so touching it cannot SIGBUS), sealed against shrinking, growing and further seals; when peers may not
// write, also against new writable mappings. Owned by the regions that lie in it: the one that was allocated, and those
// that were registered over parts of it. Once a stopped holder is inside when one of them closes, it is abandoned,
// never recycled.
//
// Thread rule: immutable after creation.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::backend {

class Arena {
 public:
  /// `size` is rounded up to whole pages (of the kind used). Errors: kFailed with the system's reason and advice.
  static Result<std::shared_ptr<Arena>> create(std::size_t size, Rights rights, HugePages huge_pages);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::span<std::byte> bytes() const { return {base_, size_}; }
  std::size_t page_size() const { return page_size_; }
  /// Whether it is sealed against peers' writing: no region in it may give that right then.
  bool is_read_only() const { return read_only_; }
  int fd() const { return fd_.get(); }
  /// Keep the mapping for ever: somebody stopped may still write to it.
  void abandon() { abandoned_ = true; }

 private:
  Arena(base::Fd fd, std::byte* base, std::size_t size, std::size_t page_size, bool read_only)
      : fd_(std::move(fd)), base_(base), size_(size), page_size_(page_size), read_only_(read_only) {}
  base::Fd fd_;
  std::byte* base_;
  std::size_t size_;
  std::size_t page_size_;
  bool read_only_;
  bool abandoned_ = false;
};

}  // namespace hawser::backend
