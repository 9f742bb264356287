#pragma once

// Channel: the bytes of one connection of the exchange by address, without waiting. Either in clear, or under TLS: then
// both ends prove their identities first (compat/identity_desk.h), and what is to be sent waits for that. The opener
// goes first: an acceptor signs nothing, and tells nobody who it is, before it knows who asks.
//
//   greeting = size:u8 of the name (1 to 255), name, proof (identity/proof.h)
//   refusal  = 0:u8, size:u16, text: what an acceptor says instead, and the last thing
//
// Thread rule: confined. Lifetime: the desk outlives it.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/fd.h"
#include "compat/identity_desk.h"
#include "identity/proof.h"
#include "tls/session.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class Channel {
 public:
  /// In clear.
  explicit Channel(base::Fd fd) : fd_(std::move(fd)) {}
  /// Under TLS. The opener is who connected. An error comes with the first bytes.
  Channel(base::Fd fd, IdentityDesk& desk, identity::Speaker self);

  int fd() const { return fd_.get(); }
  bool is_secured() const { return desk_ != nullptr; }
  /// What to poll for, where there is something to say or not.
  short events(bool has_to_say) const;
  /// Anything came.
  bool has_heard() const { return has_heard_; }
  /// What was taken is not all on its way yet.
  bool has_unsent() const { return session_ != nullptr && !session_->to_send().empty(); }

  /// Both ends have proven who they are.
  bool is_proven() const { return is_proven_; }
  /// The agent that the far end has proven to be. Empty before that, and in clear.
  std::string_view peer_name() const;

  /// Fills a prefix of `to`; 0: nothing is there now. Errors: kDisconnected (the far end has closed it), kDenied (one
  /// end has not let the other in; an acceptor's refusal may still be unsent), kCorrupt.
  Result<std::size_t> receive(std::span<char> to);
  /// Takes a prefix of `what`; 0: nothing now. Errors: as `receive`.
  Result<std::size_t> send(std::string_view what);

 private:
  Result<std::size_t> receive_plain(std::span<char> to);
  Result<std::size_t> send_plain(std::string_view what);
  Status move();
  Status pump_in();
  Status pump_out();
  Status advance();
  Status say(std::string_view words);
  Status greet();
  void refuse();
  Status hear_greeting();
  Result<std::size_t> greeting_size() const;

  base::Fd fd_;
  IdentityDesk* desk_ = nullptr;
  identity::Speaker self_ = identity::Speaker::kOpener;
  std::unique_ptr<tls::Session> session_;
  Status failed_;         ///< It could not be opened, or one end is not let in.
  std::string greeting_;  ///< The far end's, as far as it came.
  bool has_greeted_ = false, is_proven_ = false, has_heard_ = false;
};

}  // namespace compat
HAWSER_NAMESPACE_END
