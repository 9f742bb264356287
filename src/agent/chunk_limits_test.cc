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
#include "backend/test_wrapped.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

constexpr std::uint64_t kMoved = 64 * 1024, kSmall = 16 * 1024;

int asked = 0;  ///< How often a backend was asked whether it leads to a peer.

/// Another backend, with small chunks.
class SmallChunks final : public backend::WrappedBackend {
 public:
  explicit SmallChunks(std::unique_ptr<backend::Backend> inner)
      : WrappedBackend(std::move(inner)), traits_(WrappedBackend::traits()) {
    traits_.chunk_bytes_max = kSmall;
  }
  const backend::Traits& traits() const override { return traits_; }
  Status reachable(std::string_view peer_address) const override {
    ++asked;
    return WrappedBackend::reachable(peer_address);
  }

 private:
  backend::Traits traits_;
};

backend::Factory small(const backend::Factory& inner) {
  return backend::wrapping("small", 5, inner, [](std::unique_ptr<backend::Backend> opened) {
    return std::make_unique<SmallChunks>(std::move(opened));
  });
}

class ChunkLimits : public testing::Test {
 protected:
  static Agent open(std::string name, std::vector<BackendSpec> backends, std::vector<backend::Factory> known) {
    return std::move(open_with({.name = std::move(name), .backends = std::move(backends)}, std::move(known)).value());
  }
  std::size_t chunks_to(Agent& agent, const Region& from, const Peer& peer) {
    const LocalRange source = from.range(0, kMoved);
    const RemoteRange target = peer.range("target", 0, kMoved);
    return core_of(*agent.plan_write(peer, {&source, 1}, {&target, 1}))->chunk_count();
  }
  std::vector<std::byte> source_ = std::vector<std::byte>(kMoved), target_ = std::vector<std::byte>(kMoved);
};

TEST_F(ChunkLimits, ABackendThatOpensLaterIsHeeded) {
  Agent agent = open("a", {{"loopback", {}}}, {backend::loopback_factory(), small(backend::loopback_factory())});
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
  const std::vector<backend::Factory> known = {backend::tcp_factory(), small(backend::tcp_factory())};
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
