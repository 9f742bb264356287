#include "sim/atomic_judge.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "agent/inner_simulator.h"

namespace hawser::simulation {
namespace {

/// The upper bits of all digits.
constexpr std::uint64_t kTwice = 0xaaaa'aaaa'aaaa'aaaaU;

std::string described(const AtomicCall& call) {
  return fmt::format("{} {} of {}+{} from {} to {}", call.expected ? "compare_swap" : "fetch_add", call.uid,
                     call.area->plot->name(), call.range.offset, call.from->name, call.to->name);
}

constexpr bool is_within(std::uint64_t part, std::uint64_t whole) { return (part & ~whole) == 0; }

std::uint64_t word_now(const Area& area, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, area.plot->bytes().data() + sizeof(value) * index, sizeof(value));
  return value;
}

}  // namespace

AtomicCall& AtomicJudge::make(Life& from, Life& to, Area& area) {
  AtomicCall& call = all_.emplace_back();
  call.uid = uses_.writers.take();
  call.from = &from;
  call.to = &to;
  call.area = &area;
  call.submitted = uses_.universe.world.now();
  by_uid_[call.uid] = &call;
  return call;
}

AtomicCall* AtomicJudge::find(std::uint64_t uid) const {
  const auto at = by_uid_.find(uid);
  return at == by_uid_.end() ? nullptr : at->second;
}

void AtomicJudge::drop(AtomicCall& call) {
  if (call.digit != 0) call.area->atomic_words[call.word].calls.pop_back();
  by_uid_.erase(call.uid);
  all_.pop_back();
}

void AtomicJudge::observe_finals(Life& life) {
  for (std::size_t i = 0; i < life.atomics.size() && !failed();) {
    AtomicCall& call = *life.atomics[i];
    if (!call.held || !call.op.done()) {
      ++i;
      continue;
    }
    call.status = call.op.status();
    if (call.status.ok()) call.found = call.op.found();
    on_final(call);
  }
}

void AtomicJudge::on_completion(Life& life, AtomicCall& call, const Completion& entry) {
  if (!call.queued) return fail(life, described(call) + " was completed in a queue that it was not given");
  if (++call.completions > 1) return fail(life, described(call) + " was completed twice in its queue");
  const std::uint64_t bytes = entry.status.ok() ? sizeof(std::uint64_t) : 0;
  if (entry.bytes != bytes)
    return fail(life, described(call) + fmt::format(" says that it moved {} bytes", entry.bytes));
  if (call.held && !(call.status == entry.status)) {
    return fail(life, described(call) + " ended as '" + call.status.to_string() + "' but its completion says '" +
                          entry.status.to_string() + "'");
  }
  if (call.held) return;
  call.status = entry.status;
  on_final(call);
}

void AtomicJudge::on_own(AtomicCall& call, std::uint64_t found) {
  call.found = found;
  on_final(call);
}

void AtomicJudge::on_final(AtomicCall& call) {
  Life& life = *call.from;
  if (call.final) return fail(life, described(call) + " became final twice");
  if (call.to->alive) observe_words(*call.to);
  call.final = true;
  call.op = AtomicOp();
  std::erase(life.atomics, &call);
  uses_.universe.world.note("atomic final", life.name, call.uid, static_cast<std::uint64_t>(call.status.code()));
  check_status(call);
  if (failed()) return;
  call.status.ok() ? check_good(call) : check_bad(call);
  life.ended_atomics.push_back(&call);
  constexpr std::size_t kRemembered = 8;
  if (life.ended_atomics.size() <= kRemembered) return;
  life.ended_atomics.front()->range = RemoteRange();
  life.ended_atomics.erase(life.ended_atomics.begin());
}

void AtomicJudge::check_status(AtomicCall& call) {
  const Instant now = uses_.universe.world.now();
  const auto wrong = [&](const std::string& why) {
    fail(*call.from, described(call) + " ended as '" + call.status.to_string() + "', " + why);
  };
  if (call.bait && call.status.ok()) return wrong("though nothing gives it the right");
  switch (call.status.code()) {
    case Code::kOk:
      break;
    case Code::kTimedOut:
      if (now < call.due) return wrong("before its deadline");
      if (!uses_.reasons.may_be_late(*call.from, *call.to, call.submitted, call.due) && !call.ended_by_us)
        return wrong("though nothing held it up");
      break;
    case Code::kCancelled:
      if (!call.ended_by_us) return wrong("but nobody cancelled it");
      break;
    case Code::kDenied:
      if (!call.bait && !call.area->closing && !call.area->closed) return wrong("but it has every right");
      break;
    case Code::kInvalid:
      if (!call.bait) return wrong("but nothing about it is invalid");
      break;
    case Code::kDisconnected:
      if (!uses_.reasons.may_be_cut_off(*call.from, *call.to, call.submitted))
        return wrong("but nothing parted them for good");
      break;
    default:
      return wrong("which is none of the ends that it may have");
  }
}

void AtomicJudge::check_good(AtomicCall& call) {
  ++good_;
  if (!call.found) return;  // Its handle was dropped when it was over already.
  AtomicWord& word = call.area->atomic_words[call.word];
  const std::uint64_t after = call.took_place() ? *call.found | call.digit : *call.found;
  const auto wrong = [&](std::string_view what) {
    fail(*call.from, fmt::format("{} found {:x}, {}: the word held {:x} when it was asked, and now {:x}",
                                 described(call), *call.found, what, call.before, word.seen));
  };
  if ((*call.found & call.digit) != 0) return wrong("in which it is itself");
  if (!is_within(call.before, *call.found)) return wrong("in which what was done before is not");
  if (!is_within(after, word.seen)) return wrong("which does not fit what was done there");
  if (!call.took_place() && (word.seen & call.digit) != 0) return wrong("not what it expects, and was done");
  add_state(call, *call.found);
  if (!failed()) add_state(call, after);
}

