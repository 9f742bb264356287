#include "cli/files/protocol.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace hawser::cli {

std::string sum_of(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

Result<std::string> encode_file_message(const Json& json, std::string_view tail) {
  std::string bytes;
  try {
    bytes = json.dump();
  } catch (const Json::exception&) {
    return Status(Code::kInvalid, "a path is not UTF-8, which cp needs");
  }
  if (!tail.empty()) {
    bytes += '\0';
    bytes += tail;
  }
  return bytes;
}

FileMessage decode_file_message(std::string_view bytes) {
  const std::size_t zero = bytes.find('\0');
  FileMessage message;
  message.json = Json::parse(bytes.substr(0, zero), nullptr, false);
  if (!message.json.is_object()) message.json = Json();
  if (zero != std::string_view::npos) message.tail = bytes.substr(zero + 1);
  return message;
}

}  // namespace hawser::cli
