#pragma once

// Presence: what an agent does with a directory that runs by itself (etcd). It publishes the agent's card and notices
// peers whose card is gone, as it goes when its owner's lease ends. It never waits: it hands requests in and looks for
// answers when the lane turns.
//
// Only peers that no session proves alive are given up, and only when their card stays away for a while: an etcd that
// lost its store gets the cards of living agents again.
//
// Thread rule: under the lane's lock; `ask` comes from any thread. Lifetime: a part of its Core.

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

  /// The agent's directory runs by itself. Before this is called nothing happens.
  void open();
  bool is_open() const { return directory_ != nullptr; }
  /// The card has changed.
  void ask() { is_due_.store(true, std::memory_order_release); }
  /// When to look again; never, when there is no such directory.
  Instant next() const { return is_open() ? next_ : Instant::max(); }
  void look(Instant now);
  /// Nothing is left to publish.
  bool is_settled() const { return !publishing_ && !is_due_.load(std::memory_order_acquire); }
  void close();

 private:
  void publish();
  void watch(Instant now);
  void apply(const DirectoryEvent& event, Instant now);
  void give_up(const std::string& name, Instant now);
  std::string name_of(const std::string& key) const;

  Core& core_;
  Directory* directory_ = nullptr;
  std::atomic<bool> is_due_{false};
  Instant next_ = Instant::min();
  std::optional<Ticket> publishing_, watching_;
  std::set<std::string> there_;          ///< Names with a card; as many as the directory has.
  std::map<std::string, Instant> gone_;  ///< And when each went; those of peers we know.
};

}  // namespace hawser::agent
