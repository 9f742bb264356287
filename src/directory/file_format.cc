#include "directory/file_format.h"

#include <xxhash.h>

#include <array>
#include <charconv>

#include "base/format.h"

namespace hawser::directory {
namespace {

constexpr std::string_view kMagic = "hawser-value 1 ";
/// Magic, four numbers of up to 20 digits, the checksum, blanks and the newline.
constexpr std::size_t kHeaderMax = 128;
constexpr std::size_t kNameMax = 200;
constexpr std::size_t kPlainNameMax = 160;  ///< The part of a name that is kept before a hash.

Status corrupt(std::string_view what) {
  return Status(Code::kCorrupt, base::format("not a directory value: {}", what));
}

std::string header(std::uint64_t version, std::uint64_t expiry_ns, std::string_view key, std::string_view value) {
  std::string line = base::format("{}{} {} {} {} ", kMagic, version, expiry_ns, key.size(), value.size());
  // Chained, so that the checksum covers every byte before it and after it.
  const XXH64_hash_t of_line = XXH3_64bits(line.data(), line.size());
  const XXH64_hash_t of_key = XXH3_64bits_withSeed(key.data(), key.size(), of_line);
  const XXH64_hash_t of_all = XXH3_64bits_withSeed(value.data(), value.size(), of_key);
  return line + base::format("{:016x}\n", of_all);
}

/// Takes "<number> " from the front.
bool take_number(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

std::string escape(std::string_view key) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string name;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    // A leading dot would hide the file, or name the folder itself.
    if (is_plain(key[i]) && !(i == 0 && key[i] == '.')) {
      name += key[i];
    } else {
      name.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return name;
}

}  // namespace

std::string encode_record(const FileRecord& record) {
  std::string file = header(record.version, record.expiry_ns, record.key, record.value);
  return file.append(record.key).append(record.value);
}

Result<FileRecord> decode_record(std::string_view file) {
  const std::size_t newline = file.substr(0, kHeaderMax).find('\n');
  if (newline == std::string_view::npos || !file.starts_with(kMagic)) return corrupt("it begins with no header line");
  const std::string_view line = file.substr(0, newline + 1);
  std::string_view rest = line.substr(kMagic.size());
  std::array<std::uint64_t, 4> numbers{};
  for (std::uint64_t& number : numbers) {
    if (!take_number(rest, number)) return corrupt("its header is malformed");
  }
  const auto [version, expiry_ns, key_size, value_size] = numbers;
  if (version == 0 || key_size == 0 || key_size > kDirectoryKeyMax || value_size > kDirectoryValueMax) {
    return corrupt("a number in its header is out of bounds");
  }
  const std::string_view body = file.substr(line.size());
  if (body.size() != key_size + value_size) return corrupt("it was cut off, or something follows the value");
  const std::string_view key = body.substr(0, static_cast<std::size_t>(key_size));
  const std::string_view value = body.substr(static_cast<std::size_t>(key_size));
  // Comparing the whole line also refuses other spellings of the same numbers.
  if (header(version, expiry_ns, key, value) != line) return corrupt("its checksum does not match");
  return FileRecord{std::string(key), std::string(value), version, expiry_ns};
}

std::string file_name(std::string_view key) {
  std::string name = escape(key);
  if (name.size() <= kNameMax) return name;
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  name.resize(kPlainNameMax);
  // "%-" is no escape, so no short key has such a name.
  return name + base::format("%-{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace hawser::directory
