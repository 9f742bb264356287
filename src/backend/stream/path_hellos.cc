#include "backend/stream/path_hellos.h"

#include "backend/hello_identity.h"
#include "backend/stream/cover.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::stream {
namespace {

Status restarted(const std::string& name, const wire::Hello& hello) {
  return Status(Code::kDisconnected,
                base::format("{} restarted: another incarnation of {} answers where it was", name, hello.name))
      .with_scope(Scope::kPeer)
      .with_advice("fetch the peer's new card and plan again");
}

}  // namespace

Status PathHellos::turn(Handshake& shake, unsigned index, Instant deadline, Instant now) {
  is_doubted_ = false;
  if (uses_.context.authenticator != nullptr) uses_.context.authenticator->look(now);
  const bool speaks = !shake.has_spoken() && shake.stream().state() == StreamState::kOpen;
  if (speaks) HAWSER_TRY(shake.ask(our_hello(index), uses_.terms.known, is_open(), uses_.network));
  const bool had_heard = shake.heard();
  const Status moved = shake.turn();
  if (!moved.ok()) return shake.is_identity_doubted() ? doubt(moved) : moved;
  if (!uses_.terms.is_inbound && shake.heard() && !had_heard) HAWSER_TRY(judge_answer(shake));
  if (is_through(shake) || now < deadline) return Status();
  return Status(Code::kTimedOut, base::format("no answer from {} ({})", uses_.name, shake.stream().describe()));
}

bool PathHellos::is_through(const Handshake& shake) const {
  return shake.heard() && shake.said() && (uses_.terms.is_inbound || shake.is_let_in());
}

wire::Hello PathHellos::our_hello(unsigned index) const {
  const Identity& us = uses_.context.identity;
  wire::Hello hello = hello_of(us);
  hello.security = level_of(uses_.context.security);
  hello.stream = static_cast<std::uint8_t>(index);
  hello.streams = static_cast<std::uint8_t>(uses_.terms.streams);
  hello.session = uses_.terms.session;
  hello.born = us.born;
  hello.listen = uses_.options.listen;
  hello.token = uses_.terms.token;
  hello.expects = uses_.terms.expects;
  if (index == 0) hello.supersedes = uses_.terms.supersedes;
  return hello;
}

bool PathHellos::is_the_peer(const wire::Hello& hello) const {
  if (!uses_.terms.expects.is_zero()) {
    return hello.incarnation == uses_.terms.expects || base::planted(base::Planted::kStaleIncarnation);
  }
  return uses_.peer.name.empty() || hello.name == uses_.peer.name;
}

Status PathHellos::check_answer(const wire::Hello& hello) const {
  const auto turned_away = [&] {
    return Status(hello.status, base::format("{} turned us away: {}", uses_.name, base::shown(hello.reason)));
  };
  if (hello.status != Code::kOk && hello.incarnation.is_zero()) {  // In clear it names nobody.
    return turned_away().with_advice("give its address with its ticket (ADDRESS#TICKET), or load its card");
  }
  if (!is_the_peer(hello)) {
    if (hello.name == uses_.peer.name) return restarted(uses_.name, hello);
    return Status(Code::kDisconnected, base::format("another agent answers there, '{}'", base::shown(hello.name)));
  }
  if (hello.status != Code::kOk) return turned_away();
  if (hello.session != uses_.terms.session)
    return Status(Code::kCorrupt, base::format("{} answered for another session", uses_.name));
  return Status();
}

/// A refusal proves nothing: one that a stranger on the peer's port may have said says nothing of the peer, which may
/// live elsewhere. So it is a place that leads to somebody else.
Status PathHellos::judge_answer(Handshake& shake) {
  Status status = shake.misfit();
  if (status.ok()) status = check_answer(shake.hello());
  if (status.ok()) status = check_cover(shake.hello(), shake.stream(), uses_.context.security);
  if (!status.ok() && (is_open() || shake.is_refusal_believable())) return status;
  if (status.ok()) status = shake.on_answer(is_open(), uses_.network);
  return status.ok() ? status : doubt(status);
}

Status PathHellos::doubt(const Status& why) {
  is_doubted_ = true;
  // Only who looked for whatever listens there is told that it may not come in.
  return Status(uses_.terms.expects.is_zero() ? Code::kDenied : Code::kDisconnected,
                base::format("who answers where {} should be is not proven to be it", uses_.name))
      .with_scope(Scope::kPath)
      .with_advice(
          uses_.context.authenticator != nullptr
              ? "this agent has an identity, and lets in only those who show one by its authority"
              : "run both agents as one user, give this agent the peer's card, or, where everybody who can connect may "
                "have every key, open both with security `none`")
      .because(why);
}

}  // namespace hawser::backend::stream
