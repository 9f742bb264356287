#include "backend/stream/opener_question.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::stream {
namespace {

using std::chrono::milliseconds;
using Answer = OpenerQuestion::Answer;

/// What becomes of the connections that are tried; the test says so beforehand or while they connect.
struct Fate {
  StreamState state = StreamState::kConnecting;
  Status status;
};

class AskedStream final : public Stream {
 public:
  explicit AskedStream(Fate& fate) : fate_(fate) {}
  StreamState state() const override { return fate_.state; }
  Status status() const override { return fate_.status; }
  Moved send(std::span<const iovec>) override { return {}; }
  std::uint64_t released() const override { return 0; }
  Moved receive(std::span<const iovec>) override { return {}; }
  void close(bool) override {}
  std::string describe() const override { return "asked"; }

 private:
  Fate& fate_;
};

class AskedNetwork final : public Network {
 public:
  Result<std::vector<std::string>> candidates(std::string_view, bool) const override {
    return Status(Code::kInvalid, "no");
  }
  Result<std::unique_ptr<Stream>> connect(const std::string& place, const Known&) override {
    places.push_back(place);
    if (!refusal.ok()) return refusal;
    return std::unique_ptr<Stream>(new AskedStream(fate));
  }
  std::unique_ptr<Stream> accept() override { return nullptr; }
  void stop_listening() override {}
  std::size_t ready(std::span<Readiness>, bool*) override { return 0; }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }

  Fate fate;
  Status refusal;
  std::vector<std::string> places;
};

class OpenerQuestionTest : public ::testing::Test {
 protected:
  static Status refused(Scope scope) { return Status(Code::kDisconnected, "refused").with_scope(scope); }
  /// Turns it whenever it is due, for at most a second.
  Answer turn_until_answered() {
    const Instant end = now_ + std::chrono::seconds(1);
    while (now_ < end) {
      if (!question_.is_due(now_)) {
        now_ = question_.next();
        continue;
      }
      if (const Answer answer = question_.turn(now_); answer != Answer::kNone) return answer;
    }
    return Answer::kNone;
  }

  const Instant begin_ = Instant::from_ns(1'000'000'000);
  Instant now_ = begin_;
  AskedNetwork network_;
  OpenerQuestion question_{network_, "here:7", nullptr};
};

TEST_F(OpenerQuestionTest, ARefusedConnectionProvesTheEnd) {
  EXPECT_TRUE(question_.is_due(now_));
  EXPECT_FALSE(question_.has_asked());
  EXPECT_EQ(question_.turn(now_), Answer::kNone);
  EXPECT_TRUE(question_.has_asked());
  EXPECT_FALSE(question_.is_due(now_)) << "it connects";
  network_.fate = {.state = StreamState::kClosed, .status = refused(Scope::kPeer)};
  EXPECT_TRUE(question_.is_due(now_));
  EXPECT_EQ(question_.turn(now_), Answer::kEnded);
  EXPECT_EQ(network_.places, std::vector<std::string>{"here:7"});
}

TEST_F(OpenerQuestionTest, ARefusalAtOnceIsTheSame) {
  network_.refusal = refused(Scope::kPeer);
  EXPECT_EQ(question_.turn(now_), Answer::kEnded);
}

TEST_F(OpenerQuestionTest, WhatProvesNothingIsTakenForLife) {
  network_.refusal = refused(Scope::kPath);
  EXPECT_EQ(question_.turn(now_), Answer::kLives);
  network_.refusal = {};
  network_.fate = {.state = StreamState::kClosed, .status = refused(Scope::kPath)};
  OpenerQuestion other(network_, "here:7", nullptr);
  EXPECT_EQ(other.turn(now_), Answer::kLives);
}

TEST_F(OpenerQuestionTest, WhoListensIsAskedAFewTimesInLessThan50Milliseconds) {
  network_.fate.state = StreamState::kOpen;
  EXPECT_EQ(turn_until_answered(), Answer::kLives);
  EXPECT_EQ(network_.places.size(), OpenerQuestion::kAsksMax);
  EXPECT_EQ(now_ - begin_, milliseconds(1 + 2 + 4 + 8 + 16));
}

TEST_F(OpenerQuestionTest, ASocketThatGoesLaterThanOthersIsFoundOut) {
  network_.fate.state = StreamState::kOpen;
  EXPECT_EQ(question_.turn(now_), Answer::kNone);
  network_.refusal = refused(Scope::kPeer);
  EXPECT_FALSE(question_.is_due(now_));
  EXPECT_EQ(turn_until_answered(), Answer::kEnded);
  EXPECT_EQ(now_ - begin_, milliseconds(1));
}

TEST_F(OpenerQuestionTest, WhoseQueueIsFullLives) {
  EXPECT_EQ(turn_until_answered(), Answer::kLives);
  EXPECT_EQ(network_.places.size(), OpenerQuestion::kAsksMax);
  EXPECT_EQ(now_ - begin_, OpenerQuestion::kAsksMax * OpenerQuestion::kAnswerMax + milliseconds(1 + 2 + 4 + 8 + 16));
}

}  // namespace
}  // namespace hawser::backend::stream
