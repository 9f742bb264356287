#include "worldsim/call_judge.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace hawser::worldsim {
namespace {

/// A call's deadline counts from when it came; and so long its end may be on its way.
constexpr Duration kCallSlack = std::chrono::milliseconds(200);

}  // namespace

Remote& CallJudge::make(std::uint64_t uid, Realm& realm, std::uint32_t from, std::uint32_t to) {
  Remote& remote = remotes_.emplace_back();
  remote.uid = uid;
  remote.realm = &realm;
  remote.from = from;
  remote.to = to;
  return remote;
}

void CallJudge::on_run(const Realm& realm, std::uint32_t rank, std::uint64_t uid) {
  const auto found = std::ranges::find_if(remotes_, [uid](const Remote& remote) { return remote.uid == uid; });
  const Instant now = uses_.universe.world.now();
  uses_.universe.world.note("runs", {}, uid);
  if (found == remotes_.end()) return uses_.verdict.fail(fmt::format("a handler got call {} that nobody made", uid));
  Remote& remote = *found;
  const std::string name =
      fmt::format("call {} of rank {} at rank {} of realm {}", uid, remote.from, remote.to, remote.realm->uid);
  if (remote.realm != &realm || remote.to != rank) {
    return uses_.verdict.fail(fmt::format("{} ran at rank {} of realm {}", name, rank, realm.uid));
  }
  if (++remote.runs > 1) return uses_.verdict.fail(name + " ran twice");
  // Where a neighbour has just died, a call waits at a relay until it is known.
  if (now < (uses_.fates.ways().is_sparse() ? uses_.times.delayed_until() : uses_.times.troubled_until())) return;
  if (now > remote.due + kCallSlack) return uses_.verdict.fail(name + " began after its deadline");
  if (remote.taken_back && now > *remote.taken_back + kCallSlack) {
    uses_.verdict.fail(name + " began after its caller had taken it back");
  }
}

void CallJudge::check_answer(const Deed& deed, const Status& status) const {
  if (!status.ok()) return;
  if (deed.handler == "nobody" || deed.handler == "refuse") return wrong_end(uses_, deed, status, "but it must not");
  const std::optional<Letter> answer = read_letter(deed.request.bytes());
  if (!answer || answer->number != deed.remote->uid || answer->realm != deed.realm->uid) {
    return uses_.verdict.fail(describe(deed) + " got an answer that is not its own");
  }
  if (deed.remote->runs != 1) {
    uses_.verdict.fail(fmt::format("{} was answered and its handler ran {} times", describe(deed), deed.remote->runs));
  }
}

}  // namespace hawser::worldsim
