#include "agent/backend_opener.h"

#include <gtest/gtest.h>

#include <array>

#include "agent/test_backend.h"
#include "agent/test_lane.h"
#include "base/bytes.h"
#include "identity/authenticator.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

class BackendOpenerTest : public testing::Test, public BackendOpener::Host {
 protected:
  void SetUp() override { card_.open({.name = "a"}); }

  // As the agent.
  std::uint64_t draw() override {
    EXPECT_TRUE(lane_.is_locked);
    return ++draws_;
  }
  Status watch_port(int) override { return watch_refusal_; }
  void take_in(OpenBackend&& backend) override { backends_.push_back(std::move(backend)); }
  void has_more_ways() override { ++more_ways_; }

  /// A factory that hands out this backend.
  static backend::Factory factory(std::string_view name, int rank, const std::shared_ptr<TestBackend>& backend) {
    return {.name = name,
            .default_rank = rank,
            .open = [backend](const backend::Context&, const Params&) -> Result<std::unique_ptr<backend::Backend>> {
              if (!backend) return Status(Code::kUnsupported, "no device").with_advice("buy one");
              return std::unique_ptr<backend::Backend>(std::make_unique<Shared>(backend));
            }};
  }
  BackendOpener& opener(std::vector<backend::Factory> factories) {
    opener_ = std::make_unique<BackendOpener>(BackendOpener::Parts{.lane = lane_,
                                                                   .clock = lane_.clock,
                                                                   .options = options_,
                                                                   .log = log_,
                                                                   .life = life_,
                                                                   .identity = identity_,
                                                                   .keys = keys_,
                                                                   .authenticator = authenticator_,
                                                                   .guard = guard_,
                                                                   .table = table_,
                                                                   .book = book_,
                                                                   .card = card_,
                                                                   .reports = reports_,
                                                                   .backends = backends_,
                                                                   .host = *this},
                                              std::move(factories));
    return *opener_;
  }
  std::vector<std::string> open_names() const {
    std::vector<std::string> names;
    for (const OpenBackend& each : backends_) names.push_back(each.name);
    return names;
  }
  std::shared_ptr<LocalRegion> add_region() {
    auto entry = std::make_shared<backend::RegionEntry>();
    entry->size = 64;
    EXPECT_TRUE(table_.add(std::span(&entry, 1)).ok());
    auto region = std::make_shared<LocalRegion>(std::shared_ptr<Core>(), entry, false);
    const InLaneGuard guard(lane_);
    book_.add(region);
    OwnCard::Told told{.entry = entry, .extras = {}};
    card_.add_regions({&told, 1});
    return region;
  }
  /// As RegionCloser does it.
  void close(LocalRegion& region) {
    const InLaneGuard guard(lane_);
    region.state = RegionState::kClosed;
    const std::array id{backend::RegionId{region.entry->index, region.entry->generation}};
    book_.close(id);
    card_.remove_regions(id);
    opener_->forget(*region.entry);
    book_.remove(id);
  }
  std::size_t extras_in_card() const { return wire::decode_card(base::as_bytes(card_.full().value()))->extras.size(); }

  /// The opener owns what a factory makes; a test looks at it.
  class Shared final : public backend::Backend {
   public:
    explicit Shared(std::shared_ptr<TestBackend> its) : its_(std::move(its)) {}
    const backend::Traits& traits() const override { return its_->traits(); }
    std::string address() const override { return its_->address(); }
    std::string readable_address() const override { return its_->readable_address(); }
    Status reachable(std::string_view address) const override { return its_->reachable(address); }
    Result<std::string> add_region(const backend::RegionEntry& region) override { return its_->add_region(region); }
    void remove_region(const backend::RegionEntry& region) override { its_->remove_region(region); }
    std::string told(const backend::RegionEntry& region) const override { return its_->told(region); }
    Result<std::unique_ptr<backend::Port>> open_port() override { return its_->open_port(); }
    Params take_params() override { return its_->take_params(); }
    std::vector<std::string> warnings() const override { return its_->warnings(); }
    void disown_after_fork() override { its_->disown_after_fork(); }

