#include "cli/demo_geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quantity.h"
#include "base/rng.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

struct Model {
  std::string_view name;
  std::uint32_t layers, planes;
  std::uint64_t token_bytes;  // bf16: two bytes a value
};

constexpr std::array<Model, 4> kModels = {{
    {"llama-3.1-8b", 32, 2, 8 * 128 * 2},
    {"llama-3.1-70b", 80, 2, 8 * 128 * 2},
    {"deepseek-v3", 61, 1, (512 + 64) * 2},  // kv_lora_rank 512 and 64 values of rotary key
    {"qwen3-8b", 36, 2, 8 * 128 * 2},
}};

// Blocks that stay free, so that a request's blocks are neighbours on neither side even when there is but one.
constexpr std::uint64_t kSpareShare = 8;  // one in eight

}  // namespace

std::string model_names() {
  std::string text;
  for (const Model& model : kModels) text += fmt::format("{}{}", text.empty() ? "" : ", ", model.name);
  return text;
}

Result<Geometry> model_geometry(std::string_view name) {
  const auto model = std::find_if(kModels.begin(), kModels.end(),
                                  [&](const Model& m) { return base::equal_ignoring_case(m.name, name); });
  if (model == kModels.end()) {
    return Status(Code::kNotFound, fmt::format("no model is named '{}'", name))
        .with_advice(fmt::format("choose one of {}, or give --layers, --kv-heads, --head-dim and "
                                 "--dtype-bytes",
                                 model_names()));
  }
  return Geometry{std::string(model->name), model->layers, model->planes, model->token_bytes};
}

Result<TokenRange> parse_tokens(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto min = base::parse_count(text.substr(0, dash));
  const auto max = dash == std::string_view::npos ? min : base::parse_count(text.substr(dash + 1));
  constexpr std::uint64_t kTokensMax = 1u << 24;
  if (!min || !max || *min == 0 || *min > *max || *max > kTokensMax) {
    return Status(Code::kInvalid, fmt::format("'{}' is no number of tokens: write 512, or 64-1024 "
                                              "for lengths between the two (at most {})",
                                              text, kTokensMax));
  }
  return TokenRange{static_cast<std::uint32_t>(*min), static_cast<std::uint32_t>(*max)};
}

std::vector<Request> draw_requests(std::uint32_t count, TokenRange tokens, std::uint32_t block_tokens,
                                   std::uint64_t seed) {
  base::Rng rng(seed);
  const double low = std::log(tokens.min);
  const double high = std::log(static_cast<double>(tokens.max) + 1);
  std::vector<Request> requests(count);
  for (std::uint32_t id = 0; id < count; ++id) {
    const auto drawn = static_cast<std::uint32_t>(std::exp(low + rng.unit() * (high - low)));
    const std::uint32_t length = std::clamp(drawn, tokens.min, tokens.max);
    requests[id] = {id, length, (length + block_tokens - 1) / block_tokens};
  }
  return requests;
}

std::uint64_t Workload::total_blocks() const {
  std::uint64_t sum = 0;
  for (const auto& wave : waves) {
    for (const Request& request : wave) sum += request.blocks;
  }
  return sum;
}

Result<Workload> arrange(const Geometry& geometry, const std::vector<Request>& requests, std::uint64_t memory) {
  const std::uint64_t affordable = memory / geometry.block_bytes_all();
  std::uint64_t needed = 0;
  std::uint64_t largest = 0;
  for (const Request& request : requests) {
    needed += request.blocks;
    largest = std::max<std::uint64_t>(largest, request.blocks);
  }
  if (largest > affordable) {
    return Status(Code::kInvalid,
                  fmt::format("a request of {} blocks needs {} of KV cache on each side, and --memory is {}", largest,
                              short_size(largest * geometry.block_bytes_all()), short_size(memory)))
        .with_advice("raise --memory, or shorten --prompt-tokens");
  }
  Workload work;
  work.blocks = static_cast<std::uint32_t>(std::min(affordable, needed + needed / kSpareShare + 1));
  std::uint64_t left = 0;
  for (const Request& request : requests) {
    if (request.blocks > left) {
      work.waves.emplace_back();
      left = work.blocks;
    }
    work.waves.back().push_back(request);
    left -= request.blocks;
  }
  return work;
}

}  // namespace hawser::cli
