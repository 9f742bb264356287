#pragma once

// Listener: answers questions about metadata, each on a connection of its own.
//
// Metadata holds keys. So unless the agent was opened with security `none`, both ends of a connection must be of one
// user, as the kernel tells it or the user's cookie proves it, or prove identities of one domain under TLS
// (compat/trust.h), before the listener reads a question.
//
// When all places are taken, a connection that has not asked yet gives way to a new one, silent ones first: nobody
// keeps others out by connecting. Under TLS an address has a few places for connections that have proven nothing.
//
// Thread rule: a thread of its own calls `answer`. Lifetime: that thread ends with the Listener.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <hawser/time.h>

#include "base/events.h"
#include "base/fd.h"
#include "compat/served_link.h"
#include "compat/trust.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr std::size_t kLinksMax = 64;                          ///< Open at once; others wait outside.
inline constexpr std::size_t kLinkBytesMax = std::size_t{128} << 20;  ///< Held by all of them together.

class Listener {
 public:
  using Answer = ServedLink::Answer;
  /// Why an asker at that address was not let in. Called by the listener's thread.
  using Refused = std::function<void(const std::string& address, const Status& why)>;
  /// Port 0: any. The error names the address.
  static Result<std::unique_ptr<Listener>> open(const std::string& host, std::uint16_t port, Trust trust, Answer answer,
                                                Refused refused = nullptr);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const { return port_; }
  /// In a forked child: the thread is not here.
  void disown();

 private:
  Listener(base::Fd socket, base::EventFd wake, std::uint16_t port, Trust trust, Answer answer, Refused refused);
  void run();
  /// When it may accept again; max: only after something else has happened.
  Instant accepts_at(Instant now) const;
  void accept_some(Instant now);
  const ServedLink* too_many_of(const base::SocketAddress& address) const;
  void tell(const std::string& address, const Status& why);
  bool move_on(ServedLink& link);
  /// Which of them gives way next; null: none may.
  const ServedLink* victim(Instant now) const;
  void bound_bytes();

  const base::Fd socket_;
  const base::EventFd wake_;
  const std::uint16_t port_;
  const Trust trust_;
  const Answer answer_;
  const Refused refused_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<ServedLink>> links_;  ///< At most kLinksMax, the oldest first.
  Instant accept_after_ = Instant::min();           ///< The process had no descriptor left.
  std::thread thread_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
