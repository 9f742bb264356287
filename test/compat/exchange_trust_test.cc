// Metadata by address where a kernel does not tell who owns the other end: both ends prove that they can read the
// user's cookie, or nothing is asked and nothing answered.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <string>

#include "base/address.h"
#include "compat/asks.h"
#include "compat/listener.h"

namespace hawser::compat {
namespace {

using namespace std::chrono_literals;

base::FarEnd cannot_ask(int, std::string* why) {
  if (why != nullptr) *why = "the kernel does not say";
  return base::FarEnd::kCannotAsk;
}
base::FarEnd is_other_user(int, std::string* why) {
  if (why != nullptr) *why = "it runs as somebody else";
  return base::FarEnd::kOtherUser;
}
Result<base::Id128> cookie() { return base::Id128{1, 2}; }
Result<base::Id128> other_cookie() { return base::Id128{1, 3}; }
Result<base::Id128> no_cookie() { return Status(Code::kDenied, "the folder belongs to user 7"); }

constexpr Trust kKernel = {.cookie = no_cookie};
constexpr Trust kCookie = {.far_end = cannot_ask, .cookie = cookie};
constexpr Trust kOtherCookie = {.far_end = cannot_ask, .cookie = other_cookie};
constexpr Trust kNoCookie = {.far_end = cannot_ask, .cookie = no_cookie};
constexpr Trust kOtherUser = {.far_end = is_other_user, .cookie = cookie};
/// The kernel tells it, and the other end may be proven to.
constexpr Trust kBoth = {.cookie = cookie};

/// A listener of one trust that is asked by one of another.
class Pair {
 public:
  explicit Pair(Trust listener)
      : listener_(Listener::open("127.0.0.1", 0, listener, [this](const Frame& question) {
                    ++asked_;
                    return Frame{.kind = Frame::Kind::kDone, .body = question.body};
                  }).value()) {}

  Result<Frame> ask(Trust trust, const std::string& body = "keys") {
    std::promise<Result<Frame>> answer;
    auto asks = Asks::open(trust, [&](const AskJob&, Result<Frame> its) { answer.set_value(std::move(its)); }).value();
    EXPECT_TRUE(asks->add({.call = "ask",
                           .frame = {.kind = Frame::Kind::kLoad, .name = "n", .body = body},
                           .address = base::numeric_address({"127.0.0.1", listener_->port()}).value()})
                    .ok());
    return answer.get_future().get();
  }
  std::string denied(Trust trust) {
    const Result<Frame> answer = ask(trust);
    if (!answer) return answer.error().code() == Code::kDenied ? answer.error().to_string() : "another code";
    return answer->kind == Frame::Kind::kRefused ? answer->body : "it was let in";
  }
  int asked() const { return asked_; }
  std::uint16_t port() const { return listener_->port(); }

