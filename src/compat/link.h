#pragma once

// Frames over TCP: a question and its answer, and a listener that answers. A connection carries one of each.
//
// Metadata holds keys. So unless the agent was opened with security `none`, both ends of a link must be of one user, as
// the kernel tells it (base/far_end.h): the listener asks before it reads, `ask` before it sends.
//
// Thread rule: `ask` blocks its caller, at most until the deadline; a Listener has a thread of its own, on which it
// calls `answer`. Lifetime: that thread ends with the Listener.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <hawser/time.h>

#include "base/address.h"
#include "base/events.h"
#include "base/fd.h"
#include "compat/frame.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr std::size_t kLinksMax = 64;                          ///< Open at once; others wait outside.
inline constexpr std::size_t kLinkBytesMax = std::size_t{128} << 20;  ///< Held by all of them together.
inline constexpr Duration kLinkTime = std::chrono::seconds(5);        ///< From its opening to its end.

/// Whom a link may lead to.
enum class Trust : unsigned char { kSameUser = 0, kEverybody = 1 };

/// Errors: kDisconnected (nobody listens there, or it closed), kTimedOut (also soon after `stop` is set), kCorrupt,
/// kDenied (another user's process listens there, or the kernel does not tell).
Result<Frame> ask(const base::SocketAddress& address, const Frame& frame, Instant deadline,
                  const std::atomic<bool>& stop, Trust trust);

class Listener {
 public:
  using Answer = std::function<Frame(const Frame&)>;
  /// Port 0: any. The error names the address.
  static Result<std::unique_ptr<Listener>> open(const std::string& host, std::uint16_t port, Trust trust,
                                                Answer answer);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const { return port_; }
  /// In a forked child: the thread is not here.
  void disown();

 private:
  struct Link;
  Listener(base::Fd socket, base::EventFd wake, std::uint16_t port, Trust trust, Answer answer);
  void run();
  void accept_one();
  /// False: it is over.
  bool move_on(Link& link);
  bool receive(Link& link);
  bool send(Link& link);

  const base::Fd socket_;
  const base::EventFd wake_;
  const std::uint16_t port_;
  const Trust trust_;
  const Answer answer_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Link>> links_;  ///< At most kLinksMax.
  std::size_t held_ = 0;                      ///< Bytes, at most kLinkBytesMax.
  std::thread thread_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
