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
#include "runtime/lookout.h"
#include "runtime/matcher.h"
#include "runtime/recorder.h"
#include "runtime/watchers.h"
#include "wire/session.h"

namespace hawser::runtime {

inline constexpr std::size_t kEagerMax = wire::kRuntimeBodyMax;
/// A rank keeps so many bytes that nobody wants yet of each sender and class,
inline constexpr std::size_t kEagerWindow = std::size_t{4} << 20;
inline constexpr std::size_t kEagerMessages = 16'384;                   ///< and so many messages.
inline constexpr std::size_t kAsksMax = 65'536;                         ///< Of one sender, not granted yet.
inline constexpr std::uint64_t kOwnBufferMax = std::uint64_t{1} << 30;  ///< Made for a receive without a buffer.
inline constexpr std::size_t kOperationsMax = std::size_t{1} << 20;     ///< Sends and receives of one rank under way.
inline constexpr std::size_t kFetchPart = 256 * 1024;                   ///< Read of one message in one go.
inline constexpr std::size_t kWordsMax = 4096;                          ///< For one peer, not sent yet.
inline constexpr std::size_t kPieceMin = 16 * 1024;                     ///< Smaller pieces are sent together.
inline constexpr std::size_t kLastWordsMax = 4096;    ///< Of one peer, that came in some classes only.
inline constexpr std::size_t kChecksMax = 256;        ///< Words that wait; no more questions then.
inline constexpr std::uint32_t kMailboxWindow = 256;  ///< Messages of one peer on their way to here.
inline constexpr int kPartsAtOnce = 4;  ///< Of large messages, sent to one peer on one channel in one turn.

/// Of a peer: compares equal for handles of one incarnation.
inline const void* source_of(const Peer& peer) { return core_of(peer).get(); }

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
    const Desk* const desk = known_desk(session);
    return desk == nullptr || desk->is_silent();
  }
  /// All worlds end.
  void close_all(Instant now) { watchers_.close_all(now); }
  /// Runs `job` before the lane is given up: ends of operations begin others by it.
  void run_soon(std::function<void(Instant now)> job) { jobs_.push_back(std::move(job)); }
  /// False: there were none.
  bool run_jobs(Instant now);
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
  /// What goes and comes in one class.
  struct ClassDesk {
    std::list<Word> words;                            ///< Grants and the like, which go first.
    base::IntrusiveList<Send, &Send::hook> line;      ///< To be announced, in order.
    base::IntrusiveList<Send, &Send::hook> streams;   ///< Granted: their bytes go out in turns.
    std::size_t eager_bytes = 0, eager_messages = 0;  ///< Sent, and not freed by the peer yet.
    std::size_t kept_bytes = 0, kept_messages = 0;    ///< The peer sent them, and nobody wants them yet.
    std::size_t freed_bytes = 0, freed_messages = 0;  ///< The peer has to be told.
    std::list<Word> last_words;                       ///< They go behind what is in line.
    std::uint64_t last_heard = 0;                     ///< The peer's last words that came in this class.
    bool owes_freed() const { return freed_bytes > kEagerWindow / 4 || freed_messages > kEagerMessages / 4; }
  };
  /// What there is with one peer.
  struct Desk final : agent::Tenancy {
    std::array<ClassDesk, wire::kClasses> classes;
    std::unordered_map<std::uint64_t, Send*> asked;  ///< By id.
    std::unordered_map<std::uint64_t, Receive*> landing;
    base::IntrusiveList<Receive, &Receive::fetch_hook> fetches;  ///< Of these the ones that are being read.
    std::unordered_map<std::uint64_t, Arrived*> kept_asks;       ///< By the peer's number.
    EarlyWords early;
    struct LastWord {
      Word word;
      std::size_t classes = 0;  ///< In how many of them it came.
    };
    std::deque<LastWord> last;     ///< That have not come in all classes, in their order.
    std::uint64_t last_heard = 0;  ///< Those that have.

    ClassDesk& of(Priority priority) { return classes[wire::index_of(priority)]; }
    std::size_t words() const {
      std::size_t count = 0;
      for (const ClassDesk& each : classes) count += each.words.size() + each.last_words.size();
      return count;
    }
    bool is_silent() const {
      return words() == 0 && std::ranges::all_of(classes, [](const ClassDesk& each) { return each.line.empty(); });
    }
  };

  Desk& desk_of(agent::Session& session);
  Desk* known_desk(const agent::Session& session) const {
    return static_cast<Desk*>(agent::inner::tenancy(session, *this));
  }

  /// Sends words, oldest first.
  agent::Sent say_all(agent::Session& session, std::list<Word>& words, Priority priority, std::size_t* work);
  bool admit(Operation& operation);
  void end_one(Operation& operation, Status status);
  bool goes_at_once(agent::Session& session, Desk& desk, Send& send);
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
  static void note_freed(ClassDesk& its, std::size_t bytes);
  void drop_kept(Arrived& arrived);

  Status on_eager(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now);
  Status on_ask(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now);
  Status on_grant(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_part(agent::Session& session, const wire::RuntimeMessage& message);
  Status on_gone(agent::Session& session, const wire::RuntimeMessage& message);
  Status on_fetched(agent::Session& session, const wire::RuntimeMessage& message, Instant now);
  Status on_taken(agent::Session& session, const wire::RuntimeMessage& message);
  Status handle(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now);
  Status on_freed(agent::Session& session, const wire::RuntimeMessage& message);
  Status on_last_word(agent::Session& session, Priority priority, const wire::RuntimeMessage& message);
  void on_check(agent::Session& session, const wire::RuntimeMessage& message, Instant now);

  agent::Sent say(agent::Session& session, Priority priority, const wire::RuntimeMessage& message);
  std::span<const std::byte> together(const Send& send, std::uint64_t offset, std::size_t size);
  agent::Sent announce(agent::Session& session, Desk& desk, Send& send);
  agent::Sent announce_all(agent::Session& session, Desk& desk, Priority priority, std::size_t* work);
  agent::Sent tell_freed(agent::Session& session, Desk& desk);
  agent::Sent send_part(agent::Session& session, Desk& desk, Send& send);
  agent::Sent send_parts(agent::Session& session, Desk& desk, std::span<ClassDesk> classes, std::size_t* work);
  agent::Sent pump_urgent(agent::Session& session, Desk& desk, Priority priority, std::size_t* work);
  agent::Sent pump_bulk(agent::Session& session, Desk& desk, std::size_t* work);

  agent::Carrier& carrier_;
  std::optional<Recorder> recorder_;
  Matcher matcher_;
  Deadlines deadlines_;
  Watchers watchers_;
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
