#pragma once

// StatusDesk: the connections of one status socket. A caller sends one line, the request, and gets the answer to it
// piece by piece, until the desk ends the connection.
//
// It never waits: each call of `serve` does what can be done now and a bounded amount of it. It makes one piece of one
// answer, and the callers take turns.
//
// A caller that sends no request, reads nothing or stays too long is dropped, and of too many callers the one that
// asked nothing for the longest time makes room. So a caller costs its answer's state, one piece, and one descriptor.
//
// Thread rule: one thread at a time, but for `fd` and `has_news`. Lifetime: destroying removes the socket. A forked
// child closes its copies of all descriptors.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/events.h"
#include "base/fd.h"
#include "base/user_socket.h"

namespace hawser::agent {

/// What one caller is told.
class StatusAnswer {
 public:
  enum class Step : std::uint8_t {
    kMore,   ///< There is more to say.
    kLater,  ///< Something is in use elsewhere: ask again in a moment.
    kEnd,    ///< That was all.
  };
  virtual ~StatusAnswer() = default;
  /// Appends the next piece, some KiB that take less than a millisecond to make.
  virtual Step next(std::string& out, Instant now) = 0;
};

class StatusDesk {
 public:
  static constexpr std::size_t kCallersMax = 16;
  static constexpr std::size_t kRequestMax = 256;  ///< Bytes, its newline counted.
  static constexpr Duration kRequestTime = std::chrono::seconds(1);
  /// So long a caller need not make room, though it has asked nothing yet: its process may wait for a processor.
  static constexpr Duration kGrace = std::chrono::milliseconds(100);
  static constexpr Duration kStallTime = std::chrono::seconds(1);    ///< Without a byte read by the caller.
  static constexpr Duration kAnswerTime = std::chrono::seconds(30);  ///< For the whole answer.
  static constexpr Duration kLookAgain = std::chrono::milliseconds(1);

  /// Makes the answer to a request. Null: there is no such request.
  using Opener = std::function<std::unique_ptr<StatusAnswer>(std::string_view request)>;

  /// Errors: those of UserSocket::listen, and what the kernel said.
  static Result<std::unique_ptr<StatusDesk>> open(const std::string& folder, std::string_view name, Opener opener);
  ~StatusDesk();
  StatusDesk(const StatusDesk&) = delete;
  StatusDesk& operator=(const StatusDesk&) = delete;

  const std::string& path() const { return socket_.path(); }
  /// Readable while a call of `serve` has something to do.
  int fd() const { return epoll_.fd(); }
  bool has_news() const;
  /// One round. Returns when the next one is due even without news; Instant::max(): never.
  Instant serve(Instant now);
  std::size_t callers() const { return callers_.size(); }

 private:
  struct Caller {
    base::Fd socket;
    std::uint64_t number = 0;
    Instant came, moved;           ///< When it came; when a byte was read or taken last.
    Instant due = Instant::max();  ///< When it is looked at again though it has no news.
    std::string request;
    std::unique_ptr<StatusAnswer> answer;  ///< Null: its request is not whole.
    std::string out;                       ///< The piece under way,
    std::size_t sent = 0;                  ///< of which so much was sent.
    bool has_ended = false;                ///< There is no other piece.
    std::uint32_t watched = 0;             ///< For what its descriptor is watched.
  };
  using Callers = std::list<Caller>;

  StatusDesk(base::Epoll epoll, base::UserSocket socket, Opener opener);
  void accept(Instant now);
  /// Somebody waits to be accepted.
  bool is_called() const;
  /// The oldest that asked nothing goes, if its grace is over. Returns when to try again.
  Instant make_room(Instant now);
  void mute(bool muted);
  /// False: the caller goes.
  bool advance(Caller& caller, Instant now);
  bool read_request(Caller& caller, Instant now);
  bool send_piece(Caller& caller, Instant now);
  bool is_late(const Caller& caller, Instant now) const;
  Instant deadline_of(const Caller& caller) const;
  void watch(Caller& caller, std::uint32_t events);
  void drop(Callers::iterator caller);

  base::Epoll epoll_;
  base::UserSocket socket_;
  const Opener opener_;
  Callers callers_;
  std::uint64_t next_number_ = 1;
  bool may_make_piece_ = false;           ///< In this round.
  bool is_muted_ = false;                 ///< Nobody is accepted,
  Instant muted_until_ = Instant::max();  ///< until a caller goes, or for lack of descriptors until then.
};

}  // namespace hawser::agent
