// AgentOptions::adopt: what an agent says of adopted regions, and what its peer in another process gets.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 1 << 20;
constexpr std::size_t kPage = 4096;

/// Private memory with a page before and behind it that nobody registers.
class Mapped {
 public:
  Mapped() : at_(::mmap(nullptr, kSize + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::runtime_error("mmap");
  }
  ~Mapped() { ::munmap(at_, kSize + 2 * kPage); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  /// `offset` bytes past the beginning of a page.
  std::span<std::byte> bytes(std::size_t offset = 0) const {
    return {static_cast<std::byte*>(at_) + kPage + offset, kSize};
  }

 private:
  void* at_;
};

/// An agent that adopts, with what it logged.
struct Adopter {
  explicit Adopter(std::vector<BackendSpec> backends = {{"shm", {}}}) {
    AgentOptions options = quick("here");
    options.backends = std::move(backends);
    options.adopt = true;
    options.log.level = LogLevel::kInfo;
    options.log.sink = [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex);
      log.append(line).append("\n");
    };
    here.emplace(Way{.name = "shm", .backend = "shm", .allocated = false, .adopts = true}, options);
  }
  Agent& agent() { return here->agent(); }
  bool logged(std::string_view part) {
    const std::lock_guard lock(mutex);
    return log.find(part) != std::string::npos;
  }
  std::mutex mutex;
  std::string log;
  std::optional<Here> here;
};

bool says(const Status& status, std::string_view part) { return status.to_string().find(part) != std::string::npos; }

TEST(AdoptTest, PeersMapWhatWasAdopted) {
  for (const std::size_t offset : {std::size_t{0}, std::size_t{16}}) {
    const Mapped memory;
    const auto bytes = memory.bytes(offset);
    std::ranges::fill(bytes, std::byte{0x31});
    Adopter adopter;
    Region region = must(adopter.agent().add_region({.name = "target", .bytes = bytes, .device = {}}));
    EXPECT_TRUE(region.mappable().ok()) << region.mappable().to_string();
    EXPECT_TRUE(all_are(bytes, std::byte{0x31}));
    PeerProcess process = PeerProcess::start("there backend=shm driven=1 heartbeat_ms=1000");
    process.ask("region source " + std::to_string(kSize) + " allocated");
    std::string here_there;
    const Peer peer = adopter.here->meet(process, &here_there);
    process.ask("put source 50");
    process.ask("plan write source " + here_there + " target " + std::to_string(kSize));
    process.ask("submit");
    process.ask("wait 30000");
    EXPECT_TRUE(all_are(bytes, std::byte{50}));
    // The other way round: a read of what this process stores in its own memory.
    std::ranges::fill(bytes, std::byte{51});
    process.ask("plan read source " + here_there + " target " + std::to_string(kSize));
    process.ask("submit");
    process.ask("wait 30000");
    EXPECT_EQ(process.ask("see source 51"), "yes");
    EXPECT_NE(process.ask("explain").find("mapped 1 regions, " + std::to_string(kSize) + " bytes"), std::string::npos);
    const AgentCounters counters = adopter.agent().counters();
    EXPECT_EQ(counters.regions_adopted_gauge, 1u);
    EXPECT_EQ(counters.region_bytes_adopted_gauge, kSize);
    EXPECT_EQ(counters.regions_not_adopted_gauge, 0u);
    must(region.close(kPatience));
    EXPECT_TRUE(all_are(bytes, std::byte{51}));
    EXPECT_EQ(adopter.agent().counters().regions_adopted_gauge, 0u);
  }
}

TEST(AdoptTest, RefusalsAreToldAndCounted) {
  const Mapped memory;
  Adopter adopter;
  const auto few = memory.bytes().first(64);
  const Region tiny = must(adopter.agent().add_region({.name = "tiny", .bytes = few, .device = {}}));
  EXPECT_TRUE(says(tiny.mappable(), "no whole page")) << tiny.mappable().to_string();
  EXPECT_TRUE(adopter.logged("region 'tiny' of 64 bytes is not adopted"));
  const Region all = must(adopter.agent().add_region({.name = "all", .bytes = memory.bytes(), .device = {}}));
  EXPECT_TRUE(says(all.mappable(), "another registration holds a part"));
  const AgentCounters counters = adopter.agent().counters();
  EXPECT_EQ(counters.regions_not_adopted_gauge, 2u);
  EXPECT_EQ(counters.regions_adopted_gauge, 0u);
  EXPECT_NE(to_json(counters).find("\"regions_not_adopted\":2"), std::string::npos);
}

TEST(AdoptTest, NothingMovesWhereNothingMaps) {
  const Mapped memory;
  Adopter adopter({tcp()});
  const Region region = must(adopter.agent().add_region({.name = "r", .bytes = memory.bytes(), .device = {}}));
  EXPECT_TRUE(says(region.mappable(), "not asked"));
  EXPECT_EQ(adopter.agent().counters().regions_not_adopted_gauge, 0u);
  EXPECT_TRUE(Region().mappable().code() == Code::kInvalid);
  EXPECT_TRUE(must(adopter.agent().allocate({.name = "own", .size = 4096})).mappable().ok());
}

TEST(AdoptTest, AFailedRegistrationGivesBack) {
  const Mapped memory, other;
  std::ranges::fill(other.bytes(), std::byte{0x77});
  Adopter adopter;
  const Region first = must(adopter.agent().add_region({.name = "same", .bytes = memory.bytes(), .device = {}}));
  EXPECT_FALSE(adopter.agent().add_region({.name = "same", .bytes = other.bytes(), .device = {}}));
  EXPECT_TRUE(all_are(other.bytes(), std::byte{0x77}));
  const Region again = must(adopter.agent().add_region({.name = "again", .bytes = other.bytes(), .device = {}}));
  EXPECT_TRUE(again.mappable().ok()) << again.mappable().to_string();
}

TEST(AdoptTest, TwoAgentsOfOneProcessShareIt) {
  const Mapped memory;
  Adopter one, two;
  std::ranges::fill(memory.bytes(), std::byte{1});
  Region first = must(one.agent().add_region({.name = "r", .bytes = memory.bytes(), .device = {}}));
  Region second = must(two.agent().add_region({.name = "r", .bytes = memory.bytes(), .device = {}}));
  EXPECT_TRUE(first.mappable().ok() && second.mappable().ok()) << second.mappable().to_string();
  must(first.close(kPatience));
  Here other(Way{.name = "shm", .backend = "shm", .allocated = true}, quick("other"));
  Memory& source = other.add("source", kSize);
  std::ranges::fill(source.bytes, std::byte{2});
  const Peer peer = must(other.agent().add_peer(must(two.agent().card())));
  Transfer sent = must(other.plan_write(peer, "source", "r", kSize).submit());
  must(finish(sent));
  EXPECT_TRUE(all_are(memory.bytes(), std::byte{2}));
  must(second.close(kPatience));
  EXPECT_TRUE(all_are(memory.bytes(), std::byte{2}));
}

/// Prints; the three ways take turns. The adopted one has both ends, as memory of an allocator does.
TEST(AdoptTest, SpeedOfForeignAdoptedAndAllocated) {
  constexpr int kRounds = 100;
  Here here(Way{.name = "shm", .backend = "shm", .allocated = true}, quick("here"));
  Memory& source = here.add("source", kSize);
  struct Kind {
    std::string name, options, region;
    std::optional<PeerProcess> process;
    Plan plan;
    std::vector<Duration> times;
  };
  std::array<Kind, 3> kinds = {Kind{"foreign", "", "foreign", {}, {}, {}},
                               Kind{"adopted", " adopt=1", "foreign", {}, {}, {}},
                               Kind{"allocated", "", "allocated", {}, {}, {}}};
  for (Kind& kind : kinds) {
    kind.process.emplace(PeerProcess::start(kind.name + " backend=shm driven=1" + kind.options));
    kind.process->ask("region target " + std::to_string(kSize) + " " + kind.region);
    kind.plan = here.plan_write(here.meet(*kind.process), "source", "target", kSize);
  }
  for (int round = 0; round < kRounds; ++round) {
    std::ranges::fill(source.bytes, static_cast<std::byte>(round));
    for (Kind& kind : kinds) {
      const Instant from = now();
      Transfer sent = must(kind.plan.submit());
      must(finish(sent));
      kind.times.push_back(now() - from);
    }
  }
  for (Kind& kind : kinds) {
    EXPECT_EQ(kind.process->ask("see target " + std::to_string((kRounds - 1) % 256)), "yes") << kind.name;
    std::ranges::sort(kind.times);
    print_time("write of 1 MiB, " + kind.name + ", median", kind.times[kRounds / 2]);
  }
}

TEST(AdoptTest, AForkedChildHarmsNobody) {
  const Mapped memory;
  Adopter adopter;
  Region region = must(adopter.agent().add_region({.name = "target", .bytes = memory.bytes(), .device = {}}));
  std::ranges::fill(memory.bytes(), std::byte{7});
  const pid_t child = ::fork();
  if (child == 0) {
    if (!all_are(memory.bytes(), std::byte{7})) ::_exit(1);
    std::ranges::fill(memory.bytes(), std::byte{8});
    ::_exit(all_are(memory.bytes(), std::byte{8}) ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(all_are(memory.bytes(), std::byte{7}));
  must(region.close(kPatience));
  EXPECT_TRUE(all_are(memory.bytes(), std::byte{7}));
}

}  // namespace
}  // namespace hawser::real
