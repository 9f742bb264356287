#pragma once

// Relay: a rank of a sparse world, which has sessions with its neighbours only. It stands between the agent and the
// mailbox: to the agent it is the service, to the mailbox it is what carries. With a neighbour the mailbox talks as in
// any world. With another rank it talks by a session apart (see agent/inner.h), and all that it says there goes in
// frames by way of neighbours. So everything that stands on messages works the same, and a full world has no relay.
//
// Why ranks never wait for one another in a circle: a rank has no more under way to another one than a window, and the
// receiver's mailbox always takes what comes, since its own credit bounds it. So a relay has room for all that can come
// (see RelayQueue): it takes each frame at once, whatever waits for the next neighbour, and gives the credit of that
// hop back. Nobody holds room while it waits for other room. A message that is larger than one piece of the mailbox is
// asked for and granted from end to end; a relay sees its pieces alone.
//
// When a rank is gone (a neighbour has proof of its end), or a link is lost (one of two neighbours hears nothing of the
// other), each rank that hears it first tells all its neighbours, finds new ways, and sends once more what was not
// acknowledged to it. Numbers make that exact: nothing is lost, doubled or overtaken between ranks that live. A rank
// that no way leads to any more has failed for this rank, and so has one that another rank holds for gone. A court
// decides which of two neighbours that lost each other is gone (see link_court.h): what they said over their link has
// no numbers, so it cannot go round.
//
// Each class has all of this for itself: a channel to each neighbour, a queue there, and a window with each rank that
// is no neighbour. So a message keeps its class on every hop, and waits for room of its own class only. The news that a
// rank is gone goes before the frames of every class, for the frames that follow it go by the new ways.
//
// Thread rule: under the lane's lock, but for what says otherwise. Lifetime: the agent's.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/inner.h"
#include "runtime/court_clock.h"
#include "runtime/link_court.h"
#include "runtime/mailbox.h"
#include "runtime/relay_queue.h"
#include "runtime/relay_window.h"
#include "runtime/routes.h"
#include "wire/session.h"

namespace hawser::runtime {

class Relay final : public agent::Service, public agent::Carrier {
 public:
  struct Site {
    std::string world;  ///< Its ranks' agents are called "WORLD.RANK".
    std::uint32_t rank = 0, size = 0;
    Topology topology;                                                                     ///< Checked for the size.
    Duration heartbeat = std::chrono::seconds(1), peer_timeout = std::chrono::seconds(5);  ///< The agent's.
  };

  Relay(agent::Carrier& carrier, Site site);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }
  /// Once the engine has given this service its place in sessions, and before there are any.
  void share_place() { mailbox_->take_place(place()); }

  // Formation: the cards of all ranks go from neighbour to neighbour.
  /// The rank is reached; it is a neighbour. What it said before counts from now on.
  void meet(std::uint32_t rank, const Peer& peer, Instant now);
  void tell_card(std::uint32_t rank, std::string card, Instant now);
  /// Any thread: all cards are here, or will never be (see `broken`).
  bool is_formed() const { return is_formed_.load(std::memory_order_acquire); }
  /// By rank, until the world is entered. Empty: it did not come.
  const std::vector<std::string>& cards() const { return cards_; }
  const Status& broken() const { return broken_; }
  /// All ranks of the world, by their numbers.
  void enter(std::span<const Peer> ranks, Instant now);

  bool is_neighbour(std::uint32_t rank) const { return routes_.is_neighbour(rank); }
  const std::vector<std::uint32_t>& neighbours() const { return routes_.neighbours(); }
  const Routes& routes() const { return routes_; }
  /// It is gone, or no way leads there.
  bool has_failed(std::uint32_t rank) const { return routes_.is_gone(rank) || !routes_.reaches(rank); }
  /// The others hold this rank for failed.
  bool is_excluded() const { return !ended_[site_.rank].ok(); }
  /// Neighbours have lost each other, and it is not decided who of them failed.
  bool is_undecided() const { return !is_excluded() && court_.is_open(); }
  /// Those of them that this rank has lost.
  std::vector<std::uint32_t> lost() const { return court_.lost_with(site_.rank); }
  /// The world consists of these ranks from now on, and its graph is theirs.
  void adopt(std::uint64_t generation, std::span<const std::uint32_t> members, Instant now);

