// Metadata by address where a kernel does not tell who owns the other end: both ends prove that they can read the
// user's cookie, or nothing is asked and nothing answered.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/mutex.h"
#include "compat/asks.h"
#include "compat/listener.h"
#include "identity/test_authority.h"

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
      : listener_(Listener::open(
                      "127.0.0.1", 0, listener,
                      [this](const Frame& question) {
                        ++asked_;
                        return Frame{.kind = Frame::Kind::kDone, .body = question.body};
                      },
                      [this](const std::string& address, const Status& why) {
                        const base::MutexLock lock(mutex_);
                        refusals_.push_back(address + " " + why.to_string());
                        told_.notify_all();
                      })
                      .value()) {}

  /// `about`: the agent that the question names. `from`: the agent that has to answer.
  Result<Frame> ask(Trust trust, const std::string& body = "keys", const std::string& about = "here",
                    const std::string& from = {}) {
    std::promise<Result<Frame>> answer;
    auto asks = Asks::open(trust, [&](const AskJob&, Result<Frame> its) { answer.set_value(std::move(its)); }).value();
    EXPECT_TRUE(asks->add({.call = "ask",
                           .name = from,
                           .frame = {.kind = Frame::Kind::kLoad, .name = about, .body = body},
                           .address = base::numeric_address({"127.0.0.1", listener_->port()}).value()})
                    .ok());
    return answer.get_future().get();
  }
  std::string denied(Trust trust, const std::string& about = "here", const std::string& from = {}) {
    const Result<Frame> answer = ask(trust, "keys", about, from);
    if (!answer) return answer.error().code() == Code::kDenied ? answer.error().to_string() : "another code";
    return answer->kind == Frame::Kind::kRefused ? answer->body : "it was let in";
  }
  int asked() const { return asked_; }
  std::uint16_t port() const { return listener_->port(); }
  /// What was told of the only one that was not let in. The asker may hear of it before it is told here.
  std::string refusal() {
    const base::MutexLock lock(mutex_);
    const Instant end = Clock::steady().now() + 60s;
    while (refusals_.empty() && told_.wait_until(mutex_, end)) {
    }
    return refusals_.size() == 1 ? refusals_[0] : std::to_string(refusals_.size()) + " were told";
  }

 private:
  std::atomic<int> asked_{0};
  base::Mutex mutex_;
  base::CondVar told_;
  std::vector<std::string> refusals_ HAWSER_GUARDED_BY(mutex_);
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

bool is_never_near(const base::SocketAddress&) { return false; }

/// Agents with identities whose every address counts as another host's.
class TrialsExchangeIdentity : public testing::Test {
 protected:
  using Desk = std::unique_ptr<IdentityDesk>;
  using Own = std::shared_ptr<identity::Authenticator>;
  /// The agent `name` has it, with the certificate that the authority issued to `identity`.
  static Result<Own> own(identity::TestAuthority& authority, const std::string& name, const std::string& identity) {
    auto opened = identity::Authenticator::open({.agent = name, .folder = authority.issue_to(identity), .period = 10s},
                                                base::Logger());
    if (!opened) return opened.error();
    return Own(*std::move(opened));
  }
  static Desk desk(identity::TestAuthority& authority, const std::string& name, const std::string& identity) {
    return IdentityDesk::open(name, own(authority, name, identity).value()).value();
  }
  static Trust far(const Desk& desk) {
    return {.desk = desk.get(), .is_near = is_never_near, .far_end = is_other_user};
  }

  identity::TestAuthority authority_;
  Desk here_ = desk(authority_, "here", "here"), there_ = desk(authority_, "there", "there");
};

TEST_F(TrialsExchangeIdentity, ThoseOfOneDomainExchangeUnderTls) {
  Pair pair(far(there_));
  EXPECT_TRUE(is_done(pair.ask(far(here_))));
  const std::string body(5 << 20, 'k');
  const Result<Frame> answer = pair.ask(far(here_), body);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->body, body);
}

TEST_F(TrialsExchangeIdentity, AnotherAuthoritysIdentityIsRefusedAtEitherEnd) {
  identity::TestAuthority other;
  const Desk stranger = desk(other, "here", "here");
  Pair pair(far(there_)), others(far(stranger));
  EXPECT_THAT(pair.denied(far(stranger)), testing::HasSubstr("authorit"));
  EXPECT_EQ(pair.asked(), 0);
  EXPECT_THAT(pair.refusal(), testing::AllOf(testing::HasSubstr("127.0.0.1:"), testing::HasSubstr("authorit")));
  EXPECT_THAT(others.denied(far(here_)), testing::HasSubstr("authorit")) << "the asker looks at the listener's, too";
  EXPECT_EQ(others.asked(), 0);
}

TEST_F(TrialsExchangeIdentity, AnAgentSpeaksForItselfAlone) {
  Pair pair(far(there_));
  EXPECT_THAT(pair.denied(far(here_), "another"), testing::HasSubstr("agent 'here', and speaks for 'another'"));
  EXPECT_THAT(pair.refusal(), testing::HasSubstr("speaks for 'another'"));
  EXPECT_THAT(pair.denied(far(here_), "here", "another"), testing::HasSubstr("agent 'there' answers at"));
  EXPECT_EQ(pair.asked(), 0);
  EXPECT_TRUE(is_done(pair.ask(far(here_), "keys", "here", "there")));
}

