#pragma once

// ServedLink: one connection at an agent's metadata listener, without waiting: a question comes in, its answer goes
// out.
//
// Thread rule: confined to the listener's thread.

#include <cstddef>
#include <functional>
#include <string>

#include <hawser/time.h>

#include "base/fd.h"
#include "compat/frame.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr Duration kLinkTime = std::chrono::seconds(5);    ///< From its opening to its end.
inline constexpr Duration kSilentTime = std::chrono::seconds(2);  ///< Of that, until its first bytes.

class ServedLink {
 public:
  using Answer = std::function<Frame(const Frame&)>;
  ServedLink(base::Fd fd, Instant now) : fd_(std::move(fd)), opened_(now) {}

  int fd() const { return fd_.get(); }
  /// What to poll for.
  short events() const;
  Instant opened() const { return opened_; }
  /// When its time is over.
  Instant end() const { return opened_ + (is_silent() ? kSilentTime : kLinkTime); }
  /// Nothing came on it yet.
  bool is_silent() const { return received_.empty() && !is_answering_; }
  /// Its question is not whole yet.
  bool is_asking() const { return !is_answering_; }
  std::size_t held() const { return received_.size() + answer_.size(); }
  /// The socket is ready. Calls `answer` when the question is whole. False: it is over.
  bool move_on(const Answer& answer);

 private:
  bool receive(const Answer& answer);
  bool send();

  base::Fd fd_;
  const Instant opened_;
  std::string received_, answer_;
  std::size_t sent_ = 0;
  bool is_answering_ = false;
};

}  // namespace compat
HAWSER_NAMESPACE_END
