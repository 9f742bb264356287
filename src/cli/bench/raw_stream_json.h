#pragma once

// How the parent tells the child which raw stream to run.

#include "cli/bench/blocks.h"
#include "cli/bench/raw_stream.h"

namespace hawser::cli::bench {

inline Json to_json(const RawWay& way) {
  return {{"sockets", way.sockets},
          {"threads", way.threads},
          {"blocking", way.blocking},
          {"call_bytes", way.call_bytes},
          {"call_blocks", way.call_blocks}};
}

inline RawWay raw_way_from(const Json& json) {
  const RawWay defaults;
  return {json.value("sockets", defaults.sockets), json.value("threads", defaults.threads),
          json.value("blocking", defaults.blocking), json.value("call_bytes", defaults.call_bytes),
          json.value("call_blocks", defaults.call_blocks)};
}

/// A pass is a list of blocks, all of it `repeat` times over.
inline RawPass raw_pass(const BlockList& list, std::uint64_t repeat, std::byte* base) {
  RawPass pass{base, {}, list.block_bytes};
  const auto indices = list.indices();
  for (std::uint64_t i = 0; i < repeat; ++i) {
    for (const std::uint32_t index : indices) pass.offsets.push_back(index * list.block_bytes);
  }
  return pass;
}

inline RawPass raw_pass_from(const Json& json, std::byte* base) {
  return raw_pass(block_list_from(json.value("blocks", Json::object())), json.value("repeat", std::uint64_t{1}), base);
}

}  // namespace hawser::cli::bench
