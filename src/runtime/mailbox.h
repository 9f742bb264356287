#pragma once

// Mailbox: the messages of the ranks that live in one agent, as a service of it.
//
// A message of up to kEagerMax goes out at once, as long as the receiver keeps less than kEagerWindow of this sender's
// that nobody wants yet; a larger one, or one beyond that, is asked for: the receiver keeps its envelope, and grants it
// a place once somebody wants it, whose buffer its bytes then go into as they come. Where the sender's memory can be
// read from here (two processes of one user on one host), the receiver copies it instead, and has the message once the
// sender has said that it was there all the time. So no message waits behind bytes
// that nobody wants, and a stranger can make nobody keep more than that window and kAsksMax envelopes.
//
// Thread rule: under the lane's lock.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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
#include "runtime/closed_worlds.h"
#include "runtime/matcher.h"
#include "runtime/recorder.h"

namespace hawser::runtime {

inline constexpr std::size_t kEagerMax = wire::kRuntimeBodyMax;
inline constexpr std::size_t kEagerWindow = std::size_t{4} << 20;       ///< Bytes of one sender that wait unwanted.
inline constexpr std::size_t kEagerMessages = 16'384;                   ///< The same as a number.
inline constexpr std::size_t kAsksMax = 65'536;                         ///< Of one sender, not granted yet.
inline constexpr std::uint64_t kOwnBufferMax = std::uint64_t{1} << 30;  ///< Made for a receive without a buffer.
inline constexpr std::size_t kOperationsMax = std::size_t{1} << 20;     ///< Sends and receives of one rank under way.
inline constexpr std::size_t kFetchPart = 256 * 1024;                   ///< Read of one message in one go.
inline constexpr std::size_t kWordsMax = 4096;                          ///< For one peer, not sent yet.
inline constexpr std::size_t kPieceMin = 16 * 1024;                     ///< Smaller pieces are sent together.
inline constexpr std::size_t kChecksMax = 256;                          ///< Words that wait; no more checks then.
inline constexpr std::size_t kEarlyWordsMax = 256;                      ///< Of one peer, about worlds not known yet.
inline constexpr std::size_t kClosedMax = 16'384;                       ///< Closed worlds that are remembered.
inline constexpr std::uint32_t kMailboxWindow = 256;                    ///< Messages of one peer on their way to here.

/// Of a peer: compares equal for handles of one incarnation.
inline const void* source_of(const Peer& peer) { return core_of(peer).get(); }

/// A world, told of what concerns all of its ranks. Calls come under the lane, and may begin and end operations.
class Watcher {
 public:
  /// The agent closes.
  virtual void on_close(Instant now) = 0;
  virtual void on_down(const Peer& peer, const Status& cause) = 0;
  /// `by` found that it has failed; or has proof that it is dead.
  virtual void on_failed(const Peer& by, std::uint32_t rank, bool is_dead) = 0;
  virtual void on_left(const Peer& peer) = 0;
  virtual void on_revoke(const Peer& by, const Status& why) = 0;
  virtual void on_agreement(const Peer& by, const wire::RuntimeMessage& message) = 0;
  /// Whether a message of a collective, which nobody wants, is of another one than this rank called by its number.
  virtual bool is_misfit(const wire::MessageEnvelope& envelope) = 0;
  virtual void on_misfit(const Peer& by, const wire::MessageEnvelope& envelope, Instant now) = 0;
  /// `by`, who called by this number what has this digest, waits for a message of this rank's.
  virtual void on_check(const Peer& /*by*/, std::uint64_t /*number*/, std::uint64_t /*digest*/, Instant /*now*/) {}
  /// `by` sends nothing more for this number: kInvalid, it is past it; kDisconnected, it has closed the world.
  virtual void on_over(const Peer& /*by*/, std::uint64_t /*number*/, Code /*code*/, Instant /*now*/) {}
  /// `by` has lost these ranks (see court.h), and asks whom this one has.
  virtual void on_lost(const Peer& /*by*/, std::span<const std::byte> /*lost*/, bool /*asks*/) {}
  /// `by` has written on its board, and this rank had asked to be told.
  virtual void on_bell(const Peer& /*by*/, Instant /*now*/) {}
  /// `by` opens the world with this topology.
  virtual void on_topology(const Peer& /*by*/, std::string_view /*topology*/) {}

 protected:
  ~Watcher() = default;
};

/// Looks at memory that others write, of which nothing rings here.
class Lookout {
 public:
  /// In each turn of the lane. Returns how much was new.
  virtual std::size_t look(Instant now) = 0;
  /// Nobody turns the lane until something rings: asks the others to. False: there is something new already.
  virtual bool ask() = 0;

