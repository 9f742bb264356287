#include "sim/course_maker.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace hawser::simulation {
namespace {

/// Bound on what one life keeps: leases must not run out.
constexpr std::size_t kCoursesMax = 24;

std::size_t pick_size(base::Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return 1 + rng.below(8);
    case 1:
      return 8;
    case 2:
    case 3:
      return 1 + rng.below(300);
    case 4:
    case 5:
      return 1 + rng.below(2000);
    case 6:
      return 4096;
    default:
      return 1 + rng.below(9000);
  }
}

}  // namespace

Course* CourseMaker::make(Life& life, Life& to) {
  auto course = std::make_unique<Course>();
  course->write = rng_.chance(0.65);
  course->from = &life;
  course->to = &to;
  Area* const remote = pick_remote(to, course->write, &course->bait);
  if (remote == nullptr || life.scratch->closing || !lease_pairs(life, *course, *remote)) return nullptr;
  Result<Plan> made = plan(life, *course);
  if (!made) {
    give_back(*course);
    check_refusal(life, *course, *remote, made.error());
    return nullptr;
  }
  course->plan = *made;
  if (course->bait) course->bait = TransferJudge::is_lie(*course);
  if (course->plan.bytes() != course->bytes) theater_.judge().fail(life, "a plan has other bytes than it was given");
  life.courses.push_back(std::move(course));
  return life.courses.back().get();
}

void CourseMaker::check_refusal(Life& life, const Course& course, const Area& remote, const Status& status) {
  Bond& bond = life.bonds[course.to];
  // Its card here may be older than the region, newer than a lie, or gone with the peer.
  const bool fair = status.code() == Code::kNotFound || status.code() == Code::kDisconnected || course.bait ||
                    bond.broken || (status.code() == Code::kInvalid && !bond.peer.region(remote.plot->name()));
  if (!fair) theater_.judge().fail(life, "a plan was refused: " + status.to_string());
}

void CourseMaker::give_back(const Course& course) {
  for (const Pair& pair : course.pairs) {
    pair.local->plot->give_back(pair.local_lease);
    pair.remote->plot->give_back(pair.remote_lease);
  }
}

bool CourseMaker::make_room(Life& life) {
  if (life.courses.size() < kCoursesMax) return true;
  for (std::size_t i = 0; i < life.courses.size(); ++i) {
    Course& course = *life.courses[i];
    if (!theater_.judge().transfers().idle(course) || course.tainted) continue;
    give_back(course);
    theater_.judge().forget(std::move(life.courses[i]));
    life.courses.erase(life.courses.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  return life.courses.size() < 4 * kCoursesMax;
}

Area* CourseMaker::pick_remote(Life& to, bool write, bool* bait) {
  std::vector<Area*> fit;
  *bait = rng_.chance(0.1);
  for (const auto& area : to.areas) {
    if (area.get() == to.words || area->for_atomics || area->bait != *bait || area->closed) continue;
    if (area->bait ? write : allows(area->plot->rights(), write ? Rights::kWrite : Rights::kRead)) {
      // What is written to is never read, so that its bytes are known at any time.
      const bool mixed = !write && area->plot->rights() == Rights::kReadWrite;
      if (!mixed || area->bait) fit.push_back(area.get());
    }
  }
  return fit.empty() ? nullptr : fit[rng_.below(fit.size())];
}

bool CourseMaker::lease_pairs(Life& life, Course& course, Area& remote) {
  static constexpr std::array<std::size_t, 6> kCounts{1, 1, 2, 4, 8, 16};
  const std::size_t count = kCounts[rng_.below(kCounts.size())];
  const std::size_t large = rng_.chance(0.1) ? 24 * 1024 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = remote.bait ? 64 : i == 0 && large > 0 ? large : pick_size(rng_);
    const Pair* before = course.pairs.empty() ? nullptr : &course.pairs.back();
    Pair pair{
        .local = life.scratch, .remote = &remote, .local_lease = {}, .remote_lease = {}, .position = course.bytes};
    auto local = pair.local->plot->take(rng_, size, before != nullptr ? &before->local_lease : nullptr);
    if (!local) break;
    auto there = remote.plot->take(rng_, size, before != nullptr ? &before->remote_lease : nullptr);
    if (!there) {
      pair.local->plot->give_back(*local);
      break;
    }
    pair.local_lease = *local;
    pair.remote_lease = *there;
    course.bytes += size;
    course.pairs.push_back(pair);
  }
  return !course.pairs.empty();
}

Result<Plan> CourseMaker::plan(Life& life, Course& course) {
  if (rng_.chance(0.4)) return plan_by_table(life, course);
  std::vector<LocalRange> local;
  std::vector<RemoteRange> remote;
  const Peer& peer = life.bonds[course.to].peer;
  for (const Pair& pair : course.pairs) {
    local.push_back(pair.local->region.range(pair.local_lease.offset, pair.local_lease.size));
    remote.push_back(peer.range(pair.remote->plot->name(), pair.remote_lease.offset, pair.remote_lease.size));
  }
  return course.write ? life.agent.plan_write(peer, local, remote) : life.agent.plan_read(peer, remote, local);
}

Result<Plan> CourseMaker::plan_by_table(Life& life, Course& course) {
  const Peer& peer = life.bonds[course.to].peer;
  std::vector<StridedRange> local, remote;
  std::vector<std::uint32_t> index;
  for (const Pair& pair : course.pairs) {
    local.push_back({.offset = pair.local_lease.offset,
                     .size = pair.local_lease.size,
                     .stride = pair.local_lease.size,
                     .count = 1});
    remote.push_back({.offset = pair.remote_lease.offset,
                      .size = pair.remote_lease.size,
                      .stride = pair.remote_lease.size,
                      .count = 1});
    index.push_back(static_cast<std::uint32_t>(index.size()));
  }
  rng_.shuffle(index);
  const RangeTable ours = course.pairs.front().local->region.table(local);
  const RangeTable theirs = peer.table(course.pairs.front().remote->plot->name(), remote);
  return course.write ? life.agent.plan_write(peer, ours, index, theirs, index)
                      : life.agent.plan_read(peer, theirs, index, ours, index);
}

}  // namespace hawser::simulation
