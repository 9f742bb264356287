#include "sim/judge.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace hawser::simulation {

std::string note_of(std::uint64_t uid) {
  std::string text = "note:" + std::to_string(uid) + ":";
  text.append(uid % 8 == 5 ? 20'000 : uid % 40, '.');  // Of many sizes, so that few fill a small inbox.
  return text;
}

std::uint64_t uid_of(std::string_view note) {
  if (!note.starts_with("note:")) return 0;
  const std::uint64_t uid = std::strtoull(std::string(note.substr(5)).c_str(), nullptr, 10);
  return note == note_of(uid) ? uid : 0;
}

Judge::Judge(sim::Universe& universe, bool may_fill)
    : universe_(universe),
      verdict_(universe),
      reasons_(universe),
      transfers_(
          {.universe = universe, .verdict = verdict_, .reasons = reasons_, .writers = writers_, .may_fill = may_fill}),
      atomics_({.universe = universe, .verdict = verdict_, .reasons = reasons_, .writers = writers_}),
      messages_({.universe = universe, .verdict = verdict_, .reasons = reasons_, .lives = lives_}),
      books_(verdict_) {}

void Judge::observe(Life& life) {
  if (!life.alive || failed()) return;
  transfers_.observe_finals(life);
  atomics_.observe_finals(life);
  observe_queue(life);
  transfers_.observe_words(life);
  atomics_.observe_words(life);
  transfers_.check_hangs(life);
  atomics_.check_hangs(life);
}

void Judge::observe_queue(Life& life) {
  std::array<Completion, 128> entries;  // More than a life's queue holds: all of them, hints among them.
  const std::size_t count = life.queue.poll(entries);
  for (std::size_t i = 0; i < count && !failed(); ++i) {
    if (entries[i].kind != CompletionKind::kTransfer) continue;
    if (AtomicCall* const call = atomics_.find(entries[i].cookie); call != nullptr) {
      atomics_.on_completion(life, *call, entries[i]);
    } else {
      transfers_.on_completion(life, entries[i]);
    }
  }
}

void Judge::on_notification(Life& life, const Notification& notification) {
  ++life.notes_taken;
  const std::uint64_t uid = uid_of(notification.text);
  const auto from = lives_.find(notification.peer.incarnation());
  if (uid == 0 || from == lives_.end()) return fail(life, "a notification that nobody sent: " + notification.text);
  universe_.world.note("notified", life.name, uid);
  if (Move* const move = transfers_.find(uid); move != nullptr) {
    transfers_.on_notified(life, *from->second, *move);
  } else {
    messages_.on_note(life, *from->second, uid);
  }
}

void Judge::on_close(Life& life, Area& area, const Status& status) {
  if (!status.ok()) return;
  area.closed = true;
  universe_.world.note("closed", life.name + "/" + area.plot->name());
  area.plot->write_all(new_writer());
}

bool Judge::settled(const Lives& lives) const {
  for (const auto& from : lives) {
    if (!from->alive) continue;
    if (!from->in_flight.empty() || !from->atomics.empty() || !MessageJudge::is_settled(*from)) return false;
  }
  return transfers_.are_told();
}

void Judge::check_settled(const Lives& lives) {
  for (const auto& from : lives) {
    if (!from->alive || failed()) continue;
    transfers_.check_ended(*from);
    messages_.check_settled(*from);
  }
  atomics_.check_settled();
  transfers_.check_settled();
}

void Judge::check_memory(const Lives& lives) {
  for (const auto& life : lives) {
    for (const auto& area : life->areas) {
      if (failed()) return;
      if (area.get() == life->words || area.get() == life->own_words) {
        if (!area->closed) continue;
      }
      if (!area->atomic_words.empty() && !area->closed) {
        atomics_.check_memory(*life, *area);
        continue;
      }
      const auto at = area->closed ? area->plot->first_difference() : area->plot->first_fault();
      if (!at) continue;
      fail(*life,
           fmt::format("{}+{} was touched{}", area->plot->name(), *at, area->closed ? " after close said kOk" : ""));
    }
    for (const auto& course : life->courses) transfers_.check_memory(*life, *course);
  }
}

}  // namespace hawser::simulation
