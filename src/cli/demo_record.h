#pragma once

// The demo's two notifications: the record that rides on a request's last transfer, and
// its acknowledgement. Bytes from a peer: decoding is bounded and checks everything.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::cli {

/// Sent with the last layer of a request.
struct Record {
  std::uint32_t pass = 0;
  std::uint32_t request = 0;
  std::vector<std::uint32_t> blocks;      ///< The target's block table.
  std::vector<std::uint64_t> layer_sums;  ///< See KvCache::layer_sums; empty without --verify.
};
std::string encode(const Record& record);
/// Nothing when the bytes are no record.
std::optional<Record> decode_record(std::string_view bytes);

/// The answer, as soon as the record arrived.
struct Ack {
  std::uint32_t pass = 0;
  std::uint32_t request = 0;
};
std::string encode(const Ack& ack);
std::optional<Ack> decode_ack(std::string_view bytes);

}  // namespace hawser::cli
