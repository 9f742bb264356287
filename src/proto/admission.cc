#include "proto/admission.h"

#include <array>
#include <string_view>

namespace hawser::proto {
namespace {

using base::FarEnd;
using enum wire::Admission;

bool is_local(const AdmissionFacts& facts) { return facts.far_end != FarEnd::kElsewhere; }

/// A cookie proves less than the kernel, which knows who relays: where it says that this is another user, it is.
bool may_share_cookie(const AdmissionFacts& facts) {
  return facts.far_end == FarEnd::kCannotAsk || facts.far_end == FarEnd::kSameUser;
}

}  // namespace

wire::Admission ask(const AdmissionFacts& opener) {
  if (opener.has_identity && opener.is_covered && opener.far_end != FarEnd::kSameUser) return kIdentity;
  if (opener.has_secret) return kCard;
  if (is_local(opener)) return opener.far_end == FarEnd::kCannotAsk ? kCookie : kUser;
  return opener.is_open || opener.is_proven ? kNone : kNotSaid;
}

wire::Admission admit(wire::Admission asked, const AdmissionFacts& acceptor) {
  if (asked == kIdentity) return acceptor.has_identity && acceptor.is_covered ? kIdentity : kNotSaid;
  if (acceptor.has_identity && acceptor.far_end != FarEnd::kSameUser) return kNotSaid;
  switch (asked) {
    case kCard:
      return acceptor.has_secret ? kCard : kNotSaid;
    case kUser:
      if (acceptor.far_end == FarEnd::kSameUser) return kUser;
      if (acceptor.is_open) return kNone;
      return acceptor.far_end == FarEnd::kCannotAsk ? kCookie : kNotSaid;
    case kCookie:
      if (acceptor.is_open) return kNone;
      return may_share_cookie(acceptor) ? kCookie : kNotSaid;
    case kNone:
      return acceptor.is_open ? kNone : kNotSaid;
    case kIdentity:
    case kNotSaid:
      break;
  }
  return kNotSaid;
}

AdmissionStep answered(wire::Admission asked, wire::Admission answer, const AdmissionFacts& opener) {
  if ((asked == kIdentity) != (answer == kIdentity)) return AdmissionStep::kRefuse;
  switch (answer) {
    case kCard:
      return asked == kCard ? AdmissionStep::kProve : AdmissionStep::kRefuse;
    case kUser:
      if (asked != kUser) return AdmissionStep::kRefuse;
      return opener.far_end == FarEnd::kSameUser || opener.is_open ? AdmissionStep::kGo : AdmissionStep::kRefuse;
    case kCookie:
      if (asked != kUser && asked != kCookie) return AdmissionStep::kRefuse;
      return may_share_cookie(opener) ? AdmissionStep::kProve : AdmissionStep::kRefuse;
    case kNone:
      return asked != kCard && (opener.is_open || opener.is_proven) ? AdmissionStep::kGo : AdmissionStep::kRefuse;
    case kIdentity:
      return AdmissionStep::kProve;
    case kNotSaid:
      break;
  }
  return AdmissionStep::kRefuse;
}

AdmissionStep admitted(wire::Admission answer) {
  if (answer == kNotSaid) return AdmissionStep::kRefuse;
  return answer == kUser || answer == kNone ? AdmissionStep::kGo : AdmissionStep::kProve;
}

std::string why_not(wire::Admission asked, const AdmissionFacts& acceptor) {
  if (asked == kIdentity && acceptor.has_identity) return "an identity is shown over TLS only";
  if (asked == kIdentity) {
    return "this agent has no identity to show in return; set HAWSER_IDENTITY there, or unset it at the opener";
  }
  if (acceptor.has_identity && acceptor.far_end != FarEnd::kSameUser) {
    return "this agent lets in those only who show an identity by its authority; set HAWSER_IDENTITY there";
  }
  switch (asked) {
    case kCard:
      return "no secret is in this agent's card: it was opened with security `none`";
    case kUser:
    case kCookie:
      if (acceptor.far_end == FarEnd::kElsewhere) return "the connection does not come over loopback";
      if (acceptor.far_end == FarEnd::kNobody) return "no process holds the connection's other end";
      return "the connection comes from another user; give it this agent's card or ticket";
    case kNone:
      return "it proves nothing; give it this agent's card or ticket, or open both with security `none`";
    case kIdentity:
    case kNotSaid:
      break;
  }
  return "it does not say how it proves itself";
}

namespace {

constexpr std::string_view name_of(wire::Admission admission) {
  constexpr std::array<std::string_view, 6> kNames = {"-", "card", "user", "none", "cookie", "identity"};
  return kNames[static_cast<std::size_t>(admission)];
}

constexpr std::string_view name_of(AdmissionStep step) {
  constexpr std::array<std::string_view, 3> kNames = {"refuse", "go", "prove"};
  return kNames[static_cast<std::size_t>(step)];
}

constexpr std::string_view name_of(FarEnd end) {
  constexpr std::array<std::string_view, 5> kNames = {"elsewhere", "same user", "other user", "nobody", "cannot ask"};
  return kNames[static_cast<std::size_t>(end)];
}

void add(std::string& line, std::string_view cell, std::size_t width = 12) {
  line.append(cell).append(cell.size() < width ? width - cell.size() : 1, ' ');
}

template <typename Cells>
void add_line(std::string& text, std::string_view what, const AdmissionFacts& facts, Cells&& cells) {
  std::string line;
  add(line, what, 7);
  add(line, name_of(facts.far_end));
  add(line, facts.has_secret ? "secret" : "", 7);
  add(line, facts.is_open ? "open" : facts.is_proven ? "key" : "", 5);
  if (facts.has_identity) add(line, facts.is_covered ? "identity, tls" : "identity, clear", 16);
  cells(line);
  text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string admission_table() {
  constexpr std::array kAll = {kNotSaid, kCard, kUser, kNone, kCookie, kIdentity};
  std::string text;
  for (int i = 0; i < 30; ++i) {
    const AdmissionFacts facts = {.far_end = static_cast<FarEnd>(i / 6),
                                  .has_secret = i % 2 != 0,
                                  .is_open = i / 2 % 3 == 1,
                                  .is_proven = i / 2 % 3 == 2};
    add_line(text, "", facts, [&](std::string& line) {
      add(line, name_of(ask(facts)), 9);
      for (const wire::Admission asked : kAll) add(line, name_of(admit(asked, facts)), 7);
    });
  }
  for (int i = 0; i < 20; ++i) {
    const AdmissionFacts facts = {.far_end = static_cast<FarEnd>(i / 4),
                                  .has_secret = i % 2 != 0,
                                  .has_identity = true,
                                  .is_covered = i / 2 % 2 != 0};
    add_line(text, "", facts, [&](std::string& line) {
      add(line, name_of(ask(facts)), 9);
      for (const wire::Admission asked : kAll) add(line, name_of(admit(asked, facts)), 9);
    });
  }
  for (const wire::Admission asked : {kCard, kUser, kNone, kCookie, kIdentity}) {
    for (int i = 0; i < 15; ++i) {
      const AdmissionFacts facts = {
          .far_end = static_cast<FarEnd>(i / 3), .is_open = i % 3 == 1, .is_proven = i % 3 == 2};
      add_line(text, name_of(asked), facts, [&](std::string& line) {
        for (const wire::Admission answer : kAll) add(line, name_of(answered(asked, answer, facts)), 7);
      });
    }
  }
  return text;
}

}  // namespace hawser::proto
