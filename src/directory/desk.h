#pragma once

// Desk: where requests wait for `run_job` and answers for `poll`, the same for every kind of directory.
//
// Thread rule: thread-safe; takes its own lock, then the store's, never the other way round.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <hawser/directory.h>

#include "base/mutex.h"
#include "directory/store.h"

namespace hawser::directory {

inline constexpr std::size_t kRequestsMax = 1024;  ///< Not yet answered: waiting, or being run.
inline constexpr std::size_t kTicketsMax = 4096;   ///< Requests, answers not taken, and watches.
/// Entries in one event of a watch.
inline constexpr std::size_t kChangesPerEvent = 256;

struct Request {
  enum class Kind : std::uint8_t { kPut, kErase, kGet, kList, kWatch };
  Kind kind = Kind::kGet;
  std::string key = {};  ///< Or prefix.
  std::string value = {};
  PutOptions options = {};
  EraseOptions erasing = {};
  Ticket ticket = 0;
  std::optional<Instant> first_tried = {};  ///< Or handed in, where a directory counts from then.

  bool lists() const { return kind == Kind::kList || kind == Kind::kWatch; }
};

class Desk {
 public:
  /// Always a ticket: one that answers at once when the request is wrong or there is no room.
  Ticket submit(Request request);
  /// The oldest request; nothing when none waits.
  std::optional<Request> take();
  /// The oldest one, if it only lists.
  std::optional<Request> take_listing();
  /// To the front: it could not be run now.
  void put_back(Request request);
  bool has_requests() const;

  /// Nothing happens when the ticket was cancelled.
  void answer(const Request& request, Status status, std::vector<DirectoryEntry> entries = {});
  /// Answers a list or watch from the store; a watch goes on from here.
  void answer_listing(const Request& request, const SharedStore& store);

  void cancel(Ticket ticket);
  /// False once it was cancelled, or was answered and is no watch.
  bool is_wanted(Ticket ticket) const;
  /// Prefixes of the watches that were begun.
  std::vector<std::string> watched() const;
  std::optional<DirectoryEvent> poll(Ticket ticket, const SharedStore& store);
  bool has_watches() const;

 private:
  struct State {
    std::optional<DirectoryEvent> answer;
    bool is_watch = false;
    bool is_open = false;    ///< Counted in open_: accepted and not yet answered.
    bool begun = false;      ///< A watch whose first answer was made.
    std::string prefix;      ///< A watch's.
    std::uint64_t told = 0;  ///< Revision up to which a watch was told.
  };
  void settle(State& state) HAWSER_REQUIRES(mutex_);
  std::optional<DirectoryEvent> news(Ticket ticket, State& state, const SharedStore& store) HAWSER_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::deque<Request> waiting_ HAWSER_GUARDED_BY(mutex_);
  std::unordered_map<Ticket, State> tickets_ HAWSER_GUARDED_BY(mutex_);
  std::size_t watches_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::size_t open_ HAWSER_GUARDED_BY(mutex_) = 0;  ///< At most kRequestsMax.
  Ticket next_ticket_ HAWSER_GUARDED_BY(mutex_) = 1;
};

}  // namespace hawser::directory
