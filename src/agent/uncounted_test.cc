// Chunks of which the target never hears, though they landed: the initiator's agent tells that all is visible.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/tcp/factory.h"
#include "backend/test_wrapped.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// What is done to the events of a port. One thread.
struct Wire {
  bool loses_arrivals = false;        ///< At the target.
  bool says_uncounted = false;        ///< At the initiator: of each chunk.
  std::vector<std::uint64_t> lost;    ///< Transfers whose arrivals were lost,
  std::vector<std::uint64_t> to_say;  ///< and those that the initiator's port is to tell of.
};

class LossyPort final : public backend::WrappedPort {
 public:
  LossyPort(std::unique_ptr<backend::Port> inner, Wire& wire) : WrappedPort(std::move(inner)), wire_(wire) {}

  Result<backend::Path*> open_path(const backend::PathTarget& target, Instant now) override {
    Result<backend::Path*> path = WrappedPort::open_path(target, now);
    if (path) opened_ = *path;
    return path;
  }
  std::size_t poll(std::span<backend::PortEvent> out) override {
    const std::size_t count = WrappedPort::poll(out);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (wire_.loses_arrivals && out[i].kind == backend::PortEvent::Kind::kArrival) {
        wire_.lost.push_back(out[i].transfer);
        continue;
      }
      out[i].uncounted |= wire_.says_uncounted;
      if (kept != i) out[kept] = out[i];
      ++kept;
    }
    while (opened_ != nullptr && !wire_.to_say.empty() && kept < out.size()) {
      out[kept] = {.kind = backend::PortEvent::Kind::kUncounted, .path = opened_, .transfer = wire_.to_say.back()};
      wire_.to_say.pop_back();
      ++kept;
    }
    return kept;
  }

 private:
  Wire& wire_;
  backend::Path* opened_ = nullptr;
};

class LossyBackend final : public backend::WrappedBackend {
 public:
  LossyBackend(std::unique_ptr<backend::Backend> inner, Wire& wire) : WrappedBackend(std::move(inner)), wire_(wire) {}
  Result<std::unique_ptr<backend::Port>> open_port() override {
    auto port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<backend::Port>(new LossyPort(*std::move(port), wire_));
  }

 private:
  Wire& wire_;
};

Agent open_lossy(const std::string& name, Wire& wire) {
  backend::Factory lossy =
      backend::wrapping("lossy", 50, backend::tcp_factory(), [&wire](std::unique_ptr<backend::Backend> inner) {
        return std::make_unique<LossyBackend>(std::move(inner), wire);
      });
  AgentOptions options;
  options.name = name;
  options.backends = {{"lossy", {}}};
  return std::move(open_with(std::move(options), {std::move(lossy)}).value());
}

/// Two polled agents: all is done by this thread.
class Uncounted : public testing::Test {
 protected:
  Uncounted() {
    from_ = here_.add_region({.name = "source", .bytes = source_}).value();
    to_ = there_.add_region({.name = "target", .bytes = target_}).value();
    peer_ = here_.add_peer(there_.card().value()).value();
    const LocalRange from = from_.range(0, source_.size());
    const RemoteRange to = peer_.range("target", 0, target_.size());
    plan_ = here_.plan_write(peer_, {&from, 1}, {&to, 1}).value();
  }
  template <typename Done>
  bool run(Done&& finished, Duration patience = 10s) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!finished()) {
      if (std::chrono::steady_clock::now() > end) return false;
      static_cast<void>(here_.poll());
      static_cast<void>(there_.poll());
      while (auto note = there_.take_notification()) notes_.push_back(note->text);
    }
    return true;
  }
  /// Written, and all that is told of it was told.
  void write(const std::string& note) {
    Transfer sent = plan_.submit({.notify = note}).value();
    ASSERT_TRUE(run([&] { return sent.done(); }));
    ASSERT_TRUE(sent.status().ok()) << sent.status().to_string();
    run([] { return false; }, 50ms);
  }

  Wire wire_here_, wire_there_;
  std::vector<std::byte> source_ = std::vector<std::byte>(4096), target_ = std::vector<std::byte>(4096);
  Agent there_ = open_lossy("there", wire_there_);
  Agent here_ = open_lossy("here", wire_here_);
  Region from_, to_;
  Peer peer_;
  Plan plan_;
  std::vector<std::string> notes_;
};

TEST_F(Uncounted, AChunkThatNothingTellsOfIsToldByTheAgent) {
  write("first");
  EXPECT_EQ(notes_, (std::vector<std::string>{"first"}));
  wire_there_.loses_arrivals = wire_here_.says_uncounted = true;
  write("second");
  EXPECT_EQ(notes_, (std::vector<std::string>{"first", "second"}));
  wire_there_.loses_arrivals = false;
  write("third");
  EXPECT_EQ(notes_, (std::vector<std::string>{"first", "second", "third"})) << "told twice is delivered once";
}

TEST_F(Uncounted, AnArrivalLostAfterTheEndIsToldByTheAgentOnce) {
  wire_there_.loses_arrivals = true;
  write("one");
  write("two");
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(wire_there_.lost.size(), 2u);
  wire_there_.loses_arrivals = false;
  write("three");
  EXPECT_EQ(notes_, (std::vector<std::string>{"three"}));
  for (int i = 0; i < 2; ++i) {
    wire_here_.to_say = {1, 2, 3, 4};  // What was counted, and one that never was, as well.
    run([] { return false; }, 50ms);
    EXPECT_EQ(notes_.size(), 3u);
  }
  write("four");
  EXPECT_EQ(notes_.back(), "four");
  EXPECT_EQ(notes_.size(), 4u);
}

}  // namespace
}  // namespace hawser::agent
