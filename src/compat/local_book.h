#pragma once

// LocalBook: the registrations of one agent, by the addresses that NIXL names them by.
//
// Thread rule: the owner's lock. Lifetime: a registration that is taken out closes its region when it goes.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/memory.h>

#include "agent/region.h"
#include "compat/blob.h"
#include "compat/book.h"
#include "compat/file_descs.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// A registration of this agent's. Without a region where it is of no bytes, which is there to be deregistered alone.
struct LocalSpot {
  Region owner;                                ///< Closes it.
  std::shared_ptr<agent::LocalRegion> region;  ///< The same.
  std::uint64_t offset = 0;
  std::uint32_t index = 0;  ///< In the card.
  bool is_synced = false;   ///< A file: what is written there ends on its device.
};

/// The descriptor as the book knows it.
Desc book_desc(MemType type, const Desc& desc);

class LocalBook {
 public:
  using Entry = Book<LocalSpot>::Entry;

  void add(MemType type, const Desc& desc, LocalSpot spot, BackendMask backends);
  /// Takes one away from these backends: out of the book, to `out`, when no other has it. False: there is none.
  bool take(MemType type, const Desc& desc, BackendMask backends, std::optional<Entry>* out) {
    return book_.take(type, book_desc(type, desc), backends, out);
  }
  /// Each descriptor has a registration of its own: else kNotFound.
  Status check(std::string_view call, const RegDescList& list, BackendMask mask) const;
  /// The files that the devices of the list stand for, by device number.
  std::map<std::uint64_t, FileId> files_of(const RegDescList& list) const;

  // What others are told of them.
  /// All that some of these backends have.
  BlobEntries entries(BackendMask mask) const;
  /// Those that the descriptors lie in; `indices` are their regions. kNotFound: one is not registered there.
  Result<BlobEntries> entries(std::string_view call, const RegDescList& only, BackendMask mask,
                              std::vector<std::uint32_t>* indices) const;

  const Book<LocalSpot>& book() const { return book_; }

 private:
  Book<LocalSpot> book_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
