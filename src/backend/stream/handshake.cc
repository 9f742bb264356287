#include "backend/stream/handshake.h"

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

Status ended(const Moved& moved, const Stream& stream) {
  if (!moved.status.ok()) return moved.status;
  return Status(Code::kDisconnected, base::format("the peer closed the connection ({})", stream.describe()))
      .with_scope(Scope::kPath);
}

std::string padded(const wire::Hello& hello) {
  std::string bytes = wire::encode(hello);
  bytes.resize(static_cast<std::size_t>(wire::padded(bytes.size())));
  base::store_little_endian(bytes.data() + 4, static_cast<std::uint16_t>(bytes.size() - wire::kHelloPrefix));
  return bytes;
}

void Handshake::say(const wire::Hello& hello) { out_ = padded(hello); }

Status Handshake::turn() {
  if (stream_->state() == StreamState::kConnecting) return Status();
  if (stream_->state() == StreamState::kClosed) return ended({.closed = true, .status = stream_->status()}, *stream_);
  HAWSER_TRY(send());
  return heard_ ? Status() : receive();
}

Status Handshake::send() {
  while (sent_ < out_.size()) {
    const iovec part = {out_.data() + sent_, out_.size() - sent_};
    const Moved moved = stream_->send({&part, 1});
    if (moved.closed) return ended(moved, *stream_);
    if (moved.bytes == 0) return Status();
    sent_ += moved.bytes;
  }
  return Status();
}

Status Handshake::receive() {
  while (!heard_) {
    const std::size_t had = in_.size();
    in_.resize(in_wanted_);
    const iovec part = {in_.data() + had, in_wanted_ - had};
    const Moved moved = stream_->receive({&part, 1});
    in_.resize(had + moved.bytes);
    if (moved.closed) return ended(moved, *stream_);
    if (in_.size() < in_wanted_) return Status();
    if (in_wanted_ == wire::kHelloPrefix) {
      HAWSER_TRY_ASSIGN(in_wanted_, wire::hello_size(base::as_bytes(in_)));
      if (in_wanted_ > wire::kHelloPrefix) continue;
    }
    Result<wire::Hello> hello = wire::decode_hello(base::as_bytes(in_), ours_);
    if (!hello && hello.error().code() != Code::kUnsupported) return hello.error();
    heard_ = true;
    if (hello) {
      hello_ = *std::move(hello);
    } else {
      misfit_ = hello.error();
    }
  }
  return Status();
}

}  // namespace hawser::backend::stream
