// grant_trials: random use of grants by an honest holder and by one that lies, in virtual time, and a judge.
//
// usage: grant_trials [COUNT]            seeds 1 to COUNT (200) in both modes; none may fail
//        grant_trials BUG [COUNT]        in the build with planted bugs: a seed must fail, with the fitting complaint
//
// The owner gives out parts of one region: for anybody or for one of the two, for one transfer or for many, for a while
// or for good. The liar changes what the bytes say of holder and use, keeps grants, and never reports an end. The judge
// checks that no transfer is served to another than the holder, after the grant's time, or as a second one; and that
// nothing touches what was revoked, or what has ended by itself.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../conformance/sim_environment.h"
#include "../must.h"
#include "base/bytes.h"
#include "base/planted.h"
#include "base/rng.h"
#include "wire/grant.h"

namespace {

using namespace hawser;
using namespace std::chrono_literals;
using base::Planted;

/// How the region is divided: for each grant one part.
struct Parts {
  std::size_t size = 0, count = 0;
};
constexpr Parts parts_of(sim::Mode mode) {
  // A copy in mapped memory takes a turn for each 4 KiB: long enough for others to meet it.
  return mode == sim::Mode::kMapped ? Parts{.size = 512 * 1024, .count = 16} : Parts{.size = 256, .count = 64};
}
constexpr std::byte kNever{0xee};
/// From the end of a grant's time to the owner's next turn, and from a submit to its first piece.
constexpr Duration kSlack = 1ms;

struct PlantedGrantBug {
  Planted bug;
  std::string_view name, complaint;
};
constexpr PlantedGrantBug kBugs[] = {
    {Planted::kHolderUnchecked, "holder_unchecked", "served to another than its holder"},
    {Planted::kSecondUseServed, "second_use_served", "served twice"},
    {Planted::kExpiryForgotten, "expiry_forgotten", "served after its time"},
    {Planted::kGenerationUnchecked, "generation_unchecked", "touched after it was revoked"},
    {Planted::kReportTrusted, "report_trusted", "touched after it had ended"},
};

/// A grant, as the judge knows it.
struct Given {
  Grant grant;
  std::size_t part = 0;
  int holder = -1;  ///< Of `agents`; -1: anybody.
  bool once = false;
  bool revoked = false;
  bool over = false;  ///< It ended by itself: nobody touches its part, says its owner.
  Instant expires = Instant::max();
  int served = 0;
};

struct Move {
  std::size_t given = 0;
  int by = 0;
  bool begun_late = false;
  bool begun_revoked = false;
  Transfer transfer;
};

class Trial {
 public:
  Trial(std::uint64_t seed, sim::Mode mode)
      : rng_(seed), parts_(parts_of(mode)), env_(conformance::make_sim_environment(mode)) {
    owner_ = open("owner");
    agents_ = {open("honest"), open("liar")};
    region_ = must(owner_->add_region({.name = "shared", .bytes = memory_, .listed = false}));
    for (int i = 0; i < 2; ++i) {
      sources_[i] = must(agents_[i]->allocate({.size = parts_.size}));
      to_owner_[i] = must(agents_[i]->add_peer(must(owner_->card())));
      to_agent_[i] = must(owner_->add_peer(must(agents_[i]->card())));
    }
  }

  /// Empty: all was as it must be.
  std::string run() {
    for (int step = 0; step < 60 && complaint_.empty(); ++step) {
      act();
    }
    settle();
    for (const Given& each : given_) {
      if (!complaint_.empty()) break;
      if (each.revoked) check_untouched(each, "touched after it was revoked");
      if (each.over) check_untouched(each, "touched after it had ended");
    }
    return complaint_;
  }

 private:
  Agent* open(const std::string& name) { return must(env_->open({.name = name, .status_page = "off"})); }

  void act() {
    const std::uint64_t dice = rng_.below(100);
    if (given_.empty() || (dice < 25 && given_.size() < parts_.count)) return give();
    if (dice < 70) return use(given_[rng_.below(given_.size())]);
    if (dice < 80) return revoke(given_[rng_.below(given_.size())]);
    if (dice < 90) return settle();
    for (std::uint64_t i = rng_.below(8); i > 0; --i) pass();
  }

