#include "agent/status_desk.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// Says what it was asked, in pieces.
class Echo final : public StatusAnswer {
 public:
  Echo(std::string piece, int pieces, int later) : piece_(std::move(piece)), pieces_(pieces), later_(later) {}
  Step next(std::string& out, Instant) override {
    if (later_-- > 0) return Step::kLater;
    out += piece_;
    return --pieces_ > 0 ? Step::kMore : Step::kEnd;
  }

 private:
  std::string piece_;
  int pieces_, later_;
};

class StatusDeskTest : public testing::Test {
 protected:
  static constexpr int kPieces = 64;

  base::Fd call(std::string_view request = {}) {
    base::Fd caller = base::connect_to_user_socket(desk_->path()).value();
    if (!request.empty()) say(caller, request);
    return caller;
  }
  static void say(const base::Fd& caller, std::string_view text) {
    ASSERT_EQ(::send(caller.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// All that can be read now.
  static std::string read(const base::Fd& caller, bool* ended = nullptr) {
    std::string all;
    std::array<char, 65536> bytes;
    for (;;) {
      const ssize_t got = ::recv(caller.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (ended != nullptr) *ended = got == 0 || (got < 0 && errno == ECONNRESET);
      if (got <= 0) return all;
      all.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  /// Rounds as long as there is something to do, and no time passes.
  Instant serve() {
    Instant next = Instant::max();
    for (int i = 0; i < 10'000; ++i) {
      next = desk_->serve(now_);
      if (!desk_->has_news() && next > now_) break;
    }
    return next;
  }

  base::TestFolder folder_;
  Instant now_ = Instant::from_ns(1'000'000'000'000);
  std::unique_ptr<StatusDesk> desk_ =
      StatusDesk::open(folder_.path(), "desk", [](std::string_view request) -> std::unique_ptr<StatusAnswer> {
        if (request == "hello") return std::make_unique<Echo>("hello back\n", 1, 0);
        if (request == "later") return std::make_unique<Echo>("at last\n", 1, 3);
        if (request == "much") return std::make_unique<Echo>(std::string(65536, 'x'), kPieces, 0);
        return nullptr;
      }).value();
};

TEST_F(StatusDeskTest, ARequestHasItsAnswerAndThenTheConnectionEnds) {
  EXPECT_FALSE(desk_->has_news());
  const base::Fd caller = call("hello\n");
  EXPECT_TRUE(desk_->has_news());
  EXPECT_EQ(serve(), Instant::max());
  bool ended = false;
  EXPECT_EQ(read(caller, &ended), "hello back\n");
  EXPECT_TRUE(ended);
  EXPECT_EQ(desk_->callers(), 0u);
}

TEST_F(StatusDeskTest, ARequestMayComeInParts) {
  const base::Fd caller = call("hel");
  EXPECT_EQ(serve(), now_ + StatusDesk::kRequestTime);
  say(caller, "lo\nand more, which nobody reads");
  serve();
  EXPECT_EQ(read(caller), "hello back\n");
}

TEST_F(StatusDeskTest, WhatItDoesNotKnowItRefusesByName) {
  const base::Fd caller = call(std::string_view("\xff\x00 nonsense\n", 12));
  serve();
  EXPECT_NE(read(caller).find("no such request"), std::string::npos);
}

TEST_F(StatusDeskTest, ARequestIsOfBoundedLength) {
  const base::Fd fits = call(std::string(StatusDesk::kRequestMax - 1, 'x') + "\n");
  const base::Fd does_not = call(std::string(StatusDesk::kRequestMax, 'x') + "\n");
  serve();
  EXPECT_NE(read(fits).find("no such request"), std::string::npos);
  EXPECT_NE(read(does_not).find("longer than 256 bytes"), std::string::npos);
}

TEST_F(StatusDeskTest, AnAnswerThatMustWaitComesLaterWithoutSpinning) {
  const base::Fd caller = call("later\n");
  EXPECT_EQ(serve(), now_ + StatusDesk::kLookAgain);
  EXPECT_FALSE(desk_->has_news()) << "nothing is to be done before";
  EXPECT_EQ(read(caller), "");
  for (int i = 0; i < 3; ++i) {
    now_ = now_ + StatusDesk::kLookAgain;
    serve();
  }
  EXPECT_EQ(read(caller), "at last\n");
}

TEST_F(StatusDeskTest, AnAnswerGoesPieceByPieceAsItsCallerReads) {
  const base::Fd caller = call("much\n");
  serve();
  EXPECT_FALSE(desk_->has_news()) << "the socket is full";
  std::size_t got = 0;
  bool ended = false;
  for (int i = 0; i < 10'000 && !ended; ++i) {
    got += read(caller, &ended).size();
    now_ = now_ + 1ms;
    serve();
  }
  EXPECT_EQ(got, std::size_t{65536} * kPieces);
}

TEST_F(StatusDeskTest, ARoundMakesOnePieceAndCallersTakeTurns) {
  const base::Fd first = call("hello\n"), second = call("hello\n"), third = call("hello\n");
  desk_->serve(now_);  // Accepts them.
  const auto answers = [&] {
    int whole = 0;
    for (const base::Fd* each : {&first, &second, &third}) {
      char byte = 0;
      whole += ::recv(each->get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1 ? 1 : 0;
    }
    return whole;
  };
  for (const int whole : {1, 2, 3}) {
    EXPECT_LE(desk_->serve(now_), whole < 3 ? now_ : Instant::max()) << "it is due again at once while one waits";
    EXPECT_EQ(answers(), whole);
  }
}

TEST_F(StatusDeskTest, WhoSaysNothingGoes) {
  const base::Fd caller = call();
  serve();
  now_ = now_ + StatusDesk::kRequestTime - 1ns;
  serve();
  EXPECT_EQ(desk_->callers(), 1u);
  now_ = now_ + 1ns;
  serve();
  EXPECT_EQ(desk_->callers(), 0u);
}

TEST_F(StatusDeskTest, WhoReadsNothingGoes) {
  const base::Fd caller = call("much\n");
  EXPECT_EQ(serve(), now_ + StatusDesk::kStallTime);
  now_ = now_ + StatusDesk::kStallTime - 1ns;
  serve();
  EXPECT_EQ(desk_->callers(), 1u);
  now_ = now_ + 1ns;
  serve();
  EXPECT_EQ(desk_->callers(), 0u);
}

TEST_F(StatusDeskTest, WhoReadsTooSlowlyGoesInTheEnd) {
  const base::Fd caller = call("much\n");
  const Instant came = now_;
  std::array<char, 1> byte;
  while (desk_->callers() == 1 || now_ == came) {
    ASSERT_LT(now_, came + 2 * StatusDesk::kAnswerTime);
    (void)::recv(caller.get(), byte.data(), byte.size(), MSG_DONTWAIT);
    if (desk_->callers() == 0 && now_ == came) serve();
    now_ = now_ + StatusDesk::kStallTime / 2;
    serve();
  }
  EXPECT_LE(now_, came + StatusDesk::kAnswerTime);
}

TEST_F(StatusDeskTest, WhoHangsUpGoes) {
  {
    const base::Fd silent = call(), asked = call("much\n");
    serve();
    EXPECT_EQ(desk_->callers(), 2u);
  }
  serve();
  EXPECT_EQ(desk_->callers(), 0u);
}

TEST_F(StatusDeskTest, OfTooManyWhoSayNothingTheOldestMakesRoom) {
  std::vector<base::Fd> silent;
  for (std::size_t i = 0; i < 100; ++i) {
    silent.push_back(call());
    serve();
    EXPECT_LE(desk_->callers(), StatusDesk::kCallersMax);
    now_ = now_ + StatusDesk::kGrace / StatusDesk::kCallersMax;
  }
  const base::Fd caller = call("hello\n");
  serve();
  EXPECT_EQ(read(caller), "hello back\n");
}

TEST_F(StatusDeskTest, ACallerThatHasJustComeNeedNotMakeRoom) {
  std::vector<base::Fd> silent;
  for (std::size_t i = 0; i < StatusDesk::kCallersMax; ++i) silent.push_back(call());
  serve();
  const base::Fd caller = call("hello\n");
  EXPECT_EQ(serve(), now_ + StatusDesk::kGrace);
  EXPECT_FALSE(desk_->has_news()) << "nothing is to be done before";
  now_ = now_ + StatusDesk::kGrace - 1ns;
  serve();
  EXPECT_EQ(read(caller), "");
  say(silent.front(), "hello\n");
  serve();
  EXPECT_EQ(read(silent.front()), "hello back\n") << "it had time to ask";
  now_ = now_ + 1ns;
  serve();
  EXPECT_EQ(read(caller), "hello back\n");
}

TEST_F(StatusDeskTest, WhereAllHaveAskedTheNextOneWaits) {
  std::vector<base::Fd> busy;
  for (std::size_t i = 0; i < StatusDesk::kCallersMax; ++i) busy.push_back(call("much\n"));
  serve();
  EXPECT_EQ(desk_->callers(), StatusDesk::kCallersMax);
  const base::Fd caller = call("hello\n");
  serve();
  EXPECT_FALSE(desk_->has_news()) << "it cannot be accepted, and that must not be looked at again and again";
  EXPECT_EQ(read(caller), "");
  busy.pop_back();
  serve();
  EXPECT_EQ(read(caller), "hello back\n");
}

TEST_F(StatusDeskTest, ItsSocketGoesWithIt) {
  const std::string path = desk_->path();
  const base::Fd caller = call();
  serve();
  desk_.reset();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  bool ended = false;
  (void)read(caller, &ended);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace hawser::agent