   private:
    const std::shared_ptr<TestBackend> its_;
  };

  TestLane lane_;
  AgentOptions options_{.name = "a"};
  base::Logger log_;
  Life life_{"a"};
  backend::Identity identity_{.name = "a"};
  std::optional<tls::KeyPair> keys_;
  std::shared_ptr<identity::Authenticator> authenticator_;
  const std::shared_ptr<backend::PeerGuard> guard_ = std::make_shared<backend::PeerGuard>();
  backend::RegionTable table_{100};
  RegionBook book_;
  OwnCard card_;
  BackendReports reports_;
  std::vector<OpenBackend> backends_;
  std::uint64_t draws_ = 0;
  int more_ways_ = 0;
  Status watch_refusal_;
  std::shared_ptr<TestBackend> backend_ = std::make_shared<TestBackend>("extra");
  std::unique_ptr<BackendOpener> opener_;
};

TEST_F(BackendOpenerTest, WithoutNamesTheDefaultOnesOpenInTheOrderOfTheirRanks) {
  const auto other = std::make_shared<TestBackend>();
  ASSERT_TRUE(
      opener({factory("low", 1, backend_), factory("off", 0, other), factory("high", 9, other)}).open_all().ok());
  EXPECT_EQ(open_names(), (std::vector<std::string>{"high", "low"}));
  EXPECT_EQ(opener_->opened(), 2u);
  EXPECT_EQ(reports_.all().size(), 2u);
}

TEST_F(BackendOpenerTest, WithoutNamesOneThatWorksIsEnough) {
  ASSERT_TRUE(opener({factory("good", 1, backend_), factory("bad", 2, nullptr)}).open_all().ok());
  EXPECT_EQ(open_names(), std::vector<std::string>{"good"});
  ASSERT_EQ(reports_.all().size(), 2u);
  EXPECT_EQ(reports_.all()[0].cause.advice(), "buy one");
}

TEST_F(BackendOpenerTest, WhereNoneWorksEachReasonIsTold) {
  const Status none = opener({factory("one", 2, nullptr), factory("two", 1, nullptr)}).open_all();
  EXPECT_EQ(none.code(), Code::kUnsupported);
  const std::string text = none.to_string();
  EXPECT_NE(text.find("'one' did not open"), std::string::npos) << text;
  EXPECT_NE(text.find("'two' did not open"), std::string::npos) << text;
}

TEST_F(BackendOpenerTest, EachThatWasNamedMustOpen) {
  options_.backends = {{"Good", {}}, {"bad", {}}};
  EXPECT_FALSE(opener({factory("good", 1, backend_), factory("bad", 2, nullptr)}).open_all().ok());
  EXPECT_EQ(open_names(), std::vector<std::string>{"good"}) << "whatever its case";
}

TEST_F(BackendOpenerTest, OneThatNobodyKnowsIsNamed) {
  const Status unknown = opener({factory("tcp", 1, backend_)}).add({"udp", {}});
  EXPECT_EQ(unknown.code(), Code::kNotFound);
  EXPECT_NE(unknown.to_string().find("known here: tcp"), std::string::npos) << unknown.to_string();
}

TEST_F(BackendOpenerTest, OneIsOpenOnce) {
  ASSERT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  EXPECT_EQ(more_ways_, 1);
  const Status again = opener_->add({"tcp", {}});
  EXPECT_EQ(again.code(), Code::kInvalid);
  EXPECT_EQ(reports_.all().size(), 1u);
  EXPECT_TRUE(reports_.all()[0].open);
  EXPECT_EQ(more_ways_, 1);
}

TEST_F(BackendOpenerTest, IsToldOfTheRegionsThatAreThereWithoutTheLane) {
  const auto region = add_region();
  backend_->meanwhile = [&] {
    EXPECT_FALSE(lane_.is_locked);
    EXPECT_TRUE(open_names().empty()) << "it is not open before it knows all";
  };
  ASSERT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  EXPECT_EQ(backend_->regions, std::set<std::uint32_t>{region->entry->index});
  EXPECT_EQ(open_names(), std::vector<std::string>{"tcp"});
}

