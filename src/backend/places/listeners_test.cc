#include "backend/places/listeners.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace hawser::backend {
namespace {

/// A host with ports that are taken, and addresses that it does not have.
class ListenersTest : public testing::Test {
 protected:
  ListenersTest() {
    for (const char* const address : {"127.0.0.1", "127.0.0.2"}) {
      choice_.listen.push_back(base::numeric_address({address, 0}).value());
    }
  }
  Result<Listeners<std::string>> open(bool is_covered = false) {
    return open_listeners<std::string>("try", choice_, is_covered,
                                       [this](base::SocketAddress& address) { return at(address); });
  }

  ListenChoice choice_;
  std::set<std::string> taken_, missing_;

 private:
  Result<std::string> at(base::SocketAddress& address) const {
    base::SocketAddress host = address;
    host.set_port(0);
    if (missing_.contains(base::to_string(host))) return Status(Code::kInvalid, "no such address here");
    const bool takes_any = address.port() == 0;
    if (takes_any) address.set_port(4000);
    while (takes_any && taken_.contains(base::to_string(address)))
      address.set_port(static_cast<std::uint16_t>(address.port() + 1));
    if (taken_.contains(base::to_string(address))) {
      return Status(Code::kBusy, base::to_string(address) + " is in use");
    }
    return base::to_string(address);
  }
};

TEST_F(ListenersTest, AllListenAtThePortOfTheFirst) {
  const auto all = open();
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_EQ(all->sockets, (std::vector<std::string>{"127.0.0.1:4000", "127.0.0.2:4000"}));
  EXPECT_EQ(all->locator.places.size(), 2U);
  EXPECT_NE(all->locator.host, 0U);
  EXPECT_TRUE(all->chosen.starts_with("listens at 127.0.0.1:4000, 127.0.0.2:4000; peers are told ")) << all->chosen;
  EXPECT_FALSE(all->locator.is_covered);
  EXPECT_TRUE(open(true)->locator.is_covered);
}

TEST_F(ListenersTest, WhereThePortOfTheFirstIsTakenTheSecondGetsAnother) {
  taken_ = {"127.0.0.2:4000"};
  EXPECT_EQ(open()->sockets, (std::vector<std::string>{"127.0.0.1:4000", "127.0.0.2:4001"}));
}

TEST_F(ListenersTest, TheFirstFreePortOfARange) {
  choice_.port = 5000;
  choice_.port_last = 5002;
  taken_ = {"127.0.0.1:5000", "127.0.0.2:5001"};
  EXPECT_EQ(open()->sockets, (std::vector<std::string>{"127.0.0.1:5002", "127.0.0.2:5002"})) << "one port for all";
  taken_.insert("127.0.0.1:5002");
  const auto none = open();
  EXPECT_EQ(none.error().code(), Code::kBusy);
  EXPECT_EQ(none.error().message(), "try: all ports from 5000 to 5002 are in use");
}

TEST_F(ListenersTest, TheLastPortOfAllIsTheEndOfARange) {
  choice_.port = 65534;
  choice_.port_last = 65535;
  taken_ = {"127.0.0.1:65534", "127.0.0.1:65535"};
  EXPECT_EQ(open().error().code(), Code::kBusy);
}

TEST_F(ListenersTest, AnAddressThatIsNotThereIsAWarningUnlessItWasNamed) {
  missing_ = {"127.0.0.1:0"};
  choice_.left_out = {"10.0.0.1 (excluded)"};
  const auto one = open();
  ASSERT_TRUE(one);
  EXPECT_EQ(one->sockets, std::vector<std::string>{"127.0.0.2:4000"});
  EXPECT_EQ(one->warnings, std::vector<std::string>{"no such address here"});
  EXPECT_TRUE(one->chosen.ends_with("; left out: 10.0.0.1 (excluded)")) << one->chosen;
  choice_.listen_given = true;
  EXPECT_EQ(open().error().message(), "no such address here");
  choice_.listen_given = false;
  missing_.insert("127.0.0.2:0");
  EXPECT_EQ(open().error().code(), Code::kInvalid) << "none is left";
}

}  // namespace
}  // namespace hawser::backend
