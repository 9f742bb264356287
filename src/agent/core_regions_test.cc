// What becomes of a region that one of the agent's backends cannot serve.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/open.h"
#include "backend/loopback/factory.h"

namespace hawser::agent {
namespace {

/// A loopback that registers nothing, as a NIC without locked memory does.
class Refusing final : public backend::Backend {
 public:
  explicit Refusing(std::unique_ptr<backend::Backend> inner) : inner_(std::move(inner)) {}
  const backend::Traits& traits() const override { return inner_->traits(); }
  std::string address() const override { return inner_->address(); }
  std::string readable_address() const override { return inner_->readable_address(); }
  Status reachable(std::string_view peer_address) const override { return inner_->reachable(peer_address); }
  Result<std::string> add_region(const backend::RegionEntry&) override {
    return Status(Code::kBusy, "no locked memory is left").with_advice("raise the limit");
  }
  void remove_region(const backend::RegionEntry& region) override { inner_->remove_region(region); }
  Result<std::unique_ptr<backend::Port>> open_port() override { return inner_->open_port(); }
  Params params() const override { return inner_->params(); }
  std::vector<std::string> warnings() const override { return inner_->warnings(); }
  void disown_after_fork() override { inner_->disown_after_fork(); }

 private:
  const std::unique_ptr<backend::Backend> inner_;
};

backend::Factory refusing() {
  return {
      .name = "refusing",
      .default_rank = 5,
      .open = [](const backend::Context& context, const Params& params) -> Result<std::unique_ptr<backend::Backend>> {
        auto inner = backend::loopback_factory().open(context, params);
        if (!inner) return inner.error();
        return std::unique_ptr<backend::Backend>(new Refusing(*std::move(inner)));
      }};
}

Agent open(std::vector<BackendSpec> backends, std::vector<std::string>* warnings) {
  AgentOptions options;
  options.name = "a";
  options.backends = std::move(backends);
  options.log.sink = [warnings](LogLevel, std::string_view text) { warnings->emplace_back(text); };
  return std::move(open_with(std::move(options), {backend::loopback_factory(), refusing()}).value());
}

TEST(AgentRegions, ABackendThatNobodyAskedForMayBeUnableToServeARegion) {
  std::vector<std::string> warnings;
  Agent agent = open({}, &warnings);
  std::vector<std::byte> memory(4096);
  const Result<Region> region = agent.add_region({.name = "kv", .bytes = memory});
  ASSERT_TRUE(region) << region.error().to_string();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("kv"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("refusing"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("no locked memory is left"), std::string::npos) << warnings[0];
}

TEST(AgentRegions, OneThatWasNamedMustServeEach) {
  std::vector<std::string> warnings;
  Agent agent = open({{"loopback", {}}, {"refusing", {}}}, &warnings);
  std::vector<std::byte> memory(4096);
  const Result<Region> region = agent.add_region({.name = "kv", .bytes = memory});
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code(), Code::kBusy);
  EXPECT_TRUE(agent.add_region({.name = "kv", .bytes = memory}).error().code() == Code::kBusy)
      << "the name is free again";
}

}  // namespace
}  // namespace hawser::agent
