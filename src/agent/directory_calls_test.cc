#include "agent/directory_calls.h"

#include <gtest/gtest.h>

#include <chrono>

#include "agent/test_directory.h"
#include "base/test_clock.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string card_of(const base::Id128& incarnation) {
  wire::Card card;
  card.name = "a";
  card.incarnation = incarnation;
  card.revision = 1;
  return wire::encode(card).value();
}

class DirectoryCallsTest : public testing::Test {
 protected:
  void put(const std::string& value) {
    (void)ask_alone(*directory_, directory_->put("a", value, {}), clock_, clock_.now() + seconds(1));
  }
  std::optional<DirectoryEvent> get() {
    return ask_alone(*directory_, directory_->get("a"), clock_, clock_.now() + seconds(1));
  }
  bool is_there() { return get()->status.ok(); }

  base::TestClock clock_;
  std::shared_ptr<Directory> directory_ = std::make_shared<TestDirectory>();
};

/// Never answers.
class Silent final : public Directory {
 public:
  std::string_view kind() const override { return "silent"; }
  Ticket put(std::string_view, std::string_view, const PutOptions&) override { return ++tickets; }
  Ticket erase(std::string_view, const EraseOptions&) override { return ++tickets; }
  Ticket get(std::string_view) override { return ++tickets; }
  Ticket list(std::string_view) override { return ++tickets; }
  Ticket watch(std::string_view) override { return ++tickets; }
  void cancel(Ticket) override { ++cancelled; }
  bool run_job(Instant, Instant) override {
    clock.now_ = clock.now_ + milliseconds(1);
    return true;
  }
  std::optional<DirectoryEvent> poll(Ticket) override { return std::nullopt; }
  std::vector<std::string> warnings() const override { return {}; }
  bool runs_itself() const override { return is_server; }

  explicit Silent(base::TestClock& its_clock) : clock(its_clock) {}
  base::TestClock& clock;
  Ticket tickets = 0;
  int cancelled = 0;
  bool is_server = false;
};

TEST_F(DirectoryCallsTest, GivesTheAnswer) {
  EXPECT_EQ(get()->status.code(), Code::kNotFound);
  put("value");
  EXPECT_EQ(get()->entries.front().value, "value");
}

TEST_F(DirectoryCallsTest, TakesARequestBackThatIsNotAnsweredInTime) {
  Silent silent(clock_);
  const Instant deadline = clock_.now() + milliseconds(5);
  EXPECT_FALSE(ask_alone(silent, silent.get("a"), clock_, deadline));
  EXPECT_EQ(silent.cancelled, 1);
  EXPECT_EQ(clock_.now(), deadline);
}

TEST_F(DirectoryCallsTest, RestsWhereThereIsNoWorkToDo) {
  int rests = 0;
  const Ticket ticket = directory_->watch("nothing changes under this");
  (void)ask_alone(*directory_, ticket, clock_, clock_.now() + seconds(1));  // What is there now.
  const Instant deadline = clock_.now() + milliseconds(3);
  const auto rest = [&] {
    ++rests;
    clock_.now_ = clock_.now_ + milliseconds(1);
  };
  EXPECT_FALSE(ask_directory(*directory_, ticket, clock_, deadline, rest));
  EXPECT_EQ(rests, 3);
}

TEST_F(DirectoryCallsTest, UnpublishTakesTheOwnCardOnly) {
  const auto unpublish_mine = [&] { return unpublish(*directory_, "a", {1, 2}, clock_, clock_.now() + seconds(1)); };
  EXPECT_TRUE(unpublish_mine()) << "there is nothing to take";
  put(card_of({1, 2}));
  EXPECT_TRUE(unpublish_mine());
  EXPECT_FALSE(is_there());
  for (const std::string& other : {card_of({3, 4}), std::string("no card")}) {
    put(other);
    EXPECT_TRUE(unpublish_mine());
    EXPECT_TRUE(is_there()) << "that of a successor stays";
  }
}

TEST_F(DirectoryCallsTest, UnpublishGivesUpAfterItsOwnBoundButNotAtAnEarlierDeadline) {
  Silent silent(clock_);
  Instant begun = clock_.now();
  EXPECT_FALSE(unpublish(silent, "a", {1, 2}, clock_, begun + milliseconds(199))) << "it may be tried again";
  begun = clock_.now();
  EXPECT_TRUE(unpublish(silent, "a", {1, 2}, clock_, begun + seconds(60))) << "it had its time";
  EXPECT_EQ(clock_.now(), begun + milliseconds(200));
  silent.is_server = true;
  begun = clock_.now();
  EXPECT_TRUE(unpublish(silent, "a", {1, 2}, clock_, begun + seconds(60)));
  EXPECT_EQ(clock_.now(), begun + seconds(2));
}

}  // namespace
}  // namespace hawser::agent