 protected:
  ~Lookout() = default;
};

class Mailbox final : public agent::Service {
 public:
  explicit Mailbox(agent::Carrier& carrier) : carrier_(carrier) {}
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
    matcher_.for_each_kept([&](Arrived& one) { count += watchers_.contains(one.envelope.world) ? 0U : 1U; });
    return count;
  }
  /// Counts messages that nobody wanted when they came. Any thread.
  std::uint64_t kept_so_far() const { return kept_so_far_.load(std::memory_order_acquire); }
  /// Tells the peer that this world is at an end. Best effort: who does not hear of it finds out by himself.
  void revoke(const Peer& peer, std::uint64_t world, const Status& why, Instant now);
  /// Tells the peer that another rank has failed; or, with proof, that it is dead.
  void tell_failed(const Peer& peer, std::uint64_t world, std::uint32_t rank, bool is_dead, Instant now);
  /// Tells the peer that this rank has done all that it called, and leaves.
  void leave(const Peer& peer, std::uint64_t world, Instant now);
  /// Asks the peer whether it called the same by this number.
  void check(const Peer& peer, std::uint64_t world, std::uint64_t number, std::uint64_t digest, Instant now);
  /// Answers that: nothing comes any more.
  void tell_over(const Peer& peer, std::uint64_t world, std::uint64_t number, Code code, Instant now);
  /// Tells the peer a step of an agreement; `body` is its bitmap.
  void tell(const Peer& peer, const wire::RuntimeMessage& message, std::string body, Instant now) {
    say_soon(peer, message, std::move(body), now);
  }
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

  /// Tells it of this world, first what these said of it before.
  void add_watcher(std::uint64_t world, Watcher& watcher, std::span<const Peer> ranks);
  /// What still comes for this world is dropped. False: it was removed before.
  bool remove_watcher(std::uint64_t world);
  /// Tells it what peers say of agreements of this world, which is closed here, and which of them go.
  void add_past(std::uint64_t world, Watcher& watcher) { pasts_.insert_or_assign(world, &watcher); }
  void remove_past(std::uint64_t world) { pasts_.erase(world); }
  /// Tells all worlds that the peer has failed, whatever there still is with it. Of this rank itself it means that the
  /// others hold it for failed.
  void tell_down(const Peer& peer, const Status& why) {
    const auto watchers = watchers_;  // They may go meanwhile.
    for (const auto& [world, watcher] : watchers) {
      if (watchers_.contains(world)) watcher->on_down(peer, why);
    }
    for (const auto& [world, past] : pasts_) past->on_down(peer, why);
    run_jobs(carrier_.now());
  }
  /// From now on the session is pumped, though there is nothing to say yet.
  void attend(agent::Session& session) { desk_of(session); }
  /// All that was to be said to the peer has been given to its carrier, but for messages that it has not wanted yet.
  bool is_silent(const agent::Session& session) const {
    const Desk* const desk = known_desk(session);
    return desk == nullptr || (desk->words.empty() && desk->line.empty());
  }
  /// All worlds end.
  void close_all(Instant now) {
    while (!watchers_.empty()) watchers_.begin()->second->on_close(now);
  }
  /// Runs `job` before the lane is given up: ends of operations begin others by it.
  void run_soon(std::function<void(Instant now)> job) { jobs_.push_back(std::move(job)); }
  void run_jobs(Instant now);
  /// The same in the next turn: what takes long does a part of it in each.
  void run_later(std::function<void(Instant now)> job) {
    later_.push_back(std::move(job));
    carrier_.note_deadline();
  }
  /// It looks in each turn from now on, until it has asked the others to ring. Not twice at once.
  void watch(Lookout& lookout) {
    lookouts_.push_back(&lookout);
    carrier_.note_deadline();
  }
  void unwatch(Lookout& lookout) { std::erase(lookouts_, &lookout); }
  /// Tells the peer, who asked for it, that this rank has written on its board.
  void ring(const Peer& peer, std::uint64_t world, Instant now);
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
  /// What the rank does is written down there from now on.
  void record_by(Recorder recorder) { recorder_.emplace(std::move(recorder)); }
  /// Null: nothing is written down.
  Recorder* recorder() { return recorder_ ? &*recorder_ : nullptr; }

  std::span<const agent::OwnChannel> channels() const override;
  Status on_message(agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                    Instant now) override;
  void on_control(agent::Session&) override {}
  bool pump(agent::Session& session, std::size_t* work) override;
  void end(agent::Session& session, const Status& status) override;
  bool awaits(const agent::Session& session) const override;
  std::size_t left(const agent::Session& session) const override;
  std::string_view name() const override { return "messages"; }
  Instant next_deadline() const override { return later_.empty() && lookouts_.empty() ? deadlines_.next() : Instant(); }
  bool prepare_sleep() override;
  std::size_t expire(Instant now) override;
  void describe(const agent::Visitor& visitor) const override;
  void disown_after_fork() override {
    if (recorder_) recorder_->disown_after_fork();
  }

