#include "compat/served_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kServedPiece = 65536;

constexpr std::size_t kProofBytes = kNonceBytes + kVouchBytes;

/// Why this does not come now: of an asker that is not known there is room for a proof.
Status check_head(const FrameHead& head, bool is_known) {
  if (head.kind == Frame::Kind::kProve) {
    const bool fits = head.name_size == 0 && head.body_size == kProofBytes;
    return fits ? Status() : not_trusted("the asker's proof has another size");
  }
  if (!is_known) return not_trusted("the listener's kernel does not tell who asks, and no proof came");
  return is_question(head.kind) ? Status() : Status(Code::kInvalid, "an answer that nobody asked for");
}

}  // namespace

ServedLink::ServedLink(Channel channel, const base::SocketAddress& address, Instant now, bool is_known,
                       const Trust& trust)
    : channel_(std::move(channel)), address_(address), opened_(now), trust_(trust), is_known_(is_known) {
  say({.kind = Frame::Kind::kWelcome, .body = std::string(1, is_known ? '\0' : '\1') + nonce_});
}

bool ServedLink::move_on(const Answer& answer) { return saying_.empty() ? receive(answer) : send(); }

/// The asker is not let in.
Frame ServedLink::last_word(const Status& why) {
  refusal_ = why;
  is_answering_ = true;
  return {.kind = Frame::Kind::kRefused, .body = why.to_string()};
}

/// True: the asker has still to be told.
bool ServedLink::on_failure(const Status& why) {
  const bool is_first = refusal_.ok() && !is_answering_;
  if (is_first && why.code() != Code::kDisconnected) refusal_ = why;
  is_answering_ = true;
  std::string().swap(saying_);
  return why.code() == Code::kDenied && channel_.has_unsent();
}

Instant ServedLink::kept_until() const {
  constexpr Duration kNear = std::chrono::milliseconds(20), kUnderTls = std::chrono::seconds(1);
  return opened_ + (channel_.is_secured() ? kUnderTls : kNear);
}

void ServedLink::say(const Frame& frame) {
  saying_ = encode_frame(frame);
  sent_ = 0;
}

bool ServedLink::receive(const Answer& answer) {
  std::array<char, kServedPiece> piece;
  // Under TLS the socket does not tell of what has come already.
  while (saying_.empty()) {
    const Result<std::size_t> count = channel_.receive(piece);
    if (!count) return on_failure(count.error());
    if (*count == 0) return true;
    take(std::string_view(piece.data(), *count), answer);
    if (!channel_.is_secured()) return true;
  }
  return true;
}

void ServedLink::take(std::string_view bytes, const Answer& answer) {
  received_.append(bytes);
  // Only a whole head says how long it is; looking for a frame costs nothing until its last byte is there.
  const Result<std::optional<Frame>> frame = decode_frame(received_);
  Status status = frame.status();
  const std::optional<FrameHead> head = head_of(received_);
  if (status.ok() && head) status = check_head(*head, is_known_);
  if (status.ok() && !*frame) return;
  say(status.ok() ? on_frame(**frame, answer) : last_word(status));
  std::string().swap(received_);
}

Frame ServedLink::on_frame(const Frame& frame, const Answer& answer) {
  if (frame.kind == Frame::Kind::kProve) {
    Result<Frame> proven = on_proof(frame);
    is_known_ = is_known_ || proven;
    return proven ? *std::move(proven) : last_word(proven.error());
  }
  if (const Status status = check_name(frame); !status.ok()) return last_word(status);
  is_answering_ = true;
  return answer(frame);
}

/// An agent changes what is known of itself alone.
Status ServedLink::check_name(const Frame& frame) const {
  const bool changes = frame.kind == Frame::Kind::kLoad || frame.kind == Frame::Kind::kInvalidate;
  if (!changes || !channel_.is_secured() || frame.name == channel_.peer_name()) return {};
  return not_trusted(base::format("the asker has proven to be agent '{}', and speaks for '{}'",
                                  base::shown(channel_.peer_name()), base::shown(frame.name)));
}

Result<Frame> ServedLink::on_proof(const Frame& proof) {
  HAWSER_TRY_ASSIGN(const base::Id128 cookie, trust_.cookie());
  HAWSER_TRY_ASSIGN(const Ends ends, ends_of(channel_.fd(), Role::kListener));
  const std::string_view body = proof.body;
  const Nonces nonces = {.listener = nonce_, .asker = std::string(body.substr(0, kNonceBytes))};
  if (!is_vouch(body.substr(kNonceBytes), cookie, Role::kAsker, nonces, ends)) {
    return not_trusted("the asker cannot read this user's cookie");
  }
  return Frame{.kind = Frame::Kind::kProven, .body = vouch(cookie, Role::kListener, nonces, ends)};
}

bool ServedLink::send() {
  const Result<std::size_t> count = channel_.send(std::string_view(saying_).substr(sent_));
  if (!count) return on_failure(count.error());
  sent_ += *count;
  if (sent_ < saying_.size() || channel_.has_unsent()) return true;
  std::string().swap(saying_);
  return !is_answering_;
}

}  // namespace compat
HAWSER_NAMESPACE_END
