#pragma once

// Watcher: keeps a picture of all watched prefixes in memory, by one stream from etcd, on a thread of its own. Watches
// are told from the picture, so each tells the latest state of a key and misses nothing.
//
// After a stream that broke it goes on at the revision it was told up to. It lists again when that revision was
// compacted, when etcd was away altogether (it may be another store now), and when the store's history is another.
//
// Thread rule: `add` and `look_again` come from any thread, `run` is the thread's own. Lifetime: borrows all.

#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "directory/desk.h"
#include "directory/etcd/operations.h"
#include "directory/store.h"

namespace hawser::directory::etcd {

/// Different prefixes at once, of which none begins with another.
inline constexpr std::size_t kCoversMax = 64;

class Watcher {
 public:
  using Warn = std::function<void(const std::string& about, std::string text)>;
  struct Links {
    Desk& desk;
    SharedStore& store;
    std::function<void()> ring;  ///< Something was answered or has changed.
    Warn warn;
  };

  Watcher(Operations& operations, std::string space, Duration timeout, Links links)
      : operations_(operations), space_(std::move(space)), timeout_(timeout), links_(std::move(links)) {}

  /// Begins a watch.
  void add(Request request);
  /// A watch was cancelled.
  void look_again() { operations_.http().interrupt(); }
  /// Until the client is stopped.
  void run();

 private:
  /// A prefix that is watched.
  struct Cover {
    std::string prefix;
    std::int64_t revision = 0;  ///< All up to it is in the picture; 0: nothing yet.
  };

  void turn();
  void take_requests();
  Instant next_deadline() const;
  void settle_covers();
  bool list_new(Instant deadline);
  bool check_history(const Header& header);
  void adopt(Cover& cover, const std::vector<KeyValue>& entries, std::int64_t revision);
  void put(const KeyValue& entry);
  void answer_requests(const Status& failure);
  bool open_stream(Instant deadline);
  void follow(Instant until);
  void apply(const WatchAnswer& answer);
  void lost_stream(const std::string& why);
  /// Without the namespace; false for what is no key of ours.
  bool name_of(const KeyValue& entry, std::string_view* name) const;

  Operations& operations_;
  const std::string space_;
  const Duration timeout_;
  const Links links_;

  base::Mutex mutex_;
  std::vector<Request> arrived_ HAWSER_GUARDED_BY(mutex_);  ///< As many as the desk lets be open.

  std::vector<Request> waiting_;  ///< Watches that have no first answer.
  std::vector<Cover> covers_;     ///< At most kCoversMax; a watch's number is its place, from 1.
  bool must_check_ = false;       ///< The stream broke: is it the same store?
  Header seen_;                   ///< The newest.
  Instant heard_ = Instant::min();
  std::size_t member_ = 0;  ///< Whose stream it is.
  Duration rest_{};         ///< Before the stream is opened again; grows while none lasts.
};

}  // namespace hawser::directory::etcd
