#pragma once

// Mailbox: the messages of the ranks that live in one agent, as a service of it.
//
// A message of up to kEagerMax goes out at once, as long as the receiver keeps less than kEagerWindow of this sender's
// that nobody wants yet; a larger one, or one beyond that, is asked for: the receiver keeps its envelope, and grants it
// a place once somebody wants it, whose buffer its bytes then go into as they come. Where the sender's memory can be
// read from here (two processes of one user on one host), the receiver copies it instead, and has the message once the
// sender has said that it was there all the time. So no message waits behind bytes
// that nobody wants, and a stranger can make nobody keep more than that window of each class and kAsksMax envelopes.
//
// Classes: a message goes on the channel of its class, with that channel's credit and an eager window of the class, so
// one class never waits for the credit of another one. On its channel a class is in order, and the matcher keeps what
// comes in the order in which it came: messages of one source, tag and class do not overtake one another. Parts of
// critical messages go on the critical channel, all others on the bulk one, those of realtime messages first: they hold
// back no word and no collective. Classes overtake one another, in a relay also on its way. So a word that must not
// overtake anything that was said before (left, checked) is said in each class, and counts once all of them brought it.
//
// Thread rule: under the lane's lock.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/inner.h"
#include "base/inside.h"
#include "runtime/landings.h"
#include "runtime/lane_jobs.h"
#include "runtime/mail_desk.h"
#include "runtime/matcher.h"
#include "runtime/outbox.h"
#include "runtime/recorders.h"
#include "runtime/watchers.h"
#include "wire/session.h"

namespace hawser::runtime {

inline constexpr std::size_t kAsksMax = 65'536;                         ///< Of one sender, not granted yet.
inline constexpr std::uint64_t kOwnBufferMax = std::uint64_t{1} << 30;  ///< Made for a receive without a buffer.
inline constexpr std::size_t kOperationsMax = std::size_t{1} << 20;     ///< Sends and receives of one rank under way.
inline constexpr std::size_t kWordsMax = 4096;                          ///< For one peer, not sent yet.
inline constexpr std::size_t kChecksMax = 256;                          ///< Words that wait; no more questions then.
inline constexpr std::uint32_t kMailboxWindow = 256;                    ///< Messages of one peer on their way to here.

/// Of a peer: compares equal for handles of one incarnation.
inline const void* source_of(const Peer& peer) { return core_of(peer).get(); }

class Mailbox final : public agent::Service {
 public:
  explicit Mailbox(agent::Carrier& carrier);
  ~Mailbox();

