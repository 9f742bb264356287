#include "agent/engine/session_table.h"

#include <algorithm>

namespace hawser::agent {
namespace {

constexpr Duration kBlockedPause = std::chrono::milliseconds(1);  ///< A full ring of a peer has no bell for room.

}  // namespace

Session& SessionTable::make(const std::shared_ptr<PeerCore>& peer) {
  peer->use().session = std::make_unique<Session>(peer, notify_, inbox_, services_.places());
  Session& session = *peer->session();
  session.number = rng_.u64() | 1;
  all_.push_back(&session);
  // For who looks once more at what was planned, or whose submission is refused.
  if (peer->state.load(std::memory_order_relaxed) == PeerState::kDown) retire(session);
  channels_.give_all(session);
  return session;
}

void SessionTable::block(Session& session, Instant now) {
  if (std::exchange(session.in_blocked_list, true)) return;
  blocked_.push_back(&session);
  blocked_until_ = std::min(blocked_until_, now + kBlockedPause);
}

void SessionTable::unblock(bool has_moved, Instant now) {
  if (blocked_.empty() || (!has_moved && now < blocked_until_)) return;
  for (Session* session : blocked_) {
    session->in_blocked_list = false;
    enlist(*session);
  }
  blocked_.clear();
  blocked_until_ = Instant::max();
}

void SessionTable::retire(Session& session) {
  // One that was made for a peer that was down already goes down itself, too.
  if (std::ranges::find(retired_, &session) == retired_.end()) retired_.push_back(&session);
}

std::vector<Session*> SessionTable::take_quiet() {
  std::vector<Session*> quiet;
  std::erase_if(retired_, [&](Session* session) {
    if (session->slots > 0 || !session->paths.empty()) return false;
    quiet.push_back(session);
    return true;
  });
  for (Session* session : quiet) {
    std::erase(all_, session);
    std::erase(work_, session);
    std::erase(blocked_, session);
  }
  if (blocked_.empty()) blocked_until_ = Instant::max();  // Or a lane without work would look for it for ever.
  return quiet;
}

std::vector<Session*> SessionTable::take_all() {
  work_.clear();
  blocked_.clear();
  blocked_until_ = Instant::max();
  retired_.clear();
  return std::exchange(all_, {});
}

}  // namespace hawser::agent
