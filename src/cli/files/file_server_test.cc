// A file server and its clients, agents over sockets of this host.

#include "cli/files/file_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <hawser/hawser.h>

#include "base/test_folder.h"
#include "cli/files/calls.h"

namespace hawser::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kFiles = 600;  // more than a page tells of

Agent open_agent(const std::string& name) {
  AgentOptions options;
  options.name = name;
  options.backends = {{"tcp", {}}};
  return std::move(Agent::open(std::move(options)).value());
}

/// A client of a server, until it is closed.
struct Client {
  Client(Driver& driver, const std::string& name, const Agent& server) : agent(open_agent(name)) {
    EXPECT_TRUE(driver.attach(agent).ok());
    calls = std::make_unique<Calls>(agent, agent.add_peer(server.card().value()).value(), 20s);
  }
  ~Client() {
    calls.reset();
    EXPECT_TRUE(agent.close(5s).ok());
  }
  Result<Json> hello() { return calls->call({{"op", "hello"}}, agent.card().value()); }
  Result<Json> list(std::size_t from) { return calls->call({{"op", "list"}, {"path", ""}, {"from", from}}); }

  Result<Json> begin(const std::string& path) { return calls->call({{"op", "begin"}, {"path", path}}); }

  Agent agent;
  std::unique_ptr<Calls> calls;
};

class ServedFolder : public testing::Test {
 protected:
  ServedFolder() {
    for (int i = 0; i < kFiles; ++i) {
      std::ofstream(folder_.path(std::string(100, 'x') + std::to_string(i))) << i;
    }
    EXPECT_TRUE(driver_.attach(agent_).ok());
    server_ = std::move(FileServer::open(agent_, folder_.path(), true).value());
    taker_ = std::thread([this] {
      while (!is_over_) {
        static_cast<void>(server_->take_requests());
        agent_.wait(10ms);
      }
    });
  }
  ~ServedFolder() override {
    is_over_ = true;
    taker_.join();
    server_.reset();
  }

  bool eventually_keeps(std::size_t listings) {
    const Instant end = Clock::steady().now() + 20s;
    while (server_->counters().listings != listings && Clock::steady().now() < end) agent_.wait(10ms);
    return server_->counters().listings == listings;
  }

  bool eventually_has_open(std::size_t uploads) {
    const Instant end = Clock::steady().now() + 20s;
    while (server_->counters().uploads != uploads && Clock::steady().now() < end) agent_.wait(10ms);
    return server_->counters().uploads == uploads;
  }

  const base::TestFolder folder_{"hawser-served"};
  Driver driver_ = Driver::start().value();
  Agent agent_ = open_agent("server");
  std::unique_ptr<FileServer> server_;
  std::atomic<bool> is_over_ = false;
  std::thread taker_;
};

TEST_F(ServedFolder, KeepsNoListingForAClientThatIsGone) {
  Client stays(driver_, "stays", agent_);
  ASSERT_TRUE(stays.hello());
  EXPECT_TRUE(stays.list(0).value().at("more").get<bool>());
  {
    Client goes(driver_, "goes", agent_);
    ASSERT_TRUE(goes.hello());
    EXPECT_TRUE(goes.list(0).value().at("more").get<bool>());
    EXPECT_EQ(server_->counters().listings, 2u);
  }
  EXPECT_TRUE(eventually_keeps(1)) << "that of who left before the last page";
  EXPECT_TRUE(stays.list(1)) << "its own is still there";
}

// Another program may lock the part then, and whoever deletes it has its room at once.
TEST_F(ServedFolder, KeepsNoPartOpenForAClientThatIsGone) {
  Client stays(driver_, "stays", agent_);
  ASSERT_TRUE(stays.hello());
  ASSERT_TRUE(stays.begin("mine"));
  {
    Client goes(driver_, "goes", agent_);
    ASSERT_TRUE(goes.hello());
    ASSERT_TRUE(goes.begin("theirs"));
    EXPECT_EQ(server_->counters().uploads, 2u);
  }
  EXPECT_TRUE(eventually_has_open(1)) << "that of who left";
  EXPECT_TRUE(std::filesystem::exists(folder_.path("theirs.part"))) << "it can be gone on with";
  EXPECT_TRUE(stays.begin("mine"));
}

TEST_F(ServedFolder, ListsOnlyForThoseWhoSaidHello) {
  Client client(driver_, "client", agent_);
  EXPECT_EQ(client.list(0).error().code(), Code::kInvalid);
  EXPECT_EQ(server_->counters().listings, 0u);
  ASSERT_TRUE(client.hello());
  EXPECT_TRUE(client.list(0));
}

}  // namespace
}  // namespace hawser::cli