  /// Begins it. What cannot be done ends it at once, with the reason.
  void start(Send& send, Instant deadline, Instant now);
  void start(Receive& receive, Instant deadline, Instant now);
  /// Instant::max(): none. One of several messages is told by its listener, the others are stopped.
  void set_deadline(Operation& operation, Instant deadline);
  void clear_deadline(Operation& operation) { deadlines_.clear(operation); }
  /// Ends it with `status`, unless it is over. Nothing touches its buffer afterwards.
  void stop(Operation& operation, const Status& status, Instant now);
  /// The oldest message that fits, without taking it. Null: none is here yet.
  const Arrived* probe(const Pattern& pattern) { return matcher_.find(pattern); }
  /// Lets go of the oldest message that fits, and tells whose it was. False: none is here. The sender of one that was
  /// asked for is not told.
  bool discard(const Pattern& pattern, Peer* from, wire::MessageEnvelope* envelope);
  /// A message of this collective by another digest, which nobody wants. Null: there is none.
  const Arrived* find_misfit(std::uint64_t world, std::uint64_t number, std::uint64_t digest) {
    return matcher_.find_misfit(world, number, digest);
  }
  /// A message of this collective, which nobody wants. Null: there is none.
  const Arrived* find_any(std::uint64_t world, std::uint64_t number) {
    return matcher_.find_misfit(world, number, std::nullopt);
  }
  /// Messages that are kept for worlds which are closed, or not entered yet.
  std::size_t kept_without_world() {
    std::size_t count = 0;
    matcher_.for_each_kept([&](Arrived& one) { count += watchers_.find(one.envelope.world) == nullptr ? 1U : 0U; });
    return count;
  }
  /// Counts messages that nobody wanted when they came. Any thread.
  std::uint64_t kept_so_far() const { return kept_so_far_.load(std::memory_order_acquire); }
  /// Says that to the peer, before what waits to be sent. Best effort: a peer that does not hear it finds out alone.
  void tell(const Peer& peer, Word word, Instant now);
  /// The same, unless kChecksMax words wait for the peer: it reads nothing. For questions, which are asked again later,
  /// and for answers to them.
  void tell_if_room(const Peer& peer, Word word, Instant now);
  /// What belongs to this world and nobody wants is let go of.
  void forget_world(std::uint64_t world);
  /// Ends the user's receives of this world that wait for any source, or all that wait.
  void stop_any(std::uint64_t world, const Status& status);
  void stop_all(std::uint64_t world, const Status& status);
  /// Ends the receives of this world into which a message of these ranks is on its way.
  void stop_landing(std::uint64_t world, std::span<const Peer> ranks, const Status& status, Instant now);
  /// Ends the user's sends of this world to these ranks that have not come through. They are told.
  void stop_sends(std::uint64_t world, std::span<const Peer> ranks, const Status& status, Instant now) {
    for (const Peer& to : ranks) {
      for (Send* const send : sends_of(world, to)) stop(*send, status, now);
    }
  }
  /// Ends the receives of this world that wait for this rank.
  void stop_from(std::uint64_t world, const Peer& rank, const Status& status);

  /// Tells it of this world, first what these said of it before.
  void add_watcher(std::uint64_t world, Watcher& watcher, std::span<const Peer> ranks);
  /// What still comes for this world is dropped. False: it was removed before.
  bool remove_watcher(std::uint64_t world) { return watchers_.remove(world); }
  /// See Watchers::add_past.
  void add_past(std::uint64_t world, Watcher& watcher) { watchers_.add_past(world, watcher); }
  void remove_past(std::uint64_t world) { watchers_.remove_past(world); }
  /// Tells all worlds that the peer has failed, whatever there still is with it. Of this rank itself it means that the
  /// others hold it for failed.
  void tell_down(const Peer& peer, const Status& why) {
    watchers_.tell_down(peer, why);
    run_jobs(carrier_.now());
  }
  /// Tells all worlds.
  void tell_decided() {
    watchers_.tell_decided(carrier_.now());
    run_jobs(carrier_.now());
  }
  /// From now on the session is pumped, though there is nothing to say yet.
  void attend(agent::Session& session) { desk_of(session); }
  /// All that was to be said to the peer has been given to its carrier, but for messages that it has not wanted yet.
  bool is_silent(const agent::Session& session) const {
    const MailDesk* const desk = known_desk(session);
    return desk == nullptr || desk->is_silent();
  }
  /// All worlds end.
  void close_all(Instant now) { watchers_.close_all(now); }
  /// See Watchers.
  void for_family(std::uint64_t family, const std::function<void(Watcher&)>& visit) const {
    watchers_.for_family(family, visit);
  }
  bool has_known(std::uint64_t world) const { return watchers_.has_known(world); }
  /// Bytes that came for worlds of that family, and that nobody has received yet.
  std::uint64_t unreceived(std::uint64_t family);
  /// Runs `job` before the lane is given up: ends of operations begin others by it.
  void run_soon(LaneJobs::Job job) { jobs_.run_soon(std::move(job)); }
  /// False: there were none.
  bool run_jobs(Instant now) { return jobs_.run(now); }
  /// The same in the next turn: what takes long does a part of it in each.
  void run_later(LaneJobs::Job job) {
    jobs_.run_later(std::move(job));
    carrier_.note_deadline();
  }
  /// It looks in each turn from now on, until it has asked the others to ring. Not twice at once.
  void watch(Lookout& lookout) {
    jobs_.watch(lookout);
    carrier_.note_deadline();
  }
  void unwatch(Lookout& lookout) { jobs_.unwatch(lookout); }
  /// See Path::view.
  Result<std::unique_ptr<backend::View>> view(const Peer& peer,
                                              const std::shared_ptr<const agent::RemoteRegion>& region) {
    Status why;
    agent::Session* const session = carrier_.session_with(peer, &why);
    if (session == nullptr) return why;
    return carrier_.view(*session, region);
  }
  void note_end() { carrier_.note_end(); }
  Instant now() const { return carrier_.now(); }
  /// The flight recorders of the worlds that live here.
  Recorders& recorders() { return recorders_; }

