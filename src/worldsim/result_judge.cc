#include "worldsim/result_judge.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace hawser::worldsim {

void ResultJudge::check_barrier(const Deed& deed) const {
  const Realm& realm = *deed.realm;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    if (realm.parts[rank].begun > deed.number - realm.first_number) continue;
    return uses_.verdict.fail(fmt::format("{} ended before rank {} had begun it", describe(deed), rank));
  }
}

void ResultJudge::check_collective(const Deed& deed, const Status& status) const {
  if (!status.ok()) {
    if (uses_.actors[deed.realm->actors[deed.rank]]->is_alive) realms_.doom(*deed.realm);
    const bool is_failure = status.code() == Code::kDisconnected && !uses_.fates.has_left_alive(*deed.realm);
    if (is_failure && !part_of(deed).knows) part_of(deed).knows = uses_.universe.world.now();
    return;
  }
  part_of(deed).good.insert(deed.number);
  if (deed.is_misfit) return;
  if (deed.act.what == schedule::Operation::kBarrier) check_barrier(deed);
  if (deed.output != nullptr && !std::ranges::equal(deed.output->bytes, output_of(deed.act, deed.rank))) {
    uses_.verdict.fail(describe(deed) + " ended well and gave other bytes than it should");
  }
  const bool is_input_whole = deed.input == nullptr || deed.input == deed.output ||
                              std::ranges::equal(deed.input->bytes, input_of(deed.act, deed.rank));
  if (!is_input_whole) uses_.verdict.fail(describe(deed) + " ended well and changed its input");
}

void ResultJudge::check_received(const Deed& deed, const Status& status) const {
  Part& part = part_of(deed);
  if (!status.ok()) {
    if (status.code() != Code::kInvalid) part.book.give_up(deed.posted);
    return;
  }
  const Received received = deed.request.received();
  const std::span<const std::byte> bytes =
      deed.output != nullptr ? std::span<const std::byte>(deed.output->bytes) : deed.request.bytes();
  if (received.bytes > bytes.size())
    return uses_.verdict.fail(describe(deed) + " says that it got more than its buffer holds");
  const std::optional<Letter> letter = read_letter(bytes.first(received.bytes));
  if (!letter) return uses_.verdict.fail(describe(deed) + " ended well and gave torn bytes");
  if (letter->realm != deed.realm->uid) {
    return uses_.verdict.fail(fmt::format("{} got a letter of realm {}", describe(deed), letter->realm));
  }
  if (letter->to != deed.rank)
    return uses_.verdict.fail(fmt::format("{} got a letter to rank {}", describe(deed), letter->to));
  if (letter->from != received.source || letter->tag != received.tag) {
    return uses_.verdict.fail(describe(deed) + " says that its letter has another source or tag than it has");
  }
  if (const std::string fault = part.book.take(deed.posted, *letter); !fault.empty()) {
    uses_.verdict.fail(fmt::format("{}: {}", describe(deed), fault));
  }
}

void ResultJudge::check_vote(const Realm& realm, std::size_t agreement, bool flag, const Deed& deed) const {
  bool some_against = false;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    const Part& part = realm.parts[rank];
    const bool is_lost = uses_.fates.is_gone(realm.actors[rank]) || part.is_left;
    const bool is_against = part.votes.size() > agreement && part.votes[agreement] == false;
    some_against = some_against || is_against;
    if (flag && is_against && !is_lost && !uses_.fates.accuses()) {
      return uses_.verdict.fail(fmt::format("{} gave true, but rank {} voted false", describe(deed), rank));
    }
    const bool differs = part.decisions.size() > agreement && part.decisions[agreement].value_or(flag) != flag;
    if (differs && !uses_.fates.accuses()) {
      return uses_.verdict.fail(fmt::format("{} gave {}, but rank {} got {}", describe(deed), flag, rank, !flag));
    }
  }
  if (!flag && !some_against) uses_.verdict.fail(describe(deed) + " gave false, but nobody voted false");
}

void ResultJudge::on_agreed(Deed& deed, bool flag) const {
  Part& part = part_of(deed);
  const std::size_t agreement = part.decisions.size();
  part.decisions.emplace_back(flag);
  uses_.universe.world.note("agreed", describe(deed), flag ? 1 : 0);
  check_vote(*deed.realm, agreement, flag, deed);
}

void ResultJudge::check_misfit(const Deed& deed) const {
  const Realm& realm = *deed.realm;
  const bool is_begun =
      std::ranges::all_of(realm.parts, [&](const Part& part) { return part.begun > deed.number - realm.first_number; });
  const Act& act = deed.act;
  const bool is_whole = act.what == schedule::Operation::kBarrier || act.count >= act.size ||
                        (!act.counts.empty() && std::ranges::find(act.counts, 0U) == act.counts.end());
  if (!is_whole || !is_begun || uses_.fates.has_gone(realm) || realm.doomed) return;
  uses_.verdict.fail(describe(deed) + " and nobody noticed");
}

}  // namespace hawser::worldsim
