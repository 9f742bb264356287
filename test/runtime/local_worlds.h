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

#include "base/test_folder.h"
#include "runtime/flight_file.h"
#include "schedule/collective.h"

namespace hawser {

class LocalWorlds : public testing::Test {
 protected:
  void open(std::uint32_t size, const char* backend = "shm") {
    worlds_.clear();
    folder_ = std::make_unique<base::TestFolder>("/tmp/hawser-worlds");
    WorldOptions options;
    options.timeout = std::chrono::seconds(60);
    options.agent.backends = {{.name = backend}};
    options.agent.status_page = folder_->path();
    Result<std::vector<World>> made = World::local(size, options);
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    worlds_ = std::move(*made);
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
  std::string last_algorithm() const {
    for (const std::string& path : runtime::list_flights(folder_->path())) {
      const Result<runtime::Flight> flight = runtime::read_flight(path);
      if (!flight || flight->header.rank != 0 || flight->entries.empty()) continue;
      return std::string(to_string(static_cast<schedule::Algorithm>(flight->entries.back().algorithm - 1)));
    }
    return "none";
  }
  /// An element of that rank's; sums of some hundred are exact.
  static float value(std::size_t i, std::size_t rank, int round) {
    return static_cast<float>((i * 3 + rank * 7 + static_cast<std::size_t>(round)) % 61);
  }

  std::unique_ptr<base::TestFolder> folder_;
  std::vector<World> worlds_;
};

}  // namespace hawser
