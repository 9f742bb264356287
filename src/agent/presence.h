#pragma once

// Presence: the agent in its directory. It publishes the agent's card and, where the directory runs by itself (etcd),
// notices peers whose card is gone, as it goes when its owner's lease ends. It never waits: it hands requests in and
// looks for answers when the lane turns. The work of a directory without threads of its own (a folder's) is done by
// `run_jobs`, on the thread that turned the lane but after it let go of the lock.
//
// Another agent of the same name may use the key: NameClaim says which of the two has it. So each write is a
// compare-and-swap, and the key is looked at again: once a second, or when a watch tells of it. A card that vanished (a
// folder that somebody emptied) is put again.
//
// Only peers that no session proves alive are given up, and only when their card stays away for a while: an etcd that
// lost its store gets the cards of living agents again.
//
// Thread rule: under the lane's lock, but for has_jobs and run_jobs, which are called without it. Lifetime: a part of
// its Core.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <hawser/directory.h>

#include "agent/name_claim.h"
#include "agent/part.h"

namespace hawser::agent {

class Core;

class Presence final : public Part {
 public:
  explicit Presence(Core& core) : core_(core) {}

  /// What the directory said about our key before the agent began (nothing: it did not answer). Gives when the agent
  /// was born, by a clock that says `clock_ns`.
  std::uint64_t begin(const std::optional<DirectoryEvent>& answer, std::uint64_t clock_ns) HAWSER_REQUIRES(in_lane);
  /// Before this is called nothing happens. Waits until the card was published or refused, or the deadline; later that
  /// goes on in turns.
  void open_and_wait(Instant deadline) HAWSER_EXCLUDES(in_lane);
  bool is_open() const { return directory_ != nullptr; }
  /// The card has changed. A thread that arms the lane for a sleep afterwards sees it in `next_deadline`.
  void ask() HAWSER_REQUIRES(in_lane);
  void look(Instant now) HAWSER_REQUIRES(in_lane);
  std::size_t turn(Instant now) override HAWSER_REQUIRES(in_lane) {
    look(now);
    return 0;  // What it did, nobody waits for in a turn.
  }
  /// The card was published, or refused; then the next try is some time later.
  bool is_settled() const HAWSER_REQUIRES(in_lane) { return !asking_ && (!is_due_ || has_failed_); }
  /// What was handed in waits for somebody to do it: a few file operations.
  void run_jobs(Instant now) override HAWSER_EXCLUDES(in_lane);
  void describe(const Visitor& visitor) const override HAWSER_REQUIRES(in_lane);
  void close() HAWSER_REQUIRES(in_lane);

 private:
  void open() HAWSER_REQUIRES(in_lane);
  void step(Instant now) HAWSER_REQUIRES(in_lane);
  void take_answer(Instant now) HAWSER_REQUIRES(in_lane);
  void read() HAWSER_REQUIRES(in_lane);
  void write(Instant now) HAWSER_REQUIRES(in_lane);
  void on_read(const DirectoryEvent& answer, Instant now) HAWSER_REQUIRES(in_lane);
  void on_written(const DirectoryEvent& answer, Instant now) HAWSER_REQUIRES(in_lane);
  void on_failure(const Status& why, Instant now) HAWSER_REQUIRES(in_lane);
  void take_value(const DirectoryEntry& entry) HAWSER_REQUIRES(in_lane);
  void on_own_key(const DirectoryEvent& event) HAWSER_REQUIRES(in_lane);
  void tell_displaced() HAWSER_REQUIRES(in_lane);
  Instant next_look(Instant now) const;
  void watch(Instant now) HAWSER_REQUIRES(in_lane);
  void apply(const DirectoryEvent& event, Instant now) HAWSER_REQUIRES(in_lane);
  void give_up(const std::string& name, Instant now) HAWSER_REQUIRES(in_lane);
  std::string name_of(const std::string& key) const;
  std::string key() const;

  Core& core_;
  Directory* directory_ = nullptr;
  bool runs_itself_ = false;
  bool is_due_ = false;
  bool must_check_ = false;  ///< Somebody changed our key.
  bool has_failed_ = false;  ///< And the log says so.
  NameClaim claim_;
  Status refusal_;                       ///< kBusy, of the last write, until it is known why.
  base::Id128 displaced_by_;             ///< The last one that was told of.
  Instant not_before_ = Instant::min();  ///< When the directory may be asked next.
  Instant check_at_ = Instant::max();    ///< When to look at our key again.
  std::optional<Ticket> asking_, watching_;
  Instant asked_at_;                     ///< Since when it waits for the answer to `asking_`.
  bool is_writing_ = false;              ///< What `asking_` does; else it reads.
  std::set<std::string> there_;          ///< Names with a card; as many as the directory has.
  std::map<std::string, Instant> gone_;  ///< And when each went; those of peers we know.
};

}  // namespace hawser::agent
