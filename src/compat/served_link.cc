#include "compat/served_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kServedPiece = 65536;

Frame refused(const Status& status) { return {.kind = Frame::Kind::kRefused, .body = status.to_string()}; }

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

ServedLink::ServedLink(Channel channel, std::string address, Instant now, bool is_known, const Trust& trust)
    : channel_(std::move(channel)), address_(std::move(address)), opened_(now), trust_(trust), is_known_(is_known) {
  say({.kind = Frame::Kind::kWelcome, .body = std::string(1, is_known ? '\0' : '\1') + nonce_});
}

bool ServedLink::move_on(const Answer& answer) { return saying_.empty() ? receive(answer) : send(); }

/// Its last word, if the far end is there to hear it.
void ServedLink::refuse(const Status& why) {
  refusal_ = why;
  is_answering_ = true;
  say(refused(why));
  std::string().swap(received_);
}

/// True: it has still to be told.
bool ServedLink::on_failure(const Status& why) {
  if (why.code() == Code::kDisconnected) return false;
  if (why.code() != Code::kDenied || is_answering_) {
    refusal_ = why;
    return false;
  }
  refuse(why);
  return true;
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
  if (!status.ok()) return refuse(status);
  say(on_frame(**frame, answer));
  std::string().swap(received_);
}

Frame ServedLink::on_frame(const Frame& frame, const Answer& answer) {
  if (frame.kind == Frame::Kind::kProve) {
    Result<Frame> proven = on_proof(frame);
    is_answering_ = !proven;
    is_known_ = is_known_ || proven;
    if (!proven) refusal_ = proven.error();
    return proven ? *std::move(proven) : refused(proven.error());
  }
  is_answering_ = true;
  return answer(frame);
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
