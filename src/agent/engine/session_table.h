#pragma once

// SessionTable: all sessions of an agent, and which of them are to be looked at: those with work, those that found no
// room, those that are over.
//
// Thread rule: confined to the lane. Lifetime: a session is owned by its peer, and so are its lists' entries: whoever
// destroys one takes it out here first (`take_quiet`, `take_all`).

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "agent/engine/channel_book.h"
#include "agent/engine/service_table.h"
#include "agent/inbox.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/rng.h"
#include "proto/notify_credit.h"

namespace hawser::agent {

class SessionTable {
 public:
  SessionTable(const proto::NotifyLimits& notify, Inbox& inbox, base::Rng& rng, const ServiceTable& services,
               const ChannelBook& channels)
      : notify_(notify), inbox_(inbox), rng_(rng), services_(services), channels_(channels) {}

  /// Made at first use.
  Session& of(const std::shared_ptr<PeerCore>& peer) {
    return peer->session() != nullptr ? *peer->session() : make(peer);
  }
  const std::vector<Session*>& all() const { return all_; }

  // Work.
  /// It is looked at in the next turn.
  void enlist(Session& session) {
    if (std::exchange(session.in_work_list, true)) return;
    work_.push_back(&session);
  }
  bool has_work() const { return !work_.empty(); }
  /// A path of it had no room: it is looked at again once something moved, or after a pause.
  void block(Session& session, Instant now);
  bool has_blocked() const { return !blocked_.empty(); }
  Instant blocked_until() const { return blocked_until_; }
  /// Something moved, or `now` says that the pause is over.
  void unblock(bool has_moved, Instant now);
  /// Calls `serve(session)` for each that has work. What one leaves over puts it into the list again, for the next
  /// turn.
  template <typename Serve>
  void serve_all(Serve&& serve) {
    if (work_.empty()) return;
    std::vector<Session*> round;
    round.swap(work_);
    for (Session* session : round) {
      session->in_work_list = false;
      serve(*session);
    }
    if (!work_.empty()) return;
    round.clear();
    work_.swap(round);  // Keeps the room.
  }

  // Ends.
  /// The session is over; it goes as soon as nothing of it is left.
  void retire(Session& session);
  bool has_retired() const { return !retired_.empty(); }
  /// Takes those out of which neither a transfer nor a path is left.
  std::vector<Session*> take_quiet();
  std::vector<Session*> take_all();

  /// The agent closes: nothing begins any more.
  void begin_close() { is_closing_ = true; }
  bool is_closing() const { return is_closing_; }

 private:
  Session& make(const std::shared_ptr<PeerCore>& peer);

  const proto::NotifyLimits notify_;
  Inbox& inbox_;
  base::Rng& rng_;
  const ServiceTable& services_;
  const ChannelBook& channels_;
  std::vector<Session*> all_;
  std::vector<Session*> work_;
  std::vector<Session*> blocked_;
  Instant blocked_until_ = Instant::max();
  std::vector<Session*> retired_;
  bool is_closing_ = false;
};

}  // namespace hawser::agent