base::Fd connect_from(const std::string& source, std::uint16_t port) {
  base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto own = base::numeric_address({source, 0}).value(), its = base::numeric_address({"127.0.0.1", port}).value();
  EXPECT_EQ(::bind(fd.get(), own.get(), own.size), 0);
  EXPECT_EQ(::connect(fd.get(), its.get(), its.size), 0);
  return fd;
}

// Whoever goes through TLS and proves nothing learns nothing, not even who listens there.
TEST_F(TrialsExchangeIdentity, AStrangerUnderTlsIsToldNothing) {
  Pair pair(far(there_));
  const base::Fd fd = connect_from("127.0.0.1", pair.port());
  const auto session = here_->open_session(tls::End::kOpener).value();
  const auto until = Clock::steady().now() + 1s;
  std::string heard;
  const timeval patience = {.tv_sec = 0, .tv_usec = 100'000};
  ASSERT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  while (Clock::steady().now() < until) {
    ASSERT_TRUE(session->is_up() || session->handshake().ok());
    const auto bytes = session->to_send();
    if (!bytes.empty()) session->sent(static_cast<std::size_t>(::send(fd.get(), bytes.data(), bytes.size(), 0)));
    const auto room = session->room();
    if (const ssize_t count = ::recv(fd.get(), room.data(), room.size(), 0); count > 0) {
      session->came(static_cast<std::size_t>(count));
    }
    std::array<char, 64> piece;
    const iovec part = {.iov_base = piece.data(), .iov_len = piece.size()};
    if (session->is_up()) heard.append(piece.data(), session->read({&part, 1}).value());
  }
  EXPECT_TRUE(session->is_up());
  EXPECT_EQ(heard, "");
}

TEST_F(TrialsExchangeIdentity, AFloodFromOneAddressTakesFewPlaces) {
  constexpr std::size_t kFew = 16, kMany = 60;
  Pair pair(far(there_));
  std::vector<base::Fd> flood;
  for (std::size_t i = 0; i < kMany; ++i) {
    flood.push_back(connect_from("127.0.0.2", pair.port()));
    ASSERT_EQ(::send(flood.back().get(), "\x16", 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_TRUE(is_done(pair.ask(far(here_)))) << "of another address";
  std::size_t open = 0;
  for (const base::Fd& fd : flood) {
    char byte = 0;
    open += ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN ? 1 : 0;
  }
  EXPECT_EQ(open, kFew);
}

// The agent learns of the list by its directory, and shares what it knows with the desk.
TEST_F(TrialsExchangeIdentity, WhoIsRevokedByAListThatTheAgentTookIsRefusedAtEitherEnd) {
  const Own known = own(authority_, "there", "there").value();
  const Desk there = IdentityDesk::open("there", known).value();
  Pair pair(far(there)), others(far(here_));
  EXPECT_TRUE(is_done(pair.ask(far(here_))));
  EXPECT_TRUE(is_done(others.ask(far(there), "keys", "there")));
  ASSERT_TRUE(authority_.get().revoke("here", identity::unix_seconds()).has_value());
  ASSERT_TRUE(known->take_revoked(*authority_.get().revoked(), "a list").ok());
  EXPECT_THAT(pair.denied(far(here_)), testing::HasSubstr("revoked"));
  EXPECT_EQ(pair.asked(), 1);
  EXPECT_THAT(others.denied(far(there), "there"), testing::HasSubstr("revoked"))
      << "the asker looks at the listener's, too";
  EXPECT_EQ(others.asked(), 1);
}

TEST_F(TrialsExchangeIdentity, ANameThatTheIdentityDoesNotAllowOpensNoDesk) {
  const auto opened = own(authority_, "prefill", "decode");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kDenied);
}

TEST_F(TrialsExchangeIdentity, WhoHasNoneHearsNothingAndIsHeardNot) {
  Pair secured(far(there_)), plain(kKernel);
  const Result<Frame> silent = secured.ask({.everybody = true});
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code(), Code::kTimedOut) << silent.error().to_string();
  const Result<Frame> unheard = plain.ask(far(here_));
  ASSERT_FALSE(unheard);
  EXPECT_EQ(unheard.error().code(), Code::kCorrupt) << unheard.error().to_string();
  EXPECT_EQ(secured.asked() + plain.asked(), 0);
}

TEST_F(TrialsExchangeIdentity, GarbageEndsTheConnectionAndOthersAreServed) {
  Pair pair(far(there_));
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\0'),
                                     std::string("\x16\x03\x01\x00\xff") + std::string(300, 'x')}) {
    const base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = base::numeric_address({"127.0.0.1", pair.port()}).value();
    ASSERT_EQ(::connect(fd.get(), address.get(), address.size), 0);
    (void)::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(is_done(pair.ask(far(here_))));
    std::string rest(4096, '\0');
    while (::recv(fd.get(), rest.data(), rest.size(), 0) > 0) continue;  // An alert, and the end.
  }
  EXPECT_EQ(pair.asked(), 3);
}

}  // namespace
}  // namespace hawser::compat