  // The end. A rank relays until all have said that they leave.
  /// Has the others acknowledge what they have not. True: they have all.
  bool drain(Instant now);
  void say_leaving(Instant now);
  /// Any thread: all ranks that live leave.
  bool all_leave() const { return all_leave_.load(std::memory_order_acquire); }
  /// Nothing waits for a neighbour.
  bool is_idle() const;
  /// Frames that were dropped because only a defective rank sends such.
  std::uint64_t dropped() const { return dropped_; }

  // Service.
  void on_closing(const Status& why, Instant now) override { mailbox_->on_closing(why, now); }
  /// Of messages that this rank passes on, or sends by others.
  std::uint64_t held_bytes() const;
  std::span<const agent::OwnChannel> channels() const override;
  Status on_message(agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                    Instant now) override;
  void on_control(agent::Session& session) override { mailbox_->on_control(session); }
  bool pump(agent::Session& session, std::size_t* work) override;
  void end(agent::Session& session, const Status& status) override;
  bool awaits(const agent::Session& session) const override { return mailbox_->awaits(session); }
  std::size_t left(const agent::Session& session) const override;
  std::string_view name() const override { return "messages"; }
  Instant next_deadline() const override { return mailbox_->next_deadline(); }
  std::size_t expire(Instant now) override { return mailbox_->expire(now); }
  void describe(const agent::Visitor& visitor) const override;
  void disown_after_fork() override { mailbox_->disown_after_fork(); }

  // Carrier, for the mailbox.
  agent::Sent carry(agent::Session& session, std::uint32_t channel, std::span<const std::byte> head,
                    std::span<const std::byte> body) override;
  void release_message(agent::Session& session, std::uint32_t channel, std::size_t bytes) override;
  void serve(agent::Session& session, Instant now) override;
  agent::Session* session_with(const Peer& peer, Status* why) override;
  bool has_path(agent::Session& session) const override;
  bool can_fetch(agent::Session& session) const override;
  Result<std::unique_ptr<backend::View>> view(agent::Session& session,
                                              const std::shared_ptr<const agent::RemoteRegion>& region) override;
  bool fetch(agent::Session& session, std::uint64_t address, std::span<std::byte> into) override;
  Instant now() const override { return carrier_.now(); }
  void note_deadline() override { carrier_.note_deadline(); }
  void note_end() override { carrier_.note_end(); }

 private:
  /// A rank that was no neighbour when the world was opened. It stays one of these if a shrink makes it a neighbour:
  /// its messages go in frames on.
  struct Far {
    std::uint32_t rank = 0;
    std::array<RelayWindow, wire::kClasses> windows;
    std::shared_ptr<agent::Session> session;  ///< Apart. Null before the world is entered.
    /// What came before that. The windows bound it.
    std::deque<std::pair<Priority, std::string>> early;
    bool wants_pump = false;
    /// The number of the last piece that an acknowledgement was asked for.
    std::array<std::uint64_t, wire::kClasses> asked = {};

    RelayWindow& window(Priority priority) { return windows[wire::index_of(priority)]; }
    bool is_acknowledged() const {
      return std::ranges::all_of(windows, [](const RelayWindow& each) { return each.unacknowledged().empty(); });
    }
  };
  /// A rank that is a neighbour, or was one before a shrink.
  struct Neighbour {
    Peer peer;
    bool is_met = false, is_lost = false;
    std::array<RelayQueue, wire::kClasses> queues;

    RelayQueue& queue(Priority priority) { return queues[wire::index_of(priority)]; }
    std::size_t waiting() const {
      std::size_t count = 0;
      for (const RelayQueue& each : queues) count += each.size();
      return count;
    }
  };

