#pragma once

// Adoption: whole pages of the caller's memory, moved in place into a memory file that peers of this host can map. The
// addresses stay, the bytes stay; what changes is that the pages are shared.
//
// The file covers the caller's bytes rounded out to whole pages. A page at an end that is the caller's in part is not
// moved: the file has a page in its place that this process never looks at, so that a peer can copy a range that
// reaches over the end, and then moves the bytes of the end another way.
//
// Between a copy of pages and the switch to it (in `make` and in `give_back`) a store would go to the page that is
// about to be dropped. A WriteGuard holds the threads that want to store there; without one such a store is lost.
//
// Thread rule: one thread at a time. Lifetime: dropped without give_back(), the pages stay shared.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hawser/status.h>

#include "backend/address_space.h"
#include "backend/adopted/write_guard.h"
#include "base/fd.h"

namespace hawser::backend {

class Adoption {
 public:
  /// Moves the whole pages of `bytes`. `peers_write`: else the file refuses further mappings for writing. Errors say
  /// why the memory is not ours to move, or what the system lacks; all is as before then.
  /// `guard` is used for both moves and lives longer; null: nobody may store while pages move.
  /// `before_block` is for tests.
  static Result<std::unique_ptr<Adoption>> make(std::span<std::byte> bytes, bool peers_write, const WriteGuard* guard,
                                                void (*before_block)(AddressRange) = nullptr);
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  /// What was moved.
  AddressRange pages() const { return pages_; }
  /// What the file covers; it begins at offset 0.
  AddressRange covered() const { return covered_; }
  int fd() const { return file_.get(); }
  bool peers_write() const { return peers_write_; }

  /// Whether all moved pages that `range` touches are mapped still, so that what a peer stores is seen there.
  bool is_intact(AddressRange range) const;

  /// Makes private memory of the pages again, with the bytes that are in them, where they are still mapped: what the
  /// caller unmapped meanwhile is nobody's business. Bad: there is not enough memory; the bytes stay where they are.
  Status give_back();

  /// Before a fork: looks up what is still mapped.
  void prepare_fork();
  /// In the child: its pages become a private view of the file, so that nothing it writes reaches the parent or a peer.
  /// System calls only.
  void leave_to_parent();

 private:
  Adoption(AddressRange pages, AddressRange covered, bool peers_write, const WriteGuard* guard)
      : pages_(pages), covered_(covered), peers_write_(peers_write), guard_(guard) {}
  Status open_file();
  Status move_in(AddressRange block);
  Status move_out(AddressRange block);
  Status copy_out(AddressRange block, void* fresh);
  Status move_out_all(AddressRange range);
  /// Parts of `range` that are mapped from the file and shared.
  Result<std::vector<AddressRange>> still_ours(AddressRange range) const;
  std::int64_t offset_of(std::uintptr_t address) const { return static_cast<std::int64_t>(address - covered_.begin); }

  /// Bytes that exist twice while they move.
  static constexpr std::size_t kBlock = 64u << 20;

  const AddressRange pages_;
  const AddressRange covered_;
  const bool peers_write_;
  const WriteGuard* const guard_;
  base::Fd file_;
  std::uint64_t inode_ = 0;
  std::vector<AddressRange> inherited_;  ///< What a child will have, see prepare_fork.
};

}  // namespace hawser::backend
