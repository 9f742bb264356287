#include "compat/exchange_seat.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::compat {
namespace {

/// Nobody fetches anything in these tests.
Exchange::Links no_links() {
  const Status never(Code::kFailed, "nobody asks for this here");
  return {.load = [=](std::string_view, std::string_view, const std::function<bool()>&) -> Result<std::string> {
            return never;
          },
          .invalidate = [=](std::string_view, const std::optional<base::Id128>&) { return never; },
          .drop = [=](std::string_view, std::string_view, const std::function<bool()>&) { return never; },
          .metadata = [=]() -> Result<std::string> { return never; },
          .self = []() -> std::optional<Exchange::Self> { return std::nullopt; }};
}

struct ExchangeSeatTest : ::testing::Test {
  ExchangeSeat::Setup setup() { return {.name = "a", .log = log}; }

  base::Logger log{LogOptions{.level = LogLevel::kError}};
};

TEST_F(ExchangeSeatTest, OneIsMadeWhenItIsWanted) {
  ExchangeSeat seat(setup(), no_links);
  EXPECT_FALSE(seat.is_wanted_at_once());
  const auto first = seat.get("send_local_md"), second = seat.get("fetch_remote_md");
  ASSERT_TRUE(first.has_value()) << first.status().to_string();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ((*first)->port(), 0) << "nobody listens";
}

TEST_F(ExchangeSeatTest, AListenerIsThereFromTheBeginning) {
  ExchangeSeat::Setup its = setup();
  its.listen = 0;
  ExchangeSeat seat(std::move(its), no_links);
  EXPECT_TRUE(seat.is_wanted_at_once());
  const auto made = seat.get("create_agent");
  ASSERT_TRUE(made.has_value()) << made.status().to_string();
  EXPECT_NE((*made)->port(), 0);
}

TEST_F(ExchangeSeatTest, ThereIsNoneAfterTheAgentWasClosed) {
  ExchangeSeat seat(setup(), no_links);
  ASSERT_TRUE(seat.get("send_local_md").has_value());
  seat.close();
  seat.close();
  seat.forget("b");
  const auto late = seat.get("send_local_md");
  ASSERT_FALSE(late.has_value());
  EXPECT_NE(late.status().to_string().find("agent 'a' is closed"), std::string::npos) << late.status().to_string();
}

TEST_F(ExchangeSeatTest, AnEtcdThatCannotBeUsedIsNamed) {
  ExchangeSeat::Setup its = setup();
  its.etcd.endpoints = {"nonsense://"};
  ExchangeSeat seat(std::move(its), no_links);
  EXPECT_TRUE(seat.is_wanted_at_once());
  const auto made = seat.get("create_agent");
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.status().to_string().find("NIXL_ETCD_ENDPOINTS"), std::string::npos) << made.status().to_string();
}

TEST_F(ExchangeSeatTest, WithoutFilesThereIsNoIdentity) {
  ExchangeSeat seat(setup(), no_links);
  const auto own = seat.identity();
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(*own, nullptr);
}

TEST_F(ExchangeSeatTest, AnIdentityThatCannotBeUsedIsNoExchange) {
  ExchangeSeat::Setup its = setup();
  its.identity.folder = "/nonexistent/identity";
  ExchangeSeat seat(std::move(its), no_links);
  EXPECT_FALSE(seat.identity().has_value());
  const auto made = seat.get("send_local_md");
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.status().to_string().find("the identity cannot be used"), std::string::npos)
      << made.status().to_string();
}

}  // namespace
}  // namespace hawser::compat
