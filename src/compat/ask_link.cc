#include "compat/ask_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kPiece = 65536;
/// Of a listener that is not trusted yet: a welcome, a proof, or why it refuses.
constexpr std::size_t kGreetingMax = 4096;

Status lost(std::string_view what, int error) {
  return base::errno_status(Code::kDisconnected, base::format("metadata by address: {}", what), error);
}

Channel open_channel(const base::SocketAddress& address, const Trust& trust) {
  base::Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || !trust.is_secured(address)) return Channel(std::move(fd));
  return {std::move(fd), *trust.desk, identity::Speaker::kOpener};
}

}  // namespace

AskLink::AskLink(const base::SocketAddress& address, std::string_view name, std::string_view question, Trust trust)
    : address_(address), name_(name), question_(question), trust_(trust), channel_(open_channel(address, trust)) {
  if (fd() < 0) {
    end(base::errno_status("metadata by address: socket", errno));
  } else if (::connect(fd(), address_.get(), address_.size) != 0 && errno != EINPROGRESS) {
    end(lost(base::format("connecting to {}", where()), errno));
  }
}

short AskLink::events() const { return stage_ == Stage::kConnecting ? POLLOUT : channel_.events(!saying_.empty()); }

void AskLink::move_on() {
  if (outcome_) return;
  if (stage_ == Stage::kConnecting && !connected()) return;
  while (send() && receive()) continue;
}

bool AskLink::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    end(lost(base::format("connecting to {}", where()), error));
    return false;
  }
  stage_ = Stage::kWelcome;
  return true;
}

void AskLink::say(std::string_view what, Stage next) {
  saying_ = what;
  stage_ = next;
}

bool AskLink::send() {
  while (!saying_.empty()) {
    const Result<std::size_t> count = channel_.send(saying_);
    if (!count) fail("sending to", count.error());
    if (!count || *count == 0) return false;
    saying_.remove_prefix(*count);
  }
  return true;
}

void AskLink::fail(std::string_view doing, const Status& why) {
  if (why.code() == Code::kDenied) return end(not_trusted(base::format("{} is refused", where())).because(why));
  end(Status(why.code(), base::format("metadata by address: {} {}", doing, where())).because(why));
}

bool AskLink::receive() {
  std::array<char, kPiece> piece;
  const Result<std::size_t> count = channel_.receive(piece);
  if (!count) fail("waiting for the answer of", count.error());
  if (!count || *count == 0) return false;
  received_.append(piece.data(), *count);
  Result<std::optional<Frame>> frame = decode_frame(received_);
  const std::optional<FrameHead> head = head_of(received_);
  if (frame && head && stage_ != Stage::kAnswer && head->name_size + head->body_size > kGreetingMax) {
    frame = Status(Code::kCorrupt, base::format("metadata by address: {} greets with {} bytes, more than {}", where(),
                                                head->name_size + head->body_size, kGreetingMax));
  }
  if (!frame) {
    end(frame.error());
  } else if (*frame) {
    std::string().swap(received_);  // The listener says one thing at a time.
    on_frame(**std::move(frame));
  }
  return !outcome_;
}

void AskLink::on_frame(Frame frame) {
  const bool is_refusal = frame.kind == Frame::Kind::kRefused;
  if (stage_ == Stage::kWelcome && frame.kind == Frame::Kind::kWelcome) return on_welcome(frame);
  if (stage_ == Stage::kProving && frame.kind == Frame::Kind::kProven) return on_proven(frame);
  const bool is_answer = stage_ == Stage::kAnswer && frame.kind <= Frame::Kind::kRefused;
  if (is_answer || is_refusal) return end(std::move(frame));
  end(Status(Code::kCorrupt, base::format("metadata by address: {} said something that does not come now", where())));
}

/// Under TLS it has proven itself. Else it holds its end of the connection by now, so the kernel knows whose that is.
void AskLink::on_welcome(const Frame& welcome) {
  if (welcome.body.size() != 1 + kNonceBytes) {
    return end(Status(Code::kCorrupt, base::format("metadata by address: {} welcomes wrongly", where())));
  }
  if (channel_.is_secured()) {
    if (name_.empty() || channel_.peer_name() == name_) return say(question_, Stage::kAnswer);
    return end(not_trusted(base::format("agent '{}' answers at {}, not '{}'", base::shown(channel_.peer_name()),
                                        where(), base::shown(name_))));
  }
  std::string why;
  const base::FarEnd far_end = trust_.ask(fd(), &why);
  if (far_end == base::FarEnd::kNobody) {
    return end(Status(Code::kDisconnected, base::format("metadata by address: {} closed the connection", where())));
  }
  if (far_end != base::FarEnd::kSameUser && far_end != base::FarEnd::kCannotAsk) return end(not_trusted(why));
  const bool must_prove = welcome.body[0] != 0;
  if (far_end == base::FarEnd::kSameUser && !must_prove) return say(question_, Stage::kAnswer);
  nonces_ = {.listener = welcome.body.substr(1), .asker = fresh_nonce()};
  const Status failed = prove();
  if (!failed.ok()) end(not_trusted(why.empty() ? "the listener asks for proof" : why).because(failed));
}

Status AskLink::prove() {
  HAWSER_TRY_ASSIGN(const base::Id128 cookie, trust_.cookie());
  HAWSER_TRY_ASSIGN(const Ends ends, ends_of(fd(), Role::kAsker));
  proof_ =
      encode_frame({.kind = Frame::Kind::kProve, .body = nonces_.asker + vouch(cookie, Role::kAsker, nonces_, ends)});
  say(proof_, Stage::kProving);
  return {};
}

void AskLink::on_proven(const Frame& proven) {
  const Result<base::Id128> cookie = trust_.cookie();
  const Result<Ends> ends = ends_of(fd(), Role::kAsker);
  if (!cookie || !ends || !is_vouch(proven.body, *cookie, Role::kListener, nonces_, *ends)) {
    return end(not_trusted("the listener cannot read this user's cookie"));
  }
  say(question_, Stage::kAnswer);
}

}  // namespace compat
HAWSER_NAMESPACE_END