 private:
  std::atomic<int> asked_{0};
  std::unique_ptr<Listener> listener_;
};

bool is_done(const Result<Frame>& answer) {
  return answer && answer->kind == Frame::Kind::kDone && answer->body == "keys";
}

TEST(TrialsExchangeTrust, EitherEndMayAskForProof) {
  EXPECT_TRUE(is_done(Pair(kCookie).ask(kCookie)));
  EXPECT_TRUE(is_done(Pair(kBoth).ask(kCookie))) << "the asker's kernel tells nothing";
  EXPECT_TRUE(is_done(Pair(kCookie).ask(kBoth))) << "the listener's kernel tells nothing";
  EXPECT_TRUE(is_done(Pair(kKernel).ask(kKernel))) << "no cookie is needed";
  EXPECT_TRUE(is_done(Pair({.everybody = true}).ask({.everybody = true})));
}

TEST(TrialsExchangeTrust, AQuestionBeyondOnePieceIsAskedOnceProven) {
  const std::string body(3 << 20, 'k');
  const Result<Frame> answer = Pair(kCookie).ask(kCookie, body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, body);
}

TEST(TrialsExchangeTrust, WhoCannotProveItIsToldWhyAndAsksNothing) {
  for (const Trust listener : {kCookie, kBoth}) {
    Pair pair(listener);
    EXPECT_NE(pair.denied(kOtherCookie).find("cannot read this user's cookie"), std::string::npos);
    EXPECT_NE(pair.denied(kNoCookie).find("belongs to user 7"), std::string::npos);
    EXPECT_NE(pair.denied(kOtherUser).find("somebody else"), std::string::npos);
    EXPECT_EQ(pair.asked(), 0);
  }
  Pair pair(kNoCookie);
  EXPECT_NE(pair.denied(kCookie).find("belongs to user 7"), std::string::npos) << "the listener lacks it";
  EXPECT_EQ(pair.asked(), 0);
}

/// What a listener says to one who speaks by hand, until it closes.
std::string said_to(std::uint16_t port, const std::string& words) {
  const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = base::numeric_address({"127.0.0.1", port}).value();
  EXPECT_EQ(::connect(fd.get(), address.get(), address.size), 0);
  std::string heard(kFrameHead + 1 + kNonceBytes, '\0');
  EXPECT_EQ(::recv(fd.get(), heard.data(), heard.size(), MSG_WAITALL), static_cast<ssize_t>(heard.size()));
  (void)::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL);
  char byte = 0;
  while (::recv(fd.get(), &byte, 1, 0) == 1) heard.push_back(byte);
  return heard;
}

// It is not known yet who listens there.
TEST(TrialsExchangeTrust, AListenerHasLittleRoomBeforeItIsTrusted) {
  const auto answer_to = [](std::size_t size) {
    const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    base::SocketAddress address = base::numeric_address({"127.0.0.1", 0}).value();
    EXPECT_EQ(::bind(listener.get(), address.get(), address.size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), address.get(), &address.size), 0);
    std::promise<Result<Frame>> answer;
    auto asks =
        Asks::open(kKernel, [&](const AskJob&, Result<Frame> its) { answer.set_value(std::move(its)); }).value();
    EXPECT_TRUE(asks->add({.call = "ask", .frame = {.kind = Frame::Kind::kAsk, .name = "n"}, .address = address}).ok());
    const base::Fd taken(::accept(listener.get(), nullptr, nullptr));
    const std::string words = encode_frame({.kind = Frame::Kind::kRefused, .body = std::string(size, 'x')});
    // Of a frame that is too large the head tells enough.
    const std::size_t said = size > 4096 ? kFrameHead : words.size();
    EXPECT_EQ(::send(taken.get(), words.data(), said, MSG_NOSIGNAL), static_cast<ssize_t>(said));
    return answer.get_future().get();
  };
  const Result<Frame> fits = answer_to(4096);
  ASSERT_TRUE(fits);
  EXPECT_EQ(fits->kind, Frame::Kind::kRefused);
  EXPECT_EQ(answer_to(4097).error().code(), Code::kCorrupt);
}

TEST(TrialsExchangeTrust, AnUnprovenAskerHasNoRoomForAQuestion) {
  Pair pair(kCookie);
  const std::string question = encode_frame({.kind = Frame::Kind::kLoad, .body = std::string(1 << 20, 'x')});
  EXPECT_NE(said_to(pair.port(), question.substr(0, kFrameHead)).find("no proof came"), std::string::npos);
  const std::string short_proof = encode_frame({.kind = Frame::Kind::kProve, .body = std::string(47, 'x')});
  EXPECT_NE(said_to(pair.port(), short_proof).find("another size"), std::string::npos);
  const std::string large_proof = encode_frame({.kind = Frame::Kind::kProve, .body = std::string(1 << 20, 'x')});
  EXPECT_NE(said_to(pair.port(), large_proof.substr(0, kFrameHead)).find("another size"), std::string::npos);
  EXPECT_EQ(pair.asked(), 0);
}

}  // namespace
}  // namespace hawser::compat
