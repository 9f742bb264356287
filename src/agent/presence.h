#pragma once

// Presence: the agent in its directory. It publishes the agent's card and, where the directory runs by itself (etcd),
// notices peers whose card is gone, as it goes when its owner's lease ends. It never waits: it hands requests in and
// looks for answers when the lane turns. The work of a directory without threads of its own (a folder's) is done by
// `run_jobs`, on the thread that turned the lane but after it let go of the lock.
//
// Only peers that no session proves alive are given up, and only when their card stays away for a while: an etcd that
// lost its store gets the cards of living agents again.
//
// Thread rule: under the lane's lock, but for has_jobs and run_jobs, which are called without it. Lifetime: a part of
// its Core.

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <hawser/directory.h>

namespace hawser::agent {

class Core;

class Presence {
 public:
  explicit Presence(Core& core) : core_(core) {}

  /// Before this is called nothing happens.
  void open();
  bool is_open() const { return directory_ != nullptr; }
  /// The card has changed. Whoever arms the lane for a sleep afterwards sees it in `next`.
  void ask();
  /// When to look again; never, when there is no such directory.
  Instant next() const { return is_open() ? next_ : Instant::max(); }
  void look(Instant now);
  /// The card was published, or refused; then the next try is some time later.
  bool is_settled() const { return !publishing_ && (!is_due_ || has_failed_); }
  /// What was handed in waits for somebody to do it.
  bool has_jobs() const { return has_jobs_.load(std::memory_order_relaxed); }
  /// A few file operations.
  void run_jobs(Instant now);
  void close();

 private:
  void publish(Instant now);
  void take_answer(Instant now);
  Instant next_look(Instant now) const;
  void watch(Instant now);
  void apply(const DirectoryEvent& event, Instant now);
  void give_up(const std::string& name, Instant now);
  std::string name_of(const std::string& key) const;

  Core& core_;
  Directory* directory_ = nullptr;
  bool runs_itself_ = false;
  bool is_due_ = false;
  bool has_failed_ = false;  ///< And the log says so.
  std::atomic<bool> has_jobs_{false};
  Instant not_before_ = Instant::min();  ///< When the card may be published next.
  Instant next_ = Instant::min();
  std::optional<Ticket> publishing_, watching_;
  std::set<std::string> there_;          ///< Names with a card; as many as the directory has.
  std::map<std::string, Instant> gone_;  ///< And when each went; those of peers we know.
};

}  // namespace hawser::agent
