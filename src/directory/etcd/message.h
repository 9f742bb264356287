#pragma once

// Messages of etcd's v3 JSON gateway: requests to text, answers to values. Keys and values travel in base64, 64-bit
// numbers as text, and what is zero or empty is left out.
//
// Answers are hostile: whatever is not of the expected form is kCorrupt, and nesting is bounded. Their size is bounded
// by whoever reads them from the network.
//
// Thread rule: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

namespace hawser::directory::etcd {

/// The reaction that etcd's error codes (those of gRPC) ask for.
enum class Fault : std::uint8_t {
  kNone = 0,
  kTransient,  ///< Ask again, another member perhaps.
  kToken,      ///< Log in again.
  kNoSuchLease,
  kCompacted,  ///< That revision is gone: list again.
  kDenied,
  kFinal,  ///< Anything else.
};

struct Header {
  std::uint64_t cluster_id = 0;
  std::int64_t revision = 0;
  std::uint64_t term = 0;
};

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t revision = 0;  ///< When it changed last.
  std::int64_t lease = 0;
};

struct RangeAnswer {
  Header header;
  std::vector<KeyValue> entries;
  bool has_more = false;
};
struct PutAnswer {
  Header header;
  bool is_put = false;             ///< Or erased. False: a condition did not hold.
  std::optional<KeyValue> holder;  ///< The value that is there instead.
};
struct LeaseAnswer {
  std::int64_t id = 0;
  std::int64_t ttl = 0;  ///< Seconds; 0: there is no such lease.
};
struct WatchEvent {
  bool is_erased = false;
  KeyValue entry;
};
struct WatchAnswer {
  Header header;
  std::int64_t watch_id = 0;
  bool is_created = false;
  bool is_cancelled = false;
  bool is_fragment = false;  ///< More of the same revision follows.
  std::int64_t compacted = 0;
  std::string reason;
  Fault fault = Fault::kNone;  ///< The whole stream failed.
  std::vector<WatchEvent> events;
};
struct ErrorAnswer {
  Fault fault = Fault::kFinal;
  std::string text;
};

struct PutRequest {
  std::string_view key, value;
  std::int64_t lease = 0;
  bool only_new = false;
  std::optional<std::int64_t> if_revision = {};
};
struct RangeRequest {
  std::string_view key;
  std::string_view end = {};  ///< Empty: `key` alone.
  std::size_t limit = 0;
  std::int64_t revision = 0;  ///< 0: the newest.
  bool keys_only = false;
};

/// The end of the range of all keys with `prefix`.
std::string end_of_prefix(std::string_view prefix);

std::string encode_put(const PutRequest& request);  ///< For /v3/kv/txn.
std::string encode_range(const RangeRequest& request);
std::string encode_erase(std::string_view key);
std::string encode_erase_if(std::string_view key, std::int64_t revision);  ///< For /v3/kv/txn.
std::string encode_grant(std::int64_t ttl_seconds);
std::string encode_lease(std::int64_t id);  ///< Keep-alive and revoke.
std::string encode_login(std::string_view user, std::string_view password);
std::string encode_watch(std::string_view prefix, std::int64_t from_revision, std::int64_t watch_id);

Result<RangeAnswer> decode_range(std::string_view text);
Result<PutAnswer> decode_put(std::string_view text);        ///< And of an erase with a condition.
Result<std::uint64_t> decode_erase(std::string_view text);  ///< How many were there.
Result<LeaseAnswer> decode_lease(std::string_view text);    ///< For a grant or a keep-alive.
Result<std::string> decode_login(std::string_view text);    ///< The token.
Result<WatchAnswer> decode_watch(std::string_view line);
/// For an answer whose HTTP status is not 200. It never fails.
ErrorAnswer decode_error(std::string_view text, long http_status);

}  // namespace hawser::directory::etcd