  void give() {
    Given made{.part = given_.size(), .once = rng_.chance(0.4)};
    GrantOptions options{.peer = {}, .single_use = made.once};
    if (rng_.chance(0.5)) made.holder = static_cast<int>(rng_.below(2));
    if (made.holder >= 0) options.peer = to_agent_[made.holder];
    const Duration expiry = rng_.chance(0.5) ? Duration::max() : Duration(rng_.range(100'000, 5'000'000));
    made.expires = env_->now() + expiry;
    made.grant = must(region_.grant(made.part * parts_.size, parts_.size, Rights::kWrite, expiry, options));
    given_.push_back(std::move(made));
  }

  /// Of a liar it is for anybody, and for any number of transfers.
  std::string bytes_for(const Given& given, int agent) const {
    if (agent == 0) return std::string(given.grant.bytes());
    wire::Grant grant = must(wire::decode_grant(base::as_bytes(given.grant.bytes())));
    grant.holder = {};
    grant.single_use = false;
    grant.lifetime_ms = 0;
    return must(wire::encode(grant));
  }

  /// By one of the two, or by both at once.
  void use(Given& given) {
    const int first = static_cast<int>(rng_.below(2));
    use_by(given, first);
    if (rng_.chance(0.3)) use_by(given, 1 - first);
    pass();
    judge();
  }

  /// As the environment's, but ends are seen in the event in which they come: others may be inside just then.
  void pass() {
    const Instant until = env_->now() + kSlack / 20;
    (void)env_->eventually([&] {
      look_for_ends();
      return env_->now() >= until;
    });
  }

  void use_by(Given& given, int by) {
    const Result<GrantedRegion> target = to_owner_[by].import_grant(bytes_for(given, by));
    if (!target) return expect_refusal(target.error());
    const Result<Plan> plan =
        agents_[by]->plan_write(to_owner_[by], {{sources_[by].range(0, parts_.size)}}, {{target->whole()}});
    if (!plan) return expect_refusal(plan.error());
    Move move{.given = static_cast<std::size_t>(&given - given_.data()), .by = by};
    move.begun_late = given.expires != Instant::max() && env_->now() > given.expires + kSlack;
    move.begun_revoked = given.revoked;
    Result<Transfer> sent = plan->submit();
    if (!sent) return expect_refusal(sent.error());
    move.transfer = std::move(*sent);
    moves_.push_back(std::move(move));
  }

  void expect_refusal(const Status& status) {
    if (status.code() != Code::kDenied) complain("refused: " + status.to_string());
  }

  void judge() {
    std::erase_if(moves_, [this](Move& move) {
      if (!move.transfer.done()) return false;
      judge_end(move, move.transfer.status());
      return true;
    });
  }

  void judge_end(const Move& move, const Status& status) {
    Given& given = given_[move.given];
    if (!status.ok() && status.code() != Code::kDenied) return complain("ended with " + status.to_string());
    if (!status.ok()) return;
    if (given.holder >= 0 && given.holder != move.by) complain("served to another than its holder");
    if (given.once && ++given.served > 1) complain("served twice");
    if (move.begun_late) complain("served after its time");
    if (move.begun_revoked) complain("touched after it was revoked");
  }

  void revoke(Given& given) {
    if (given.revoked || given.over) return;
    Status revoked;
    env_->blocking(*owner_, [&] { revoked = given.grant.revoke(5s); });
    if (!revoked.ok()) return complain("revoke gave " + revoked.to_string());
    given.revoked = true;
    std::ranges::fill(part_of(given), kNever);
    check_untouched(given, "touched after it was revoked");
  }

  void look_for_ends() {
    for (Given& each : given_) {
      if (each.revoked || each.over || !each.grant.ended()) continue;
      each.over = true;
      std::ranges::fill(part_of(each), kNever);
    }
  }

  std::span<std::byte> part_of(const Given& given) {
    return std::span(memory_).subspan(given.part * parts_.size, parts_.size);
  }
  void check_untouched(const Given& given, const std::string& complaint) {
    const auto bytes = part_of(given);
    if (std::ranges::any_of(bytes, [](std::byte byte) { return byte != kNever; })) complain(complaint);
  }

  void settle() {
    const bool ended = env_->eventually([this] {
      look_for_ends();
      judge();
      return moves_.empty() || !complaint_.empty();
    });
    if (!ended) complain("a transfer did not end");
  }

  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }

  base::Rng rng_;
  const Parts parts_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(parts_.size * parts_.count);
  const std::unique_ptr<conformance::Environment> env_;
  Agent* owner_ = nullptr;
  std::array<Agent*, 2> agents_{};
  Region region_;
  std::array<Region, 2> sources_;
  std::array<Peer, 2> to_owner_, to_agent_;
  std::vector<Given> given_;
  std::vector<Move> moves_;
  std::string complaint_;
};

struct Found {
  std::uint64_t seed = 0;  ///< 0: none failed.
  std::string complaint;
};

Found run_seeds(std::uint64_t count) {
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    for (const sim::Mode mode : {sim::Mode::kStream, sim::Mode::kMapped}) {
      const std::string complaint = Trial(seed, mode).run();
      if (complaint.empty()) continue;
      return {seed, std::string(mode == sim::Mode::kStream ? "stream: " : "mapped: ") + complaint};
    }
  }
  return {};
}

int find(const PlantedGrantBug& bug, std::uint64_t count) {
  const base::PlantedScope planted(bug.bug);
  const Found found = run_seeds(count);
  if (found.seed == 0) {
    fmt::print("FAILED: {} was not found in {} seeds\n", bug.name, count);
    return 1;
  }
  fmt::print("{}: found by seed {}: {}\n", bug.name, found.seed, found.complaint);
  const bool fits = found.complaint.find(bug.complaint) != std::string::npos;
  if (!fits) fmt::print("FAILED: that is not what such a bug should bring\n");
  return fits ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  constexpr std::uint64_t kSeeds = 200;
  const std::string_view first = count > 1 ? words[1] : "";
  for (const auto& bug : kBugs) {
    if (base::kCanPlant && bug.name == first) return find(bug, kSeeds);
  }
  const std::uint64_t seeds = first.empty() ? kSeeds : std::strtoull(words[1], nullptr, 10);
  if (seeds == 0) {
    fmt::print(stderr, "usage: grant_trials [COUNT] | BUG (in the build with planted bugs)\n");
    return 2;
  }
  const Found found = run_seeds(seeds);
  if (found.seed != 0) fmt::print("FAILED: seed {}: {}\n", found.seed, found.complaint);
  return found.seed != 0 ? 1 : 0;
}
