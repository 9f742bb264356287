#include "backend/stream/connect_race.h"

#include <gtest/gtest.h>

#include <map>

namespace hawser::backend::stream {
namespace {

using std::chrono::milliseconds;

/// Streams whose state the test sets, and a record of what was done to them.
struct Fake {
  struct Line {
    StreamState state = StreamState::kConnecting;
    Status status;
    bool closed = false;
    std::size_t sent = 0;
  };
  std::map<std::string, Line> lines;
  std::vector<std::string> connects;
};

class FakeStream final : public Stream {
 public:
  explicit FakeStream(Fake::Line& line) : line_(line) {}
  StreamState state() const override { return line_.state; }
  Status status() const override { return line_.status; }
  Moved send(std::span<const iovec> parts) override {
    line_.sent += parts.size();
    return {};
  }
  std::uint64_t released() const override { return 0; }
  Moved receive(std::span<const iovec>) override { return {}; }
  void close(bool) override { line_.closed = true; }
  std::string describe() const override { return "fake"; }

 private:
  Fake::Line& line_;
};

class FakeNetwork final : public Network {
 public:
  explicit FakeNetwork(Fake& fake) : fake_(fake) {}
  Result<std::vector<std::string>> candidates(std::string_view, bool) const override {
    return Status(Code::kInvalid, "no");
  }
  Result<std::unique_ptr<Stream>> connect(const std::string& candidate, const Known&) override {
    fake_.connects.push_back(candidate);
    if (candidate.starts_with("no way")) return Status(Code::kFailed, "no way there");
    return std::unique_ptr<Stream>(new FakeStream(fake_.lines[candidate]));
  }
  std::unique_ptr<Stream> accept() override { return nullptr; }
  void stop_listening() override {}
  std::size_t ready(std::span<Readiness>, bool*) override { return 0; }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }

 private:
  Fake& fake_;
};

class ConnectRaceTest : public testing::Test {
 protected:
  ConnectRace race(std::vector<std::string> places, Duration time = std::chrono::seconds(5)) {
    return ConnectRace(network_, nullptr, std::move(places), {}, now_, now_ + time);
  }
  void refuse(const std::string& place) {
    fake_.lines[place].state = StreamState::kClosed;
    fake_.lines[place].status = Status(Code::kDisconnected, "refused").with_scope(Scope::kPeer);
  }
  void open(const std::string& place) { fake_.lines[place].state = StreamState::kOpen; }

  Fake fake_;
  FakeNetwork network_{fake_};
  Instant later(Duration time) { return now_ = now_ + time; }