TEST_F(BackendOpenerTest, RegionsThatCameMeanwhileAreInItsCard) {
  const auto first = add_region();
  std::shared_ptr<LocalRegion> second;
  backend_->meanwhile = [&] { second = add_region(); };
  ASSERT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  EXPECT_EQ(backend_->regions.size(), 2u);
  EXPECT_EQ(extras_in_card(), 2u);
  EXPECT_EQ(first->newcomers, 0u);
}

TEST_F(BackendOpenerTest, ARegionIsInUseWhileABackendIsToldOfIt) {
  const auto region = add_region();
  backend_->meanwhile = [&] { EXPECT_EQ(region->newcomers, 1u); };
  ASSERT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  EXPECT_EQ(region->newcomers, 0u);
}

TEST_F(BackendOpenerTest, OneThatWasToldAndIsClosedMeanwhileIsTakenBack) {
  const auto first = add_region(), second = add_region();
  backend_->meanwhile = [&] { backend_->meanwhile = [&] { close(*first); }; };  // When it is told of the second.
  ASSERT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  EXPECT_EQ(backend_->regions, std::set<std::uint32_t>{second->entry->index});
  EXPECT_EQ(extras_in_card(), 1u);
}

TEST_F(BackendOpenerTest, OneThatCannotServeARegionDoesNotOpenAndGivesTheOthersBack) {
  const auto first = add_region(), second = add_region();
  backend_->meanwhile = [&] { backend_->refusal = Status(Code::kBusy, "no locked memory"); };
  const Status refused = opener({factory("tcp", 1, backend_)}).add({"tcp", {}});
  EXPECT_EQ(refused.code(), Code::kFailed);
  EXPECT_NE(refused.to_string().find("no locked memory"), std::string::npos) << refused.to_string();
  EXPECT_TRUE(backend_->regions.empty());
  EXPECT_TRUE(open_names().empty());
  backend_->refusal = {};
  EXPECT_TRUE(opener_->add({"tcp", {}}).ok()) << "it may be tried again";
  EXPECT_EQ(opener_->opened(), 1u);
}

TEST_F(BackendOpenerTest, OneWithoutAPortDoesNotOpen) {
  const auto region = add_region();
  backend_->port_refusal = Status(Code::kBusy, "no descriptor is left");
  EXPECT_EQ(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).code(), Code::kBusy);
  EXPECT_TRUE(backend_->regions.empty());
  backend_->port_refusal = {};
  watch_refusal_ = Status(Code::kFailed, "epoll is full");
  EXPECT_EQ(opener_->add({"tcp", {}}).code(), Code::kFailed);
  EXPECT_TRUE(open_names().empty());
  EXPECT_EQ(extras_in_card(), 0u);
}

TEST_F(BackendOpenerTest, AnAgentThatClosesMeanwhileGetsNone) {
  const auto region = add_region();
  backend_->meanwhile = [&] { life_.begin_to_close(); };
  EXPECT_EQ(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).code(), Code::kInvalid);
  EXPECT_TRUE(open_names().empty());
  EXPECT_TRUE(backend_->regions.empty());
}

TEST_F(BackendOpenerTest, OneThatAnotherThreadIsOpeningIsWaitedForUpToTheDefaultDeadline) {
  const auto region = add_region();
  options_.default_deadline = milliseconds(5);
  Status second;
  backend_->meanwhile = [&] { second = opener_->add({"tcp", {}}); };  // As another thread would.
  EXPECT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  EXPECT_EQ(second.code(), Code::kTimedOut) << second.to_string();
  EXPECT_EQ(lane_.waits, 5);
}

TEST_F(BackendOpenerTest, ANewWordOfABackendIsInTheCard) {
  const auto region = add_region();
  ASSERT_TRUE(opener({factory("tcp", 1, backend_)}).add({"tcp", {}}).ok());
  backend_->extra = "";
  const InLaneGuard guard(lane_);
  opener_->renew_extras(backends_[0]);
  EXPECT_EQ(extras_in_card(), 0u);
  EXPECT_EQ(backends_[0].renewals, 1u);
}

}  // namespace
}  // namespace hawser::agent
