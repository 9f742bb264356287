// Several ports and memory of the host on NUMA nodes: a chunk goes by a port of its memory's node while that has room.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/verbs/devices/device_test_tree.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::size_t kBlock = 8192;
constexpr int kBlocks = 4;

class NumaPair : public VerbsPair {
 protected:
  NumaPair() {
    sysfs.pci("pci0000:00/0000:00:01.0/0000:11:00.0", 0);
    sysfs.pci("pci0000:80/0000:80:01.0/0000:82:00.0", 1);
    a_gpus.places = {{"mock0", *find_pci_place(sysfs.root(), {.bus = 0x11})},
                     {"mock2", *find_pci_place(sysfs.root(), {.bus = 0x82})}};
    a_gpus.node_of = [this](std::uintptr_t address, std::size_t) {
      ++asked;
      for (int node = 0; node < 2; ++node) {
        if (address - reinterpret_cast<std::uintptr_t>(on_node[node].data()) < on_node[node].size()) return node;
      }
      return -1;
    };
  }
  void begin(std::vector<std::string> devices = {"mock0", "mock2"}) {
    start(std::move(devices), {"mock1", "mock3"});
    connect();
    for (std::vector<std::byte>& each : on_node) {
      RegionEntry entry;
      entry.key = {7, 9};
      entry.base = each.data();
      entry.size = each.size();
      const auto added = *a->table.add(std::move(entry));
      ASSERT_TRUE(a->regions->add(*added).has_value());
    }
  }
  int under_way_on(const std::string& device) {
    int all = 0;
    for (const std::uint32_t number : fabric.qp_numbers()) {
      all += fabric.device_of(number) == device ? static_cast<int>(fabric.under_way(number)) : 0;
    }
    return all;
  }
  /// Chunks of `local` that are under way on each of two devices.
  std::pair<int, int> spread(std::byte* local, Operation operation = Operation::kWrite) {
    fabric.hold = true;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      const Piece pieces[] = {{local + i * kBlock, i * kBlock, kBlock}};
      EXPECT_EQ(submit(operation, pieces, ++cookies).taken, 1u);
    }
    const std::pair found{under_way_on("mock0"), under_way_on("mock2")};
    fabric.hold = false;
    fabric.deliver();
    EXPECT_TRUE(run([&] { return is_done(cookies); }));
    return found;
  }

  const SysfsTree sysfs;
  std::vector<std::byte> on_node[2] = {std::vector<std::byte>(kBlocks * kBlock),
                                       std::vector<std::byte>(kBlocks* kBlock)};
  int asked = 0;
  std::uint64_t cookies = 0;
};

using Spread = std::pair<int, int>;

TEST_F(NumaPair, MemoryGoesByThePortOfItsNode) {
  begin();
  EXPECT_EQ(spread(on_node[0].data()), Spread(kBlocks, 0));
  EXPECT_EQ(spread(on_node[1].data()), Spread(0, kBlocks));
  EXPECT_EQ(spread(on_node[1].data(), Operation::kRead), Spread(0, kBlocks));
  EXPECT_EQ(asked, 3) << "once for each region, not for each device";
}

TEST_F(NumaPair, MemoryOfNoKnownNodeGoesByAllPorts) {
  begin();
  EXPECT_EQ(spread(a->memory.data()), Spread(kBlocks / 2, kBlocks / 2));
}

TEST_F(NumaPair, TheOtherPortTakesWhatTheNearOneHasNoRoomFor) {
  options.window = 2 * kBlock;
  begin();
  EXPECT_EQ(spread(on_node[0].data()), Spread(2, 2));
}

TEST_F(NumaPair, WherePortsAreEquallyNearNobodyIsAsked) {
  a_gpus.places["mock2"] = a_gpus.places["mock0"];
  begin();
  EXPECT_EQ(spread(on_node[0].data()), Spread(kBlocks / 2, kBlocks / 2));
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace hawser::backend::verbs