 private:
  using Deadlines = base::TimerHeap<Operation, &Operation::alarm>;
  /// What there is with one peer.
  struct Desk final : agent::Tenancy {
    base::IntrusiveList<Send, &Send::hook> line;     ///< To be announced, in order.
    base::IntrusiveList<Send, &Send::hook> streams;  ///< Granted: their bytes go out in turns.
    std::unordered_map<std::uint64_t, Send*> asked;  ///< By id.
    std::unordered_map<std::uint64_t, Receive*> landing;
    base::IntrusiveList<Receive, &Receive::fetch_hook> fetches;  ///< Of these the ones that are being read.
    struct Word {
      wire::RuntimeMessage message;
      std::string text;  ///< What `message.body` is a view of.
    };
    std::deque<Word> words;                                 ///< Grants and the like, which go first.
    std::size_t eager_bytes = 0, eager_messages = 0;        ///< Sent, and not freed by the peer yet.
    std::size_t kept_bytes = 0, kept_messages = 0;          ///< Of the peer's, that nobody wants yet.
    std::unordered_map<std::uint64_t, Arrived*> kept_asks;  ///< By the peer's number.
    std::size_t freed_bytes = 0, freed_messages = 0;        ///< The peer has to be told.
    std::deque<Word> early;                                 ///< The peer's, about worlds that are not known yet.
  };

  Desk& desk_of(agent::Session& session);
  void say_soon(const Peer& peer, wire::RuntimeMessage message, std::string text, Instant now);
  Desk* known_desk(const agent::Session& session) const {
    return static_cast<Desk*>(agent::inner::tenancy(session, *this));
  }

  bool admit(Operation& operation);
  void end_one(Operation& operation, Status status);
  void send_to_self(Send& send);
  std::vector<Send*> sends_of(std::uint64_t world, const Peer& to);
  void keep(std::unique_ptr<Arrived> arrived);
  void look_for_misfit(const Arrived& kept);
  /// Whether the message may go into the receive; else the receive has ended with the reason.
  bool accepts(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from);
  bool makes_buffer(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from);
  /// Takes the oldest receive that the message may go into.
  Receive* receive_for(const wire::MessageEnvelope& envelope, const Peer& from);
  void prepare(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from);
  void take_kept(Receive& receive, Arrived& arrived, Instant now);
  /// Has the asked message's bytes come: `address` is where they lie at the sender, or 0.
  void want(agent::Session& session, Receive& receive, std::uint64_t id, std::uint64_t address, Instant now);
  void fetch_part(agent::Session& session, Desk& desk, Receive& receive);
  void note_freed(Desk& desk, std::size_t bytes);
  void drop_kept(Arrived& arrived);

  Status on_eager(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_ask(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_grant(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_part(agent::Session& session, const wire::RuntimeMessage& message);
  Status on_gone(agent::Session& session, const wire::RuntimeMessage& message);
  Status on_fetched(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_taken(agent::Session& session, const wire::RuntimeMessage& message);
  Status handle(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_freed(agent::Session& session, const wire::RuntimeMessage& message);
  void on_check(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  void on_word(agent::Session& session, const wire::RuntimeMessage& message);
  void pass_on(Watcher& watcher, const Peer& by, const wire::RuntimeMessage& message);

  agent::Sent say(agent::Session& session, const wire::RuntimeMessage& message);
  std::span<const std::byte> together(const Send& send, std::uint64_t offset, std::size_t size);
  agent::Sent announce(agent::Session& session, Desk& desk, Send& send);
  agent::Sent send_part(agent::Session& session, Desk& desk, Send& send);
  agent::Sent pump_desk(agent::Session& session, Desk& desk, std::size_t* work);

  agent::Carrier& carrier_;
  std::optional<Recorder> recorder_;
  Matcher matcher_;
  Deadlines deadlines_;
  std::map<std::uint64_t, Watcher*> watchers_;  ///< By world.
  std::map<std::uint64_t, Watcher*> pasts_;     ///< Of closed worlds.
  ClosedWorlds closed_{kClosedMax};
  std::vector<std::function<void(Instant now)>> jobs_, later_;
  std::vector<Lookout*> lookouts_;
  std::uint64_t next_id_ = 1;
  std::vector<std::byte> gathered_;  ///< Of one message in pieces, while it is said.
  std::size_t under_way_ = 0;        ///< Sends and receives.
  std::size_t own_kept_bytes_ = 0;   ///< Copies of messages to this rank itself that wait unwanted.
  std::atomic<std::uint64_t> kept_so_far_{0};
  bool runs_jobs_ = false;
};

}  // namespace hawser::runtime
