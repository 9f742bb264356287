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
