#include "cli/demo_geometry.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/demo_kv.h"

namespace hawser::cli {
namespace {

TEST(DemoGeometry, ModelsHaveTheirTrueSizes) {
  // Bytes of KV cache per token, over all layers.
  const auto per_token = [](const char* name) {
    const Geometry g = model_geometry(name).value();
    return g.token_bytes * g.planes * g.layers;
  };
  EXPECT_EQ(per_token("llama-3.1-8b"), 131072u);
  EXPECT_EQ(per_token("Llama-3.1-70B"), 327680u);
  EXPECT_EQ(per_token("deepseek-v3"), 70272u);
  EXPECT_EQ(per_token("qwen3-8b"), 147456u);
  EXPECT_EQ(model_geometry("gpt").error().code(), Code::kNotFound);
}

TEST(DemoGeometry, LengthsComeFromTheSeedAndTheRange) {
  const auto a = draw_requests(100, {64, 1024}, 16, 1);
  const auto b = draw_requests(100, {64, 1024}, 16, 1);
  std::set<std::uint32_t> lengths;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens);
    EXPECT_GE(a[i].tokens, 64u);
    EXPECT_LE(a[i].tokens, 1024u);
    EXPECT_EQ(a[i].blocks, (a[i].tokens + 15) / 16);
    lengths.insert(a[i].tokens);
  }
  EXPECT_GT(lengths.size(), 50u);
  EXPECT_EQ(draw_requests(1, {512, 512}, 16, 9)[0].blocks, 32u);
}

TEST(DemoGeometry, TokensAreParsed) {
  EXPECT_EQ(parse_tokens("512")->max, 512u);
  EXPECT_EQ(parse_tokens("64-128")->min, 64u);
  for (const char* text : {"", "0", "9-8", "a", "1-", "-5", "99999999999"}) {
    EXPECT_EQ(parse_tokens(text).error().code(), Code::kInvalid) << text;
  }
}

TEST(DemoGeometry, WavesFitTheMemory) {
  const Geometry geometry = model_geometry("llama-3.1-8b").value();
  const std::vector<Request> requests = {{0, 160, 10}, {1, 160, 10}, {2, 160, 10}, {3, 16, 1}};
  const auto roomy = arrange(geometry, requests, 1ull << 30);
  EXPECT_EQ(roomy->waves.size(), 1u);
  EXPECT_GT(roomy->blocks, 31u);
  const auto tight = arrange(geometry, requests, 21 * geometry.block_bytes_all());
  ASSERT_EQ(tight->waves.size(), 2u);
  EXPECT_EQ(tight->blocks, 21u);
  EXPECT_EQ(tight->waves[0].size(), 2u);
  EXPECT_EQ(tight->total_blocks(), 31u);
  EXPECT_EQ(arrange(geometry, requests, 9 * geometry.block_bytes_all()).error().code(), Code::kInvalid);
}

TEST(KvShape, IndicesCoverAllPlanes) {
  const KvShape shape{2, 2, 100, 4096};
  const std::vector<std::uint32_t> table = {7, 3};
  EXPECT_EQ(shape.indices(table), (std::vector<std::uint32_t>{7, 3, 107, 103}));
  EXPECT_EQ(shape.region_bytes(), 2u * 100 * 4096);
  EXPECT_EQ(shape_from(to_json(shape))->blocks, 100u);
  EXPECT_FALSE(shape_from(Json::object()));
}

}  // namespace
}  // namespace hawser::cli
