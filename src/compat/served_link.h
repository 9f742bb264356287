#pragma once

// ServedLink: one connection at an agent's metadata listener, without waiting: a welcome goes out, a question comes in,
// its answer goes out. An asker of whom the kernel tells nothing proves itself first, under TLS before the welcome.
// Until then it is given a few bytes of room.
//
// Thread rule: confined to the listener's thread.

#include <cstddef>
#include <functional>
#include <string>

#include <hawser/time.h>

#include "compat/channel.h"
#include "compat/frame.h"
#include "compat/trust.h"
#include "compat/vouch.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr Duration kLinkTime = std::chrono::seconds(5);    ///< From its opening to its end.
inline constexpr Duration kSilentTime = std::chrono::seconds(2);  ///< Of that, until its first bytes.

class ServedLink {
 public:
  using Answer = std::function<Frame(const Frame&)>;
  /// `is_known`: the asker may ask, once the channel lets it speak. Else it has to prove itself.
  ServedLink(Channel channel, const base::SocketAddress& address, Instant now, bool is_known, const Trust& trust);

  int fd() const { return channel_.fd(); }
  /// What to poll for.
  short events() const { return channel_.events(!saying_.empty()); }
  /// The asker's.
  const base::SocketAddress& address() const { return address_; }
  Instant opened() const { return opened_; }
  /// When its time is over.
  Instant end() const { return opened_ + (is_silent() ? kSilentTime : kLinkTime); }
  /// So long it keeps its place, whoever else comes: one that means well has asked by then.
  Instant kept_until() const;
  /// It is under TLS, and the asker has not proven yet who it is.
  bool is_unproven() const { return channel_.is_secured() && !channel_.is_proven(); }
  /// Nothing came on it yet.
  bool is_silent() const { return !channel_.has_heard(); }
  /// Its question is not whole yet.
  bool is_asking() const { return !is_answering_; }
  std::size_t held() const { return received_.size() + saying_.size(); }
  /// The socket is ready. Calls `answer` when the question is whole. False: it is over.
  bool move_on(const Answer& answer);
  /// Why the asker was not let in. Told once.
  Status take_refusal() { return std::exchange(refusal_, Status()); }

 private:
  bool receive(const Answer& answer);
  void take(std::string_view bytes, const Answer& answer);
  bool send();
  bool on_failure(const Status& why);
  Frame last_word(const Status& why);
  Status check_name(const Frame& frame) const;
  Frame on_frame(const Frame& frame, const Answer& answer);
  Result<Frame> on_proof(const Frame& proof);
  void say(const Frame& frame);

  Channel channel_;
  const base::SocketAddress address_;
  const Instant opened_;
  const Trust trust_;
  const std::string nonce_ = fresh_nonce();
  std::string received_, saying_;
  std::size_t sent_ = 0;
  bool is_known_ = false;
  bool is_answering_ = false;  ///< What it says is its last word.
  Status refusal_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
