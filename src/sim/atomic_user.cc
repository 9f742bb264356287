#include "sim/atomic_user.h"

#include <algorithm>
#include <atomic>

#include "agent/region.h"

namespace hawser::simulation {
namespace {

constexpr std::size_t kWordSize = sizeof(std::uint64_t);

/// What is wrong with the word by what the initiator knows; kOk: nothing.
Code fault_of(const RemoteRange& range) {
  if (!range.region) return Code::kInvalid;
  const bool fits = range.size == kWordSize && range.offset % kWordSize == 0 &&
                    backend::in_bounds(range.offset, range.size, range.region->size);
  if (!fits) return Code::kInvalid;
  return allows(range.region->rights, Rights::kReadWrite) ? Code::kOk : Code::kDenied;
}

/// Whether its owner must refuse it, if it is asked.
bool is_refusable(const RemoteRange& range, const Area& area) {
  if (area.closed || !range.region) return true;
  const backend::RegionEntry& truth = *area.truth;
  return range.region->key != truth.key || !allows(truth.rights, Rights::kReadWrite) ||
         !backend::in_bounds(range.offset, range.size, truth.size) ||
         (reinterpret_cast<std::uintptr_t>(truth.base) + range.offset) % kWordSize != 0;
}

/// A word of the region with a digit to spare.
std::optional<std::size_t> pick_word(base::Rng& rng, Area& area) {
  std::size_t& first = area.first_atomic_word;
  while (first < area.atomic_words.size() && area.atomic_words[first].calls.size() >= kDigitsPerWord) ++first;
  if (first >= area.atomic_words.size()) return std::nullopt;
  const std::size_t index = first + rng.below(std::min(kSharedWords, area.atomic_words.size() - first));
  if (area.atomic_words[index].calls.size() >= kDigitsPerWord) return first;
  return index;
}

void take_digit(AtomicCall& call) {
  auto& calls = call.area->atomic_words[call.word].calls;
  call.digit = std::uint64_t{1} << (2 * calls.size());
  calls.push_back(&call);
}

/// Often what is there, or was.
std::uint64_t guess(base::Rng& rng, const AtomicWord& word) {
  if (rng.chance(0.6)) return word.seen;
  if (rng.chance(0.1)) return rng.u64();
  return word.states[rng.below(word.states.size())];
}

}  // namespace

Area* AtomicUser::pick_area(Life& to, bool bait) {
  std::vector<Area*> fit;
  for (const auto& area : to.areas) {
    const bool refuses = area->bait || !allows(area->plot->rights(), Rights::kReadWrite);
    if (bait ? refuses && area->plot->rights() != Rights::kNone : !area->atomic_words.empty() && !area->closed)
      fit.push_back(area.get());
  }
  return fit.empty() ? nullptr : fit[rng_.below(fit.size())];
}

void AtomicUser::ask(Life& life) {
  if (rng_.chance(0.1)) return add_own(life);
  Life* const to = peers_.pick(life);
  if (to == nullptr) return;
  const std::size_t count = rng_.chance(0.2) ? 12 : 1 + rng_.below(3);
  for (std::size_t i = 0; i < count && !theater_.judge().failed(); ++i) {
    if (rng_.chance(0.15)) {
      ask_again(life);
    } else if (rng_.chance(0.1)) {
      ask_bait(life, *to);
    } else if (Area* const area = pick_area(*to, false)) {
      const auto word = pick_word(rng_, *area);
      if (word) ask_one(life, *to, *area, life.bonds[to].peer.range(area->plot->name(), kWordSize * *word, kWordSize));
    }
  }
}

void AtomicUser::ask_bait(Life& life, Life& to) {
  Area* const area = pick_area(to, !rng_.chance(0.2));
  if (area == nullptr) return;
  std::uint64_t offset = kWordSize * rng_.below(area->plot->bytes().size() / kWordSize);
  if (!area->atomic_words.empty()) offset = rng_.chance(0.5) ? offset + 4 : offset + area->plot->bytes().size();
  const RemoteRange range = life.bonds[&to].peer.range(area->plot->name(), offset, kWordSize);
  // A later card may have told the truth.
  if (range.region && fault_of(range) == Code::kOk && !is_refusable(range, *area)) return;
  ask_one(life, to, *area, range);
}

void AtomicUser::ask_again(Life& life) {
  if (life.ended_atomics.empty()) return;
  const AtomicCall& before = *life.ended_atomics[rng_.below(life.ended_atomics.size())];
  if (before.from == before.to) return;
  ask_one(life, *before.to, *before.area, before.range);
}

void AtomicUser::ask_one(Life& life, Life& to, Area& area, const RemoteRange& range) {
  Judge& judge = theater_.judge();
  AtomicCall& call = judge.atomics().make(life, to, area);
  call.range = range;
  call.bait = is_refusable(range, area);
  const Code fault = fault_of(range);
  const bool has_digit = fault == Code::kOk && !call.bait;
  if (has_digit) {
    call.word = range.offset / kWordSize;
    if (area.atomic_words[call.word].calls.size() >= kDigitsPerWord) return judge.atomics().drop(call);
    call.before = area.atomic_words[call.word].seen;
    take_digit(call);
  }
  if (rng_.chance(0.4)) call.expected = has_digit ? guess(rng_, area.atomic_words[call.word]) & ~call.digit : 0;
  call.queued = rng_.chance(0.6);
  AtomicOptions options{.cookie = call.uid};
  if (rng_.chance(0.4)) options.deadline = Duration(rng_.range(200'000, 60'000'000));
  if (call.queued) options.queue = &life.queue;
  call.due = call.submitted + (options.deadline.count() > 0 ? options.deadline : theater_.settings().default_deadline);
  const std::uint64_t one = has_digit ? call.digit : 1;
  theater_.universe().world.note("atomic", life.name, call.uid, one);
  Result<AtomicOp> op = call.expected ? compare_swap(life.agent, range, *call.expected, *call.expected + one, options)
                                      : fetch_add(life.agent, range, one, options);
  if (!op) {
    judge.atomics().on_refused(call, op.error(), fault);
    return judge.atomics().drop(call);
  }
  if (fault != Code::kOk) return judge.fail(life, "an atomic operation on a word that can be none was taken");
  call.op = std::move(*op);
  life.atomics.push_back(&call);
  judge.observe(life);
}

/// The owner's own, beside those of its peers.
void AtomicUser::add_own(Life& life) {
  Area* const area = pick_area(life, false);
  const auto word = area != nullptr ? pick_word(rng_, *area) : std::nullopt;
  if (!word) return;
  AtomicCall& call = theater_.judge().atomics().make(life, life, *area);
  call.word = *word;
  call.range.offset = kWordSize * *word;
  take_digit(call);
  auto* const at = reinterpret_cast<std::uint64_t*>(area->plot->bytes().data() + kWordSize * *word);
  call.before = area->atomic_words[*word].seen;
  theater_.judge().atomics().on_own(call, std::atomic_ref<std::uint64_t>(*at).fetch_add(call.digit));
}

void AtomicUser::cancel(Life& life) {
  if (life.atomics.empty()) return;
  AtomicCall& call = *life.atomics[rng_.below(life.atomics.size())];
  if (!call.held) return;
  call.ended_by_us = true;
  theater_.universe().world.note("cancel atomic", life.name, call.uid);
  if (call.queued && rng_.chance(0.3)) {
    call.held = false;
    call.op = AtomicOp();
  } else {
    call.op.cancel();
  }
}

}  // namespace hawser::simulation
