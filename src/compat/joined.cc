#include "compat/joined.h"

#include <algorithm>

#include "agent/region.h"
#include "plan/merger.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// Registrations of this agent's in one request; each new one is looked for among the others.
constexpr std::size_t kLocalsMax = 16;

/// Takes the pairs one after another. What it refuses is not wrong, only not of this kind; who looks again says more.
class Joiner {
 public:
  Joiner(const Book<LocalSpot>& ours, MemType our_type, const Book<RemoteSpot>& theirs, MemType their_type,
         JoinedLists& out)
      : ours_(ours, our_type), theirs_(theirs, their_type), out_(out), merger_(out.made.pieces.all.data()) {}

  bool add(const Desc& local, const Desc& remote) {
    std::uint64_t from = 0, to = 0;
    const auto* const our = ours_.find(local, &from);
    const auto* const their = theirs_.find(remote, &to);
    if (our == nullptr || their == nullptr || local.len != remote.len || local.len == 0) return false;
    if (our != our_ && !enter(*our)) return false;
    if (their != their_ && !enter(*their)) return false;
    if (__builtin_add_overflow(bytes_, local.len, &bytes_)) return false;
    merger_.add(base_ + from, to, local.len);
    return true;
  }
  void finish(std::size_t pairs) {
    plan::Pieces& pieces = out_.made.pieces;
    pieces.groups.push_back({.region = 0, .first = 0, .count = merger_.count(), .bytes = bytes_});
    pieces.all.finish(merger_.count());
    pieces.bytes = bytes_;
    pieces.pair_count = pairs;
  }

 private:
  bool enter(const Book<LocalSpot>::Entry& entry) {
    our_ = &entry;
    base_ = entry.range.region->entry->base + entry.range.offset;
    out_.backends &= entry.backends;
    auto& locals = out_.made.locals;
    if (std::ranges::find(locals, entry.range.region) != locals.end()) return true;
    if (locals.size() == kLocalsMax) return false;
    locals.push_back(entry.range.region);
    return true;
  }
  bool enter(const Book<RemoteSpot>::Entry& entry) {
    their_ = &entry;
    out_.backends &= entry.backends;
    const auto* const region = region_of(entry.range, out_.peer);
    auto& remotes = out_.made.remotes;
    if (region == nullptr || (!remotes.empty() && remotes.front() != *region)) return false;
    if (remotes.empty()) remotes.push_back(*region);
    return true;
  }

  Book<LocalSpot>::Cursor ours_;
  Book<RemoteSpot>::Cursor theirs_;
  JoinedLists& out_;
  plan::Merger merger_;
  std::byte* base_ = nullptr;
  const Book<LocalSpot>::Entry* our_ = nullptr;
  const Book<RemoteSpot>::Entry* their_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::optional<JoinedLists> join_lists(const Book<LocalSpot>& ours, const XferDescList& local, const Remote& theirs,
                                      const XferDescList& remote, BackendMask backends) {
  std::optional<JoinedLists> joined(std::in_place);
  joined->peer = theirs.peer;
  joined->backends = backends;
  joined->made.pieces.all = plan::PieceArray(local.size());
  if (joined->made.pieces.all.data() == nullptr) return std::nullopt;
  Joiner joiner(ours, local.type(), theirs.book, remote.type(), *joined);
  const std::span<const Desc> from = local.span(), to = remote.span();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!joiner.add(from[i], to[i])) return std::nullopt;
  }
  if (joined->backends == 0) return std::nullopt;
  joiner.finish(from.size());
  return joined;
}

}  // namespace compat
HAWSER_NAMESPACE_END
