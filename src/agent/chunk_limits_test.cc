// The chunk limits that an agent remembers of a peer: of all backends that lead there, also of those that come later.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hawser/agent.h>

#include "agent/open.h"
#include "agent/plan.h"
#include "backend/loopback/factory.h"
#include "backend/tcp/factory.h"

namespace hawser::agent {
namespace {

constexpr std::uint64_t kMoved = 64 * 1024, kSmall = 16 * 1024;

int asked = 0;  ///< How often a backend was asked whether it leads to a peer.

/// Another backend, with small chunks.
class SmallChunks final : public backend::Backend {
 public:
  explicit SmallChunks(std::unique_ptr<backend::Backend> inner) : inner_(std::move(inner)), traits_(inner_->traits()) {
    traits_.chunk_bytes_max = kSmall;
  }
  const backend::Traits& traits() const override { return traits_; }
  std::string address() const override { return inner_->address(); }
  std::string readable_address() const override { return inner_->readable_address(); }
  Status reachable(std::string_view peer_address) const override {
    ++asked;
    return inner_->reachable(peer_address);
  }
  Result<std::string> add_region(const backend::RegionEntry& region) override { return inner_->add_region(region); }
  void remove_region(const backend::RegionEntry& region) override { inner_->remove_region(region); }
  Result<std::unique_ptr<backend::Port>> open_port() override { return inner_->open_port(); }
  Params params() const override { return inner_->params(); }
  std::vector<std::string> warnings() const override { return inner_->warnings(); }
  void disown_after_fork() override { inner_->disown_after_fork(); }

 private:
  const std::unique_ptr<backend::Backend> inner_;
  backend::Traits traits_;
};

template <backend::Factory (*kInner)()>
backend::Factory small() {
  return {
      .name = "small",
      .default_rank = 5,
      .open = [](const backend::Context& context, const Params& params) -> Result<std::unique_ptr<backend::Backend>> {
        auto inner = kInner().open(context, params);
        if (!inner) return inner.error();
        return std::unique_ptr<backend::Backend>(new SmallChunks(*std::move(inner)));
      }};
}

class ChunkLimits : public testing::Test {
 protected:
  static Agent open(std::string name, std::vector<BackendSpec> backends, std::vector<backend::Factory> known) {
    return std::move(open_with({.name = std::move(name), .backends = std::move(backends)}, std::move(known)).value());
  }
  std::size_t chunks_to(Agent& agent, const Region& from, const Peer& peer) {
    const LocalRange source = from.range(0, kMoved);
    const RemoteRange target = peer.range("target", 0, kMoved);
    return agent.plan_write(peer, {&source, 1}, {&target, 1})->core()->chunk_count();
  }
  std::vector<std::byte> source_ = std::vector<std::byte>(kMoved), target_ = std::vector<std::byte>(kMoved);
};

TEST_F(ChunkLimits, ABackendThatOpensLaterIsHeeded) {
  Agent agent = open("a", {{"loopback", {}}}, {backend::loopback_factory(), small<&backend::loopback_factory>()});
  const Region source = *agent.add_region({.name = "source", .bytes = source_});
  const Region target = *agent.add_region({.name = "target", .bytes = target_});
  EXPECT_EQ(chunks_to(agent, source, agent.self()), 1u);
  EXPECT_EQ(chunks_to(agent, source, agent.self()), 1u);
  ASSERT_TRUE(agent.add_backend({"small", {}}).ok());
  EXPECT_EQ(chunks_to(agent, source, agent.self()), kMoved / kSmall);
  asked = 0;
  EXPECT_EQ(chunks_to(agent, source, agent.self()), kMoved / kSmall);
  EXPECT_EQ(asked, 0) << "it is remembered, or the test above shows nothing";
}

TEST_F(ChunkLimits, ABackendThatThePeerOpensLaterIsHeeded) {
  const std::vector<backend::Factory> known = {backend::tcp_factory(), small<&backend::tcp_factory>()};
  Agent a = open("a", {{"small", {}}, {"tcp", {}}}, known), b = open("b", {{"tcp", {}}}, known);
  const Region source = *a.add_region({.name = "source", .bytes = source_});
  const Region target = *b.add_region({.name = "target", .bytes = target_});
  const Peer peer = *a.add_peer(*b.card());
  EXPECT_EQ(chunks_to(a, source, peer), 1u);
  ASSERT_TRUE(b.add_backend({"small", {}}).ok());
  EXPECT_EQ(chunks_to(a, source, peer), 1u) << "it is not known here yet";
  ASSERT_TRUE(a.add_peer(*b.card()));
  EXPECT_EQ(chunks_to(a, source, peer), kMoved / kSmall);
  asked = 0;
  EXPECT_EQ(chunks_to(a, source, peer), kMoved / kSmall);
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace hawser::agent
