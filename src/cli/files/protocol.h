#pragma once

// What `hawser cp` and `hawser serve --dir` say to each other. Requests are messages on one channel, answers are
// notifications; both are JSON objects with the request's `id`. File bytes travel in transfers between a buffer of
// the server and the client's region: the server writes what it read, and reads what it shall write, so an answer that
// rides on a write comes after its bytes.
//
//   hello                                 the client's card follows the JSON text, after a zero byte
//   stat   path                           -> exists size mode mtime_ns folder file kind (what lies there, in words)
//   list   path from                      -> files [{path size}] more
//   hash   path offset size               -> hash bytes (fewer where the file ends)
//   read   path offset size slot          -> hash size mtime_ns; the bytes are at `slot` in the client's region
//   begin  path                           -> size of `path`.part, this client's alone until it finishes or goes
//   write  path offset size slot hash     -> the bytes are in `path`.part
//   finish path size mode mtime_ns        -> `path`.part is `path` now, on the device
//
// Every answer has `ok`; when it is false `error` holds the status. A path is a text where it is UTF-8, else an object
// {"hex": its bytes}: names of files are bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "cli/json_out.h"

namespace hawser::cli {

inline constexpr std::uint32_t kFileChannel = 64;
inline constexpr std::uint32_t kFileCredit = 256;        ///< Requests of one client that may wait at the server.
inline constexpr std::uint64_t kFileChunk = 4ull << 20;  ///< Bytes moved by one request.
inline constexpr std::string_view kFileRegion = "cp";    ///< The client's.
inline constexpr std::string_view kPartSuffix = ".part";
inline constexpr std::size_t kListBytes = 32 * 1024;  ///< The paths in one answer.
inline constexpr std::uint64_t kFileSizeMax = 1ull << 60;

/// XXH3 in hex, as JSON has no 64-bit numbers that every reader keeps.
std::string sum_of(std::span<const std::byte> bytes);

/// The sum of bytes that come one part after the other.
class Summer {
 public:
  Summer();
  ~Summer();
  Summer(const Summer&) = delete;
  Summer& operator=(const Summer&) = delete;
  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct FileMessage {
  Json json;
  std::string tail;
};
/// A path as it goes into a message, and out of one; kInvalid when it is none.
Json json_of_path(std::string_view path);
Result<std::string> path_from(const Json& json);

/// The JSON, then a zero byte and `tail` where there is one. Bytes of other texts that are no UTF-8 are replaced.
std::string encode_file_message(const Json& json, std::string_view tail = {});
/// Null JSON when it is none, or nested deeper than any message of ours.
FileMessage decode_file_message(std::string_view bytes);

}  // namespace hawser::cli