  std::span<const agent::OwnChannel> channels() const override;
  Status on_message(agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                    Instant now) override;
  void on_control(agent::Session&) override {}
  void on_written(agent::Session& session, std::uint64_t id, std::uint64_t bytes, const Status& status) override;
  bool pump(agent::Session& session, std::size_t* work) override;
  void end(agent::Session& session, const Status& status) override;
  void on_closing(const Status& why, Instant now) override;
  bool awaits(const agent::Session& session) const override;
  std::size_t left(const agent::Session& session) const override;
  std::string_view name() const override { return "messages"; }
  Instant next_deadline() const override { return jobs_.wants_turn() ? Instant() : deadlines_.next(); }
  bool prepare_sleep() override { return jobs_.prepare_sleep(); }
  std::size_t expire(Instant now) override;
  void describe(const agent::Visitor& visitor) const override;
  void disown_after_fork() override { recorders_.disown_after_fork(); }

 private:
  using Deadlines = base::TimerHeap<Operation, &Operation::alarm>;
  MailDesk& desk_of(agent::Session& session);
  MailDesk* known_desk(const agent::Session& session) const {
    return static_cast<MailDesk*>(agent::inner::tenancy(session, *this));
  }
  MailDesk* known_desk(const Peer& peer);

  bool admit(Operation& operation);
  void end_one(Operation& operation, Status status);
  bool goes_at_once(agent::Session& session, MailDesk& desk, Send& send);
  void send_to_self(Send& send);
  std::vector<Send*> sends_of(std::uint64_t world, const Peer& to);
  void keep(std::unique_ptr<Arrived> arrived);
  void look_for_misfit(const Arrived& kept);
  /// Whether the message may go into the receive; else the receive has ended with the reason.
  bool accepts(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from);
  static Status make_buffer(Receive& receive, std::uint64_t bytes);
  bool makes_buffer(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from);
  /// Takes the oldest receive that the message may go into.
  Receive* receive_for(const wire::MessageEnvelope& envelope, const Peer& from);
  void prepare(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from);
  void take_kept(Receive& receive, Arrived& arrived, Instant now);
  void drop_kept(Arrived& arrived);

  Status on_eager(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now);
  Status on_ask(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now);
  Status on_gone(agent::Session& session, const wire::RuntimeMessage& message);
  Status handle(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now);
  Status on_freed(agent::Session& session, const wire::RuntimeMessage& message);
  Status on_last_word(agent::Session& session, Priority priority, const wire::RuntimeMessage& message);
  void on_check(agent::Session& session, const wire::RuntimeMessage& message, Instant now);

  agent::Carrier& carrier_;
  Recorders recorders_;
  Matcher matcher_;
  Deadlines deadlines_;
  Watchers watchers_;
  LaneJobs jobs_;
  Landings landings_;
  Outbox outbox_;
  std::size_t under_way_ = 0;       ///< Sends and receives.
  std::size_t own_kept_bytes_ = 0;  ///< Copies of messages to this rank itself that wait unwanted.
  std::atomic<std::uint64_t> kept_so_far_{0};
};

}  // namespace hawser::runtime
