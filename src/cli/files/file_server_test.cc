// A file server and its clients, agents over sockets of this host.

#include "cli/files/file_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <hawser/hawser.h>

#include "base/test_folder.h"
#include "cli/files/calls.h"
#include "cli/files/copier.h"

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

// All of it is kept: of the chunks before the change as the source was, of the last one as it is now.
TEST_F(ServedFolder, ASourceThatChangesUnderACopyThatMovesNothingEndsIt) {
  constexpr std::uint64_t kChunks = 20, kLast = (kChunks - 1) * kFileChunk;
  const std::string source = folder_.path("large"), copy = folder_.path("copy");
  const auto put = [](const std::string& path, std::uint64_t offset) {
    const base::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::pwrite(fd.get(), "new", 3, static_cast<off_t>(offset)), 3);
  };
  for (const std::string& path : {source, copy + ".part"}) {
    std::ofstream(path).close();
    std::filesystem::resize_file(path, kChunks * kFileChunk);
  }
  put(copy + ".part", kLast);
  Client client(driver_, "client", agent_);
  const Peer server = client.agent.add_peer(agent_.card().value()).value();
  client.calls.reset();  // A copier takes the answers by itself.
  bool is_changed = false;
  auto copier = Copier::open(client.agent, server, 20s, [&](std::uint64_t in_place) {
                  // The first chunks are done, and nobody has begun the last one.
                  if (in_place < Copier::kWindow * kFileChunk || std::exchange(is_changed, true)) return;
                  put(source, 0);
                  put(source, kLast);
                }).value();
  const Status status = copier->fetch("large", copy);
  EXPECT_TRUE(is_changed);
  EXPECT_EQ(status.code(), Code::kFailed) << status.to_string();
  EXPECT_NE(status.to_string().find("changed while it was copied"), std::string::npos) << status.to_string();
  EXPECT_FALSE(std::filesystem::exists(copy));
  copier.reset();
}

TEST_F(ServedFolder, WhatIsNoFileIsNeitherReadNorReplaced) {
  ASSERT_EQ(::mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", folder_.path("link"));
  Client client(driver_, "client", agent_);
  ASSERT_TRUE(client.hello());
  const auto asked = [&](const std::string& op, const std::string& path) {
    return client.calls->call({{"op", op}, {"path", path}, {"offset", 0}, {"size", 5}});
  };
  EXPECT_EQ(asked("stat", "./fifo").value().at("kind"), "a FIFO");
  for (const char* op : {"hash", "read", "begin"}) {
    const Status status = asked(op, "fifo").error();
    EXPECT_EQ(status.code(), Code::kInvalid) << op;
    EXPECT_NE(status.to_string().find("'fifo' is a FIFO"), std::string::npos) << status.to_string();
    EXPECT_EQ(asked(op, "link").error().code(), Code::kDenied) << op;
  }
  EXPECT_EQ(asked("stat", "link").error().code(), Code::kDenied);
  EXPECT_TRUE(std::filesystem::is_fifo(folder_.path("fifo")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path("link")));
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
