#include "agent/revocation_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "agent/test_directory.h"
#include "identity/revocation_key.h"
#include "identity/test_authority.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// Answers when the test says so.
class SlowDirectory final : public TestDirectory {
 public:
  std::optional<DirectoryEvent> poll(Ticket ticket) override {
    return is_away ? std::nullopt : TestDirectory::poll(ticket);
  }
  void cancel(Ticket ticket) override {
    ++cancelled;
    TestDirectory::cancel(ticket);
  }
  bool is_away = false;
  int cancelled = 0;
};

class RevocationWatchTest : public testing::Test {
 protected:
  RevocationWatchTest() {
    auto opened = identity::Authenticator::open(
        {.agent = "store", .folder = authority_.issue_to("store"), .names = "", .period = 10s}, log_);
    EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
    authenticator_ = std::move(*opened);
    directory_ = slow_;
  }
  void publish(const std::string& list) { (void)directory_->put(kKey, list, PutOptions{}); }
  std::string list_without(const std::string& name) {
    (void)authority_.issue(name);
    EXPECT_TRUE(authority_.get().revoke(name, identity::unix_seconds()).has_value());
    return *authority_.get().revoked();
  }
  /// Whether a list is what the authenticator has: it takes no older one.
  bool has_at_least(const std::string& list) { return authenticator_->take_revoked(list, "a list").ok(); }

  static constexpr const char* kKey = "hawser/revoked/example.org";
  identity::TestAuthority authority_;
  const base::Logger log_{LogOptions{}};
  std::shared_ptr<identity::Authenticator> authenticator_;
  std::shared_ptr<SlowDirectory> slow_ = std::make_shared<SlowDirectory>();
  std::shared_ptr<Directory> directory_;
  const std::string agent_ = "store";
  RevocationWatch watch_{{.directory = directory_, .authenticator = authenticator_, .agent = agent_}};
  Instant now_ = Instant::from_ns(0) + 1h;
};

TEST_F(RevocationWatchTest, TakesAListThatIsThereAndLooksAgainOnceAPeriod) {
  const std::string empty = *authority_.get().revoked();
  const std::string first = list_without("reader"), second = list_without("writer");
  publish(first);
  watch_.open();
  EXPECT_LE(watch_.next_deadline(), now_);
  watch_.turn(now_);
  EXPECT_FALSE(has_at_least(empty));
  EXPECT_EQ(watch_.next_deadline(), now_ + 10s);
  publish(second);
  watch_.turn(now_ = now_ + 10s);
  EXPECT_FALSE(has_at_least(first)) << "the newer one is there";
  EXPECT_FALSE(watch_.has_jobs());
}

TEST_F(RevocationWatchTest, AnOlderListOrNoiseChangesNothing) {
  const std::string first = list_without("reader"), second = list_without("writer");
  publish(second);
  watch_.open();
  watch_.turn(now_);
  for (const std::string& other : {first, std::string("noise"), std::string()}) {
    publish(other);
    watch_.turn(now_ = now_ + 10s);
    EXPECT_FALSE(has_at_least(first)) << other;
  }
}

TEST_F(RevocationWatchTest, AnAnswerThatStaysAwayIsAskedForAgain) {
  publish(list_without("reader"));
  slow_->is_away = true;
  watch_.open();
  watch_.turn(now_);
  EXPECT_TRUE(watch_.has_jobs()) << "the directory has no thread of its own";
  EXPECT_EQ(watch_.next_deadline(), now_ + 10ms);
  watch_.turn(now_ = now_ + 10s - 1ms);
  EXPECT_EQ(slow_->cancelled, 0);
  watch_.turn(now_ = now_ + 1ms);
  EXPECT_EQ(slow_->cancelled, 1);
  slow_->is_away = false;
  watch_.turn(watch_.next_deadline());
  EXPECT_FALSE(watch_.has_jobs());
}

TEST_F(RevocationWatchTest, HasNothingToDoOnceItIsClosed) {
  watch_.open();
  watch_.close();
  EXPECT_EQ(watch_.next_deadline(), Instant::max());
  EXPECT_EQ(watch_.turn(now_), 0u);
  EXPECT_EQ(watch_.next_deadline(), Instant::max());
}

}  // namespace
}  // namespace hawser::agent
