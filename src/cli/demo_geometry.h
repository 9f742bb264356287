#pragma once

// The shape of a model's KV cache, and the requests that the demo moves.
//
// A paged KV cache has one region per layer, laid out as vLLM does: [planes][blocks][block bytes]. Planes are K and V;
// models with multi-head latent attention (DeepSeek) keep one latent vector instead, so one plane.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

namespace hawser::cli {

struct Geometry {
  std::string model;
  std::uint32_t layers = 0;
  std::uint32_t planes = 2;
  std::uint64_t token_bytes = 0;  ///< For one token in one plane of one layer.
  std::uint32_t block_tokens = 16;

  std::uint64_t block_bytes() const { return token_bytes * block_tokens; }
  /// One block of the block table, over all layers and planes.
  std::uint64_t block_bytes_all() const { return block_bytes() * planes * layers; }
};

/// "llama-3.1-8b, llama-3.1-70b, ...".
std::string model_names();
/// kNotFound lists the models that there are.
Result<Geometry> model_geometry(std::string_view name);

/// One request: a prompt whose KV cache fills some blocks.
struct Request {
  std::uint32_t id = 0;
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
};

struct TokenRange {
  std::uint32_t min = 64, max = 1024;
};
/// "512" or "64-1024".
Result<TokenRange> parse_tokens(std::string_view text);

/// Prompts whose lengths are drawn log-uniformly, so short ones are as common as long ones, from `seed`.
std::vector<Request> draw_requests(std::uint32_t count, TokenRange tokens, std::uint32_t block_tokens,
                                   std::uint64_t seed);

/// How the requests fit into the memory: as many at a time as there are blocks, in order.
struct Workload {
  std::uint32_t blocks = 0;  ///< In each layer's plane, on both sides.
  std::vector<std::vector<Request>> waves;

  std::uint64_t total_blocks() const;
};
/// kInvalid when one request alone needs more than `memory` bytes.
Result<Workload> arrange(const Geometry& geometry, const std::vector<Request>& requests, std::uint64_t memory);

}  // namespace hawser::cli
