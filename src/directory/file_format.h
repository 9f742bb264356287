#pragma once

// How a file of the file directory looks: one line of text, then the key and the value.
//
//   hawser-value 1 <version> <expiry, wall-clock ns, 0 for none> <key size> <value size> <checksum, 16 hex digits>\n
//   <key><value>
//
// Equal records have equal bytes. The checksum finds files that a crash or an editor left torn; it is no protection
// from who may write to the folder.
//
// Thread rule: pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/directory.h>
#include <hawser/status.h>

namespace hawser::directory {

struct FileRecord {
  std::string key;
  std::string value;
  std::uint64_t version = 0;
  std::uint64_t expiry_ns = 0;  ///< Since 1970; 0: never.
};

/// A larger file is no value.
inline constexpr std::size_t kFileSizeMax = 256 + kDirectoryKeyMax + kDirectoryValueMax;

std::string encode_record(const FileRecord& record);
/// Errors: kCorrupt, saying what is wrong.
Result<FileRecord> decode_record(std::string_view file);

/// A file name of at most 200 bytes for any key: letters, digits, '-', '_', '.' and %XX for all others. That of a long
/// key ends in a hash, so distinct keys have distinct names; the key itself stands in the file.
std::string file_name(std::string_view key);

}  // namespace hawser::directory
