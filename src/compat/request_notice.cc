#include "compat/request_notice.h"

#include "base/format.h"
#include "compat/parts.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

void RequestNotice::end(bool came) {
  if (body_ && (is_told_ || (!is_apart_ && came))) body_->told();
  body_.reset();
}

void RequestNotice::disown() {
  if (body_) body_->disown();
}

Result<std::string> RequestNotice::carried() {
  if (goes_in_one(*text_)) return is_marked(*text_) ? encode_part({.bytes = *text_}) : *text_;
  if (!body_) body_.emplace(sender_.outgoing(), peer_, *text_);
  const std::size_t before = body_->sent();
  const Status status = body_->pump();
  if (body_->sent() != before) found_room();
  if (!status.ok()) return status;
  return body_->reference();
}

void RequestNotice::go_apart() {
  is_apart_ = true;
  room_until_ = clock_.now() + kRoomPatience;
}

void RequestNotice::found_room() {
  sender_.room_watch().room(peer_);
  room_until_ = clock_.now() + kRoomPatience;
}

void RequestNotice::pump() {
  if (is_apart_ && body_) (void)body_->pump();
}

Result<bool> RequestNotice::tell() {
  const Result<std::string> text = carried();
  const Status status = text ? peer_.notify(*text) : text.error();
  is_told_ = status.ok();
  if (is_told_) {
    found_room();
    return false;
  }
  if (status.code() != Code::kBusy) return status;
  const Instant now = clock_.now();
  sender_.room_watch().no_room(peer_, now);
  if (now < room_until_) return true;
  constexpr auto kSeconds = std::chrono::duration_cast<std::chrono::seconds>(kRoomPatience).count();
  return Status(Code::kBusy, base::format("the data is there, but the inbox of agent '{}' had no room for the "
                                          "notification for {} s",
                                          peer_.name(), kSeconds))
      .with_peer(peer_.name())
      .with_buffer(BufferState::kComplete)
      .with_advice("the peer must take its notifications; then post again, or send the notification alone");
}

std::optional<std::size_t> RequestNotice::sending(bool is_moving) const {
  if (is_settled()) return std::nullopt;
  if (body_ && body_->sent() < text_->size()) return body_->sent();
  if (is_moving) return std::nullopt;
  return text_->size();
}

}  // namespace compat
HAWSER_NAMESPACE_END
