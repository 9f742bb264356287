// Agents of one name, and agents without regions yet, over the directories of one host; and a folder that is deleted
// under them.

#include <filesystem>

#include "../conformance/name_suite.h"
#include "base/test_folder.h"
#include "real_test.h"

namespace hawser::conformance {
namespace {

class InprocPlace final : public NamePlace {
 public:
  std::shared_ptr<Directory> open() override { return inproc_directory("names"); }
};

class FilePlace final : public NamePlace {
 public:
  std::shared_ptr<Directory> open() override { return file_directory(folder_.path("cards")).value(); }

 private:
  const base::TestFolder folder_{"hawser-names"};
};

const NameFactory kFactories[] = {{"inproc", [] { return std::make_unique<InprocPlace>(); }},
                                  {"file", [] { return std::make_unique<FilePlace>(); }}};

INSTANTIATE_TEST_SUITE_P(Directories, NameTrials, testing::ValuesIn(kFactories),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace hawser::conformance

namespace hawser::real {
namespace {

int downs(Agent& agent) {
  int count = 0;
  while (const std::optional<PeerEvent> event = agent.take_event()) count += event->kind == PeerEvent::Kind::kDown;
  return count;
}

AgentOptions in_folder(const std::string& name, const std::string& folder) {
  AgentOptions options = quick(name);
  options.directory = must(file_directory(folder));
  return options;
}

// A folder has no leases: the card of a killed process stays. Whoever looks for it again waits for its successor.
TEST(DeadCardTrials, ADeadIncarnationIsToldOnceAndNotGivenAgain) {
  const base::TestFolder folder("hawser-names");
  const std::string line = "there driven=1 directory=" + folder.path();
  PeerProcess first = PeerProcess::start(line);
  first.kill();
  const auto here = std::make_unique<Agent>(must(Agent::open(in_folder("here", folder.path()))));
  // Nothing tells yet that it died.
  const Peer dead = must(here->find_peer("there", 10s));
  EXPECT_FALSE(dead.connect(kPatience).ok());
  EXPECT_EQ(downs(*here), 1);
  for (int i = 0; i < 20; ++i) {
    const Instant from = now();
    const Result<Peer> again = here->find_peer("there", 50ms);
    ASSERT_FALSE(again) << "the dead one is given again";
    EXPECT_GE(now() - from, 50ms);
    EXPECT_EQ(again.error().code(), Code::kNotFound);
    EXPECT_NE(again.error().to_string().find("has died"), std::string::npos) << again.error().to_string();
  }
  EXPECT_EQ(downs(*here), 0);
  PeerProcess second = PeerProcess::start(line);
  const Peer alive = must(here->find_peer("there", 10s));
  EXPECT_NE(alive.incarnation(), dead.incarnation());
  must(alive.connect(kPatience));
}

// A stopped process is silent and not dead: it is found again.
TEST(DeadCardTrials, ASilentOneIsGivenAgain) {
  const base::TestFolder folder("hawser-names");
  PeerProcess process = PeerProcess::start("there driven=1 backend=tcp directory=" + folder.path());
  AgentOptions options = in_folder("here", folder.path());
  options.backends = {{"tcp", {}}};
  options.heartbeat = 50ms;
  options.peer_timeout = 500ms;
  const auto here = std::make_unique<Agent>(must(Agent::open(options)));
  const Peer peer = must(here->find_peer("there", 10s));
  must(peer.connect(kPatience));
  process.stop();
  EXPECT_TRUE(eventually([&] {
    here->poll();
    return peer.state() == PeerState::kDown;
  }));
  process.resume();
  const Peer again = must(here->find_peer("there", 10s));
  EXPECT_EQ(again.incarnation(), peer.incarnation());
  must(again.connect(kPatience));
}

// `rm -r` of a folder in use: all who live are found in it soon, without a restart.
TEST(DeletedFolderTrials, AgentsAreFoundAgain) {
  const base::TestFolder folder("hawser-names");
  const std::string cards = folder.path("cards");
  PeerProcess process = PeerProcess::start("there driven=1 directory=" + cards);
  const auto here = std::make_unique<Agent>(must(Agent::open(in_folder("here", cards))));
  must(here->find_peer("there", 10s));
  std::filesystem::remove_all(cards);
  const auto newcomer = std::make_unique<Agent>(must(Agent::open(in_folder("newcomer", cards))));
  must(newcomer->find_peer("there", 10s));
  EXPECT_TRUE(eventually([&] {
    here->poll();
    return newcomer->find_peer("here", 10ms).has_value();
  }));
  EXPECT_EQ(process.ask("find newcomer 10000"), to_string(newcomer->incarnation()));
}

}  // namespace
}  // namespace hawser::real
