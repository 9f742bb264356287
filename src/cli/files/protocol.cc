#include "cli/files/protocol.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace hawser::cli {

namespace {

/// Objects in objects: an error with its causes is the deepest. Json copies and writes by recursion, so without a bound
/// anybody's 64 KiB of brackets would end the process.
constexpr int kDepthMax = 64;

std::string text_of(XXH64_hash_t sum) { return fmt::format("{:016x}", sum); }

}  // namespace

std::string sum_of(std::span<const std::byte> bytes) { return text_of(XXH3_64bits(bytes.data(), bytes.size())); }

struct Summer::State {
  XXH3_state_t* const of_library = XXH3_createState();
  ~State() { XXH3_freeState(of_library); }
};

Summer::Summer() : state_(std::make_unique<State>()) { XXH3_64bits_reset(state_->of_library); }
Summer::~Summer() = default;
void Summer::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->of_library, bytes.data(), bytes.size());
}
std::string Summer::text() const { return text_of(XXH3_64bits_digest(state_->of_library)); }

Json json_of_path(std::string_view path) {
  Json text = std::string(path);
  try {
    static_cast<void>(text.dump());
    return text;
  } catch (const Json::exception&) {  // Not UTF-8.
  }
  std::string hex;
  for (const char byte : path) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return Json{{"hex", std::move(hex)}};
}

Result<std::string> path_from(const Json& json) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (json.is_string()) return json.get<std::string>();
  const Status none(Code::kInvalid, "a path is a text, or {\"hex\": its bytes}");
  if (!json.is_object() || !json.contains("hex") || !json["hex"].is_string()) return none;
  const auto& hex = json["hex"].get_ref<const std::string&>();
  if (hex.size() % 2 != 0 || hex.find_first_not_of(kDigits) != std::string::npos) return none;
  std::string path;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    path += static_cast<char>(kDigits.find(hex[i]) * kDigits.size() + kDigits.find(hex[i + 1]));
  }
  return path;
}

std::string encode_file_message(const Json& json, std::string_view tail) {
  std::string bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!tail.empty()) {
    bytes += '\0';
    bytes += tail;
  }
  return bytes;
}

FileMessage decode_file_message(std::string_view bytes) {
  const std::size_t zero = bytes.find('\0');
  FileMessage message;
  bool is_deep = false;
  const auto look = [&is_deep](int depth, Json::parse_event_t, const Json&) {
    is_deep = is_deep || depth > kDepthMax;
    return !is_deep;
  };
  message.json = Json::parse(bytes.substr(0, zero), look, false);
  if (is_deep || !message.json.is_object()) message.json = Json();
  if (zero != std::string_view::npos) message.tail = bytes.substr(zero + 1);
  return message;
}

}  // namespace hawser::cli
