#include "sim/book_judge.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "agent/inner_simulator.h"

namespace hawser::simulation {
namespace {

using agent::inner::SessionBooks;

/// Null: the two have nothing to do with each other.
std::optional<SessionBooks> books_between(const Life& owner, const Life& other,
                                          const SessionBooks* channels_of = nullptr) {
  return agent::inner::books_with(owner.agent, other.incarnation, channels_of);
}

/// Both sides mean each other and are at peace.
bool is_standing(const std::optional<SessionBooks>& out, const std::optional<SessionBooks>& in) {
  return out && in && out->has_control && in->has_control && out->number == in->peer_number &&
         out->peer_number == in->number;
}

/// Of those that stand between lives: the first that goes by another backend than the best, or nobody.
std::pair<Life*, Life*> who_goes_worse(const std::vector<std::unique_ptr<Life>>& lives) {
  for (const auto& life : lives) {
    for (const auto& other : lives) {
      if (life == other || !life->alive || !other->alive) continue;
      const std::optional<SessionBooks> books = books_between(*life, *other);
      if (is_standing(books, books_between(*other, *life)) && !books->goes_best) return {life.get(), other.get()};
    }
  }
  return {};
}

}  // namespace

bool BookJudge::all_go_best(const Lives& lives) { return who_goes_worse(lives).first == nullptr; }

void BookJudge::check_best(const Lives& lives) {
  const auto [life, other] = who_goes_worse(lives);
  if (life != nullptr)
    verdict_.fail(*life, "goes to " + other->name + " by a lesser path, though the better one is there");
}

void BookJudge::check_counters(Life& life) {
  const AgentCounters counters = life.agent.counters();
  const FlowCounters& total = counters.total;
  const auto differ = [&](std::string_view what, std::uint64_t counted, std::uint64_t seen) {
    if (counted != seen) verdict_.fail(life, fmt::format("counters: {} is {}, but {} were seen", what, counted, seen));
  };
  differ("writes", total.writes, life.good_writes);
  differ("reads", total.reads, life.good_reads);
  differ("bytes_written", total.bytes_written, life.bytes_written);
  differ("bytes_read", total.bytes_read, life.bytes_read);
  // Of refused operations whose answer did not come the asker does not know.
  const std::uint64_t errors = life.bad_ends + life.refusals;
  differ("errors", total.errors, std::clamp(total.errors, errors, errors + life.maybe_refusals));
  differ("notifications_received", total.notifications_received, life.notes_taken);
  differ("messages_received", total.messages_received, life.messages_taken);
  differ("transfers_in_flight_gauge", counters.transfers_in_flight_gauge, 0);
}

void BookJudge::check_books(const Lives& lives) {
  for (const auto& from : lives) {
    for (const auto& to : lives) {
      if (from != to && from->alive && to->alive && !verdict_.failed()) check_credit(*from, *to);
    }
  }
}

bool BookJudge::all_told(const Lives& lives) {
  for (const auto& from : lives) {
    for (const auto& to : lives) {
      if (from == to || !from->alive || !to->alive) continue;
      const std::optional<SessionBooks> out = books_between(*from, *to);
      if (is_standing(out, books_between(*to, *from)) && !out->leftovers.empty()) return false;
    }
  }
  return true;
}

void BookJudge::check_silent(const Life& life, std::uint64_t sends, std::int64_t heartbeats) {
  if (!life.alive) return;
  // A ping or an answer at each interval is more than an idle path needs; and one may just have ended.
  const std::uint64_t paths = life.agent.counters().paths.size();
  if (sends <= (paths + 1) * static_cast<std::uint64_t>(heartbeats)) return;
  verdict_.fail(
      life, fmt::format("is not silent though nobody wants anything: it sent {} times by {} paths within {} heartbeats",
                        sends, paths, heartbeats));
}

void BookJudge::check_credit(Life& from, Life& to) {
  const std::optional<SessionBooks> in = books_between(to, from);
  if (!in) return;
  const std::optional<SessionBooks> out = books_between(from, to, &*in);
  if (!is_standing(out, in)) return;
  if (!out->leftovers.empty()) {
    return verdict_.fail(from, fmt::format("all is quiet, but there is left of {}: {}", to.name, out->leftovers));
  }
  // What was read and is not told yet is kept in the peer's book, for notifications only.
  check_room(from, to, "notifications", out->notify_out, in->notify_in, in->untold);
  for (const auto& [channel, state] : in->channels_in) {
    const auto sent = out->channels_out.find(channel);
    if (sent == out->channels_out.end() || verdict_.failed()) continue;
    check_room(from, to, fmt::format("channel {}", channel), sent->second, state, 0);
    const std::uint64_t last = sent->second.taken().messages;
    if (channel < wire::kUserChannelMin || last == 0 || verdict_.failed()) continue;
    const auto told = std::ranges::find(out->acknowledged, channel, &Acknowledged::channel);
    if (told == out->acknowledged.end() || told->number != last) {
      verdict_.fail(from, fmt::format("channel {}: {} has taken {} messages, and {} are acknowledged", channel, to.name,
                                      last, told == out->acknowledged.end() ? 0 : told->number));
    }
  }
}

template <typename Receiver>
void BookJudge::check_room(Life& from, Life& to, std::string_view what, const proto::CreditSender& sender,
                           const Receiver& receiver, std::uint64_t untold) {
  const wire::CreditLimits& taken = sender.taken();
  const wire::CreditLimits came = receiver.received();
  if (taken.messages != came.messages || taken.bytes != came.bytes) {
    return verdict_.fail(from, fmt::format("{}: took room for {} messages ({} bytes) at {}, where {} ({}) came", what,
                                           taken.messages, taken.bytes, to.name, came.messages, came.bytes));
  }
  if (receiver.waiting_messages() != untold) {
    return verdict_.fail(to, fmt::format("{}: all was read, {} of it untold, but {} messages of {} take up room", what,
                                         untold, receiver.waiting_messages(), from.name));
  }
  const wire::CreditLimits& limits = sender.limits();
  if (limits.messages <= taken.messages || limits.bytes < taken.bytes + kMessageMax) {
    verdict_.fail(
        from, fmt::format("{}: all was read, but {} gives no room for a message of {} bytes: {} messages and {} bytes "
                          "of {} and {} are taken",
                          what, to.name, kMessageMax, taken.messages, taken.bytes, limits.messages, limits.bytes));
  }
}

}  // namespace hawser::simulation