  Instant now_ = Instant::from_ns(10'000'000'000);
};

using Places = std::vector<std::string>;

TEST_F(ConnectRaceTest, PlacesThatSwallowPacketsDelayTheNextByTheStaggerOnly) {
  ConnectRace race = this->race({"a", "b", "c", "d"});
  open("d");
  race.turn(now_);
  EXPECT_EQ(fake_.connects, Places{"a"});
  EXPECT_EQ(race.next_deadline(), now_ + ConnectRace::kStaggerMax);
  race.turn(now_ + ConnectRace::kStaggerMax - milliseconds(1));
  EXPECT_EQ(fake_.connects, Places{"a"}) << "too early";
  int turns = 0;
  std::unique_ptr<Stream> stream;
  for (; stream == nullptr && turns < 10; ++turns) {
    now_ = race.next_deadline();
    race.turn(now_);
    stream = race.take(now_);
  }
  EXPECT_EQ(turns, 3) << "one stagger for each of the three that swallow";
  EXPECT_EQ(race.losers(now_), "a (no answer within 300 ms), b (no answer within 300 ms), c (no answer within 300 ms)");
  EXPECT_EQ(race.place(), "d");
}

TEST_F(ConnectRaceTest, ARefusalLetsTheNextStartAtOnce) {
  refuse("a");
  ConnectRace race = this->race({"no way to it", "a", "b"});
  race.turn(now_);
  EXPECT_EQ(fake_.connects, (Places{"no way to it", "a", "b"}));
  ASSERT_EQ(race.failures().size(), 2u);
  EXPECT_EQ(race.failures()[1].place, "a");
}

TEST_F(ConnectRaceTest, OneHelloAtATime) {
  ConnectRace race = this->race({"a", "b", "c"});
  race.turn(now_);
  race.turn(later(ConnectRace::kStaggerMax));
  open("a");
  open("b");
  race.turn(now_);
  std::unique_ptr<Stream> first = race.take(now_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(race.place(), "a");
  EXPECT_GE(race.hello_deadline(), now_ + ConnectRace::kHelloMin);
  race.turn(later(milliseconds(900)));
  EXPECT_EQ(race.take(now_), nullptr) << "while the hello to a is under way";
  EXPECT_EQ(fake_.connects, (Places{"a", "b"})) << "no further connect meanwhile";
  race.reject(Status(Code::kDisconnected, "another agent"));
  race.turn(now_);
  ASSERT_NE(race.take(now_), nullptr);
  EXPECT_EQ(race.place(), "b");
  EXPECT_FALSE(race.is_over());
}

TEST_F(ConnectRaceTest, LosersAreClosedBeforeAByte) {
  {
    ConnectRace race = this->race({"a", "b"});
    race.turn(now_);
    race.turn(later(ConnectRace::kStaggerMax));
    open("a");
    open("b");
    race.turn(now_);
    ASSERT_NE(race.take(now_), nullptr);
    EXPECT_FALSE(fake_.lines["b"].closed);
  }
  EXPECT_TRUE(fake_.lines["b"].closed);
  EXPECT_EQ(fake_.lines["b"].sent, 0u);
  EXPECT_FALSE(fake_.lines["a"].closed) << "it belongs to the path";
}

TEST_F(ConnectRaceTest, AllEndAtTheDeadlineAndAreNamed) {
  ConnectRace race = this->race({"a", "b"}, milliseconds(400));
  race.turn(now_);
  race.turn(later(milliseconds(100)));
  EXPECT_FALSE(race.is_over());
  race.turn(later(milliseconds(300)));
  EXPECT_TRUE(race.is_over());
  const Status why = verdict_of(race, "peer");
  EXPECT_EQ(why.code(), Code::kTimedOut);
  EXPECT_EQ(why.scope(), Scope::kPath);
  EXPECT_NE(why.to_string().find("peer at a"), std::string::npos) << why.to_string();
  EXPECT_NE(why.to_string().find("peer at b"), std::string::npos) << why.to_string();
}

TEST_F(ConnectRaceTest, OnlyRefusalsEverywhereSpeakOfThePeer) {
  refuse("a");
  refuse("b");
  ConnectRace all = this->race({"a", "b"});
  all.turn(now_);
  ASSERT_TRUE(all.is_over());
  EXPECT_EQ(verdict_of(all, "peer").scope(), Scope::kPeer);
  ConnectRace some = this->race({"a", "no way"});
  some.turn(now_);
  ASSERT_TRUE(some.is_over());
  EXPECT_EQ(verdict_of(some, "peer").scope(), Scope::kPath);
}

TEST_F(ConnectRaceTest, WhatMayChangeStandsBeforeWhatIsFinal) {
  ConnectRace race = this->race({"old", "b"});
  open("old");
  race.turn(now_);
  ASSERT_NE(race.take(now_), nullptr);
  race.reject(Status(Code::kUnsupported, "no version in common"));
  fake_.lines["b"].state = StreamState::kClosed;
  fake_.lines["b"].status = Status(Code::kDisconnected, "no route");
  race.turn(now_);
  ASSERT_TRUE(race.is_over());
  EXPECT_EQ(verdict_of(race, "peer").code(), Code::kDisconnected);
}

TEST_F(ConnectRaceTest, ManyPlacesShareLittleTime) {
  Places places;
  for (int i = 0; i < 64; ++i) places.push_back(std::to_string(i));
  ConnectRace race = this->race(places, std::chrono::seconds(2));
  open("63");
  race.turn(now_);
  int turns = 0;
  while (fake_.connects.size() < places.size() && turns++ < 100) race.turn(now_ = race.next_deadline());
  EXPECT_EQ(fake_.connects.size(), places.size());
  EXPECT_NE(race.take(now_), nullptr) << "the last place had its turn before the deadline";
}

}  // namespace
}  // namespace hawser::backend::stream
