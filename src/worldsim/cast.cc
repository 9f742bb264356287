#include "worldsim/cast.h"

#include <array>

#include <fmt/format.h>

namespace hawser::worldsim {

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, 8> kNames = {"entering",   "acting",  "agreeing", "shrinking",
                                                      "recovering", "leaving", "closing",  "out"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view to_string(Priority priority) {
  constexpr std::array<std::string_view, 3> kNames = {"critical", "realtime", "bulk"};
  return kNames[static_cast<std::size_t>(priority)];
}

Part& part_of(const Deed& deed) { return deed.realm->parts[deed.rank]; }

std::string describe(const Deed& deed) {
  const std::string at = fmt::format("rank {} of realm {}", deed.rank, deed.realm->uid);
  switch (deed.kind) {
    case DeedKind::kCollective:
      return fmt::format("{}: number {}, {}{}", at, deed.number, describe(deed.act),
                         deed.is_misfit ? " (not what the others call)" : "");
    case DeedKind::kSend:
      return fmt::format("{}: send of {} letter {} of {} bytes to {} by tag {}", at, to_string(deed.letter.priority),
                         deed.letter.number, deed.letter.size, deed.letter.to, deed.letter.tag);
    case DeedKind::kReceive:
      return fmt::format("{}: receive {} from {} by tag {}", at, deed.posted,
                         deed.source ? std::to_string(*deed.source) : "any",
                         deed.tag ? std::to_string(*deed.tag) : "any");
    case DeedKind::kCall:
      return fmt::format("{}: call {} of '{}' at {}", at, deed.remote->uid, deed.handler, deed.remote->to);
    case DeedKind::kAgree:
      return fmt::format("{}: agree", at);
    case DeedKind::kShrink:
      return fmt::format("{}: shrink", at);
  }
  return at;
}

std::string describe(const Actor& actor) {
  std::string text = fmt::format("{} {}{}", actor.name, to_string(actor.phase), actor.is_alive ? "" : ", dead");
  for (const Deed* deed : actor.pending) text += fmt::format("; waits for {}", describe(*deed));
  return text;
}

}  // namespace hawser::worldsim