void AtomicJudge::check_bad(AtomicCall& call) {
  ++call.from->bad_ends;
  const BufferState buffer = call.status.buffer();
  const bool refused = call.status.code() == Code::kDenied || call.status.code() == Code::kInvalid;
  if (refused || buffer == BufferState::kUnknown) ++(refused ? call.to->refusals : call.to->maybe_refusals);
  const auto wrong = [&](std::string_view what) {
    fail(*call.from, fmt::format("{} ended as '{}', {}", described(call), call.status.to_string(), what));
  };
  if (buffer != BufferState::kUntouched && buffer != BufferState::kUnknown) return wrong("but a word is not a buffer");
  if (refused && buffer != BufferState::kUntouched) return wrong("but its owner refused it");
  if (call.digit == 0 || buffer == BufferState::kUnknown) return;
  if ((call.area->atomic_words[call.word].seen & call.digit) != 0) return wrong("and had been done");
}

/// All that the word ever held must be explained by one order.
void AtomicJudge::add_state(const AtomicCall& call, std::uint64_t value) {
  auto& states = call.area->atomic_words[call.word].states;
  for (const std::uint64_t other : states) {
    if (other == value) return;
    if (is_within(other, value) || is_within(value, other)) continue;
    return fail(*call.from, fmt::format("{} saw {:x}, others saw {:x}: no order of operations explains both",
                                        described(call), value, other));
  }
  states.push_back(value);
}

void AtomicJudge::observe_words(Life& life) {
  for (const auto& area : life.areas) {
    if (area->closed) continue;
    const std::size_t used = std::min(area->atomic_words.size(), area->first_atomic_word + kSharedWords);
    for (std::size_t i = 0; i < used && !failed(); ++i) {
      const std::uint64_t value = word_now(*area, i);
      if (value != area->atomic_words[i].seen) on_word(life, *area, i, value);
    }
  }
}

void AtomicJudge::on_word(Life& life, Area& area, std::size_t index, std::uint64_t value) {
  AtomicWord& word = area.atomic_words[index];
  const std::string name = fmt::format("{}+{}", area.plot->name(), index * sizeof(value));
  if (const std::uint64_t twice = value & kTwice; twice != 0) {
    const auto place = static_cast<std::size_t>(std::countr_zero(twice)) / 2;
    if (place >= word.calls.size()) return fail(life, name + " was changed by no operation");
    return fail(life, described(*word.calls[place]) + " was done twice");
  }
  if (!is_within(word.seen, value)) return fail(life, fmt::format("{} lost {:x}", name, word.seen & ~value));
  for (std::uint64_t gained = value & ~word.seen; gained != 0; gained &= gained - 1) {
    const auto place = static_cast<std::size_t>(std::countr_zero(gained)) / 2;
    if (place >= word.calls.size()) return fail(life, name + " was changed by no operation");
    const AtomicCall& call = *word.calls[place];
    const bool untouched = !call.status.ok() && call.status.buffer() == BufferState::kUntouched;
    if (call.final && (call.status.ok() || untouched)) {
      return fail(life, described(call) + " was done after it had ended as '" + call.status.to_string() + "'");
    }
  }
  word.seen = value;
  add_state(*word.calls.front(), value);
}

void AtomicJudge::check_memory(Life& life, const Area& area) {
  for (std::size_t i = 0; i < area.atomic_words.size() && !failed(); ++i) {
    if (word_now(area, i) == area.atomic_words[i].seen) continue;
    fail(life, fmt::format("{}+{} was touched in nobody's turn", area.plot->name(), i * sizeof(std::uint64_t)));
  }
}

void AtomicJudge::check_hangs(const Life& life) {
  for (const AtomicCall* call : life.atomics) {
    const Duration late = uses_.universe.world.now() - call->due;
    if (late <= uses_.reasons.allowance(life)) continue;
    return fail(life, fmt::format("{} is not final {:.1f} ms after its deadline", described(*call),
                                  std::chrono::duration<double, std::milli>(late).count()));
  }
}

void AtomicJudge::check_settled() {
  for (const AtomicCall& call : all_) {
    if (!call.from->alive || failed()) continue;
    if (!call.final) return fail(*call.from, described(call) + " never ended");
    if (call.queued && call.completions != 1) {
      return fail(*call.from, fmt::format("{} ended and was reported {} times", described(call), call.completions));
    }
  }
}

void AtomicJudge::on_refused(AtomicCall& call, const Status& status, Code fault) {
  Life& life = *call.from;
  uses_.universe.world.note("atomic refused", life.name, static_cast<std::uint64_t>(status.code()));
  const Code code = status.code();
  if (code == Code::kBusy || (code == fault && fault != Code::kOk)) return;
  // The word may be of an older handle: what was forgotten and added again is another peer to it.
  const std::optional<Peer> peer = agent::inner::peer_of(call.range);
  const bool gone = !call.to->alive || call.to->closing || life.closing || life.bonds[call.to].broken || !peer ||
                    peer->state() == PeerState::kDown;
  if ((code == Code::kDisconnected || code == Code::kInvalid) && gone) return;
  fail(life, described(call) + " was refused without reason: " + status.to_string());
}

}  // namespace hawser::simulation
