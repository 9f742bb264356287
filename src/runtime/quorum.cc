#include "runtime/quorum.h"

#include <string>

#include "base/planted.h"

namespace hawser::runtime {

Status check_quorum(Quorum quorum, std::string_view world, const QuorumCount& count) {
  const std::uint32_t counted = count.size - count.dead;
  const bool is_needed = quorum == Quorum::kMajority && !base::planted(base::Planted::kQuorumIgnored);
  if (!is_needed || count.left > counted / 2) return {};
  return Status(Code::kDenied, "shrink: world '" + std::string(world) +
                                   "' has no quorum: " + std::to_string(count.left) + " ranks are left of " +
                                   std::to_string(counted) + " that are not proven dead, and more than half are needed")
      .with_advice("the others may go on without this rank: end it, and start it anew if they do not");
}

}  // namespace hawser::runtime