  struct Held {
    std::uint32_t channel = 0;
    std::string bytes;
  };

  Far* far_of(const agent::Session& session) const;
  /// kNoRank: it is no rank's, or of another incarnation, one of a dead run maybe.
  std::uint32_t rank_of(const agent::Session& session) const;
  void hold(const agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes);
  void hear_held(std::uint32_t rank, const Peer& peer, Instant now);
  std::string name_of(std::uint32_t rank) const { return site_.world + "." + std::to_string(rank); }
  void note_peer(std::uint32_t rank, const Peer& peer);
  void serve_link(Neighbour& link, Instant now);
  void serve_links(Instant now);
  bool drain_queue(agent::Session& session, Neighbour& link, Priority priority, std::size_t* work);
  void tell_all(const wire::RelayMessage& message, const std::shared_ptr<const std::string>& body, Instant now);

  Status hear(std::uint32_t by, Priority priority, const wire::RelayMessage& message, Instant now);
  Status on_frame(Priority priority, const wire::RelayMessage& message, Instant now);
  void on_gone(std::uint32_t by, std::uint32_t rank, Instant now);
  void on_leaving(std::uint32_t rank, Instant now);
  Status on_graph(const wire::RelayMessage& message, Instant now);

  void send_frame(Priority priority, wire::RelayMessage message, std::shared_ptr<const std::string> piece, Instant now);
  void send_piece(Far& far, Priority priority, const RelayWindow::Piece& piece, Instant now);
  void send_acknowledgement(Far& far, Priority priority, bool asks_at_once, Instant now);
  Status deliver(Far& far, Priority priority, const wire::RelayMessage& message, Instant now);
  Status receive(Far& far, Priority priority, Instant now);
  void want_pump(Far& far, Instant now);

  void lose(std::uint32_t rank, const Status& why, Instant now);
  void on_lost(std::uint32_t by, std::uint32_t from, std::uint32_t to, Instant now);
  bool lose_link(std::uint32_t from, std::uint32_t to, Instant now);
  void go_round(Instant now);
  void convict(std::uint32_t rank, Instant now);
  void look_at_court();
  void watch_court();
  void exclude_self(const Status& why, Instant now);
  void end_rank(std::uint32_t rank, const Status& why);
  void end_unreachable();
  void send_again(Instant now);
  void look_at_formation();
  void look_at_leaving();

  agent::Carrier& carrier_;
  const Site site_;
  std::shared_ptr<Mailbox> mailbox_;
  Routes routes_;
  std::vector<Peer> peers_;                                   ///< By rank, once they are known.
  std::unordered_map<const void*, std::uint32_t> by_source_;  ///< Ranks.
  /// Before the world is entered: what peers say that are not known to be ranks yet. Their credit bounds it.
  std::unordered_map<const void*, std::deque<Held>> held_;
  std::map<std::uint32_t, Neighbour> links_;                    ///< By rank.
  std::map<std::uint32_t, std::unique_ptr<Far>> far_;           ///< By rank.
  std::unordered_map<const agent::Session*, Far*> by_session_;  ///< The sessions apart.
  std::vector<std::uint32_t> wanting_;                          ///< Far ones to be pumped.
  std::vector<Status> ended_;                                   ///< By rank: why nothing can be said to it any more.
  std::vector<bool> has_told_;                                  ///< By rank: the worlds know that it has failed.
  LinkCourt court_;
  CourtClock clock_;
  bool was_undecided_ = false;
  Status broken_;
  std::vector<std::string> cards_;  ///< By rank, until the world is entered.
  std::vector<agent::OwnChannel> channels_;
  bool is_entered_ = false;
  std::set<std::uint32_t> leaving_, left_out_;
  std::uint64_t dropped_ = 0;
  std::atomic<bool> is_formed_{false}, all_leave_{false};
};

}  // namespace hawser::runtime
