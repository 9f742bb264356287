#pragma once

// LocalWorlds, for tests: the ranks of a world of this process, which write down what they do.
//
// Thread rule: the test's thread, but for what `on_all` runs.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/inner.h"
#include "base/test_folder.h"
#include "runtime/flight_file.h"
#include "runtime/world_core.h"
#include "schedule/collective.h"

namespace hawser {

class LocalWorlds : public testing::Test {
 protected:
  void open(std::uint32_t size, const char* backend = "shm", RecoveryPolicy recovery = RecoveryPolicy::kManual) {
    worlds_.clear();
    folder_ = std::make_unique<base::TestFolder>("/tmp/hawser-worlds");
    WorldOptions options;
    options.timeout = std::chrono::seconds(60);
    options.recovery = recovery;
    options.agent.backends = {{.name = backend}};
    options.agent.status_page = folder_->path();
    Result<std::vector<World>> made = World::local(size, options);
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    worlds_ = std::move(*made);
  }
  /// By rank, the number of its host: as if they were on several.
  void open_on(const std::vector<std::uint64_t>& hosts, const char* backend = "shm") {
    worlds_.clear();
    folder_ = std::make_unique<base::TestFolder>("/tmp/hawser-worlds");
    const auto size = static_cast<std::uint32_t>(hosts.size());
    constexpr std::chrono::seconds kLong(60);
    std::vector<std::shared_ptr<runtime::WorldCore>> cores;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      WorldOptions options;
      options.timeout = kLong;
      options.driven = true;
      options.agent.backends = {{.name = backend}};
      options.agent.status_page = folder_->path();
      cores.push_back(runtime::WorldCore::open_agent(options, rank, size, {.host = hosts[rank] + 1}).value());
    }
    std::vector<Request> entered;
    std::vector<std::vector<Peer>> peers(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      Agent& agent = cores[rank]->agent();
      for (std::uint32_t other = 0; other < size; ++other) {
        const bool is_self = other == rank;
        peers[rank].push_back(is_self ? agent.self() : agent.add_peer(cores[other]->agent().card().value()).value());
      }
    }
    const Instant until = agent::inner::now(cores[0]->agent()) + kLong;
    for (std::uint32_t rank = 0; rank < size; ++rank) ASSERT_TRUE(cores[rank]->connect(peers[rank], until).ok());
    for (std::uint32_t rank = 0; rank < size; ++rank) ASSERT_TRUE(cores[rank]->enter(std::move(peers[rank])).ok());
    for (const auto& core : cores) entered.push_back(core->all_entered(kLong));
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      ASSERT_TRUE(entered[rank].wait(kLong).ok());
      worlds_.emplace_back(std::move(cores[rank]));
    }
  }
  static constexpr int kTriesMax = 1 << 12;  ///< Until all ranks see all boards: they try after 1, 2, 4, 8 ... calls.
  /// A barrier of them, begun in this thread.
  static void meet(std::vector<World>& worlds) {
    std::vector<Request> all;
    for (World& world : worlds) all.push_back(world.ibarrier());
    for (Request& each : all) {
      const Status status = each.wait(std::chrono::seconds(60));
      ASSERT_TRUE(status.ok()) << status.to_string();
    }
  }
  /// Runs `call(rank)` in a thread for each rank.
  template <typename Call>
  static void on_all(std::size_t ranks, Call call) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&call, rank] { call(rank); });
    for (std::thread& thread : threads) thread.join();
  }
  template <typename Call>
  void on_all(Call call) {
    on_all(worlds_.size(), call);
  }
  /// How the last collective of rank 0 went.
  std::string last_algorithm() const { return algorithm_of(0); }
  std::string algorithm_of(std::uint32_t rank) const {
    for (const std::string& path : runtime::list_flights(folder_->path())) {
      const Result<runtime::Flight> flight = runtime::read_flight(path);
      if (!flight || flight->header.rank != rank || flight->entries.empty()) continue;
      return std::string(to_string(static_cast<schedule::Algorithm>(flight->entries.back().algorithm - 1)));
    }
    return "none";
  }
  /// An element of that rank's; sums of some hundred are exact.
  static float value(std::size_t i, std::size_t rank, int round) {
    return static_cast<float>((i * 3 + rank * 7 + static_cast<std::size_t>(round)) % 61);
  }
  /// More all_reduces at once than a board has slots, small ones and large ones.
  void check_many_at_once(int rounds) {
    constexpr std::size_t kAtOnce = 20;
    for (int round = 0; round < rounds; ++round) {
      on_all([&](std::size_t rank) {
        std::vector<std::vector<float>> data;
        std::vector<Request> requests;
        for (std::size_t k = 0; k < kAtOnce; ++k) {
          const std::size_t count = k % 5 == 4 ? 5000 : 1 + k;
          data.emplace_back(count);
          for (std::size_t i = 0; i < count; ++i) data[k][i] = value(i, rank, static_cast<int>(k));
        }
        for (auto& each : data) {
          requests.push_back(
              worlds_[rank].iall_reduce(each.data(), each.data(), each.size(), DataType::kFloat32, ReduceOp::kSum));
        }
        for (std::size_t k = 0; k < kAtOnce; ++k) {
          const Status status = requests[k].wait(std::chrono::seconds(60));
          ASSERT_TRUE(status.ok()) << status.to_string();
          for (std::size_t i = 0; i < data[k].size(); ++i) {
            ASSERT_EQ(data[k][i], sum(i, static_cast<int>(k))) << k << " " << i;
          }
        }
      });
      if (HasFatalFailure()) return;
    }
  }
  float sum(std::size_t i, int round) const {
    float all = 0;
    for (std::size_t rank = 0; rank < worlds_.size(); ++rank) all += value(i, rank, round);
    return all;
  }

  std::unique_ptr<base::TestFolder> folder_;
  std::vector<World> worlds_;
};

}  // namespace hawser
