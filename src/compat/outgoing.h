#pragma once

// Long notifications on their way out: the parts of parts.h, sent ahead of what tells the peer to deliver them.
//
// Thread rule: Outgoing is thread-safe; a LongNotification belongs to one thread at a time. Lifetime: Outgoing outlives
// its LongNotifications, and the text outlives the one that sends it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/peer.h>
#include <hawser/status.h>

#include "base/mutex.h"
#include "compat/parts.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// Numbers bodies, and bounds those that are under way to each peer.
class Outgoing {
 public:
  /// To one peer: two of the longest. What is sent waits unread in the peer's inbox, or for its transfer there.
  static constexpr std::size_t kBytesMax = 2 * kNotificationMax;

  /// A number for a body. 0: too much is under way to this peer.
  std::uint64_t begin(const Peer& peer, std::size_t bytes);
  /// The peer has it or is gone: it is not under way any more.
  void end(const Peer& peer, std::uint64_t id);
  /// Tells the peer to drop a body that was begun. Where there is no room for this word, it is owed, and the body is
  /// under way until then.
  void drop(const Peer& peer, std::uint64_t id);
  void pay(const Peer& peer);

 private:
  struct Flow {
    Peer peer;
    std::map<std::uint64_t, std::size_t> bodies = {};  ///< Number and bytes.
    std::vector<std::uint64_t> owed = {};              ///< Those of them that are to be dropped.
    std::size_t bytes = 0;
  };
  base::Mutex mutex_;
  std::uint64_t next_ HAWSER_GUARDED_BY(mutex_) = 1;
  std::map<const void*, Flow> flows_ HAWSER_GUARDED_BY(mutex_);  ///< Peers to which something is under way.
};

/// One notification that does not go in one. When it goes before its reference was told, the peer is told to drop it.
class LongNotification {
 public:
  LongNotification(Outgoing& all, Peer peer, std::string_view text) : all_(all), peer_(std::move(peer)), text_(text) {}
  LongNotification(const LongNotification&) = delete;
  LongNotification& operator=(const LongNotification&) = delete;
  ~LongNotification();

  /// Sends what there is room for. Good: all of it is sent. kBusy: go on later. Else it failed.
  Status pump();
  std::size_t sent() const { return sent_; }
  /// What the peer is to get as a notification, once all is sent.
  std::string reference() const;
  /// The reference was sent, or came with its transfer.
  void told() { told_ = true; }
  /// In a child of the process that began it: the rest is the parent's.
  void disown() { id_ = 0; }

 private:
  Outgoing& all_;
  const Peer peer_;
  const std::string_view text_;
  std::uint64_t id_ = 0;
  std::size_t sent_ = 0;
  bool told_ = false;
};

}  // namespace compat
HAWSER_NAMESPACE_END
