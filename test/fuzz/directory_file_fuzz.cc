// The file directory's file format: whatever a file holds, decoding answers, and what it accepts is the one spelling.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "directory/file_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::directory;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto record = decode_record(input)) {
    HAWSER_ASSERT(encode_record(*record) == input, "a value that is not in canonical form was accepted");
  }
  // As a key, and as a value under it: both must survive.
  const FileRecord record{std::string(input.substr(0, hawser::kDirectoryKeyMax)),
                          std::string(input.substr(0, hawser::kDirectoryValueMax)), size + 1, size};
  if (!record.key.empty()) {
    const auto again = decode_record(encode_record(record));
    HAWSER_ASSERT(again && again->key == record.key && again->value == record.value, "a record was lost");
    const std::string name = file_name(record.key);
    HAWSER_ASSERT(name.size() <= 200 && name.find('/') == std::string::npos && name.front() != '.', "an unsafe name");
  }
  return 0;
}
