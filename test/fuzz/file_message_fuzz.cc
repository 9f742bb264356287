// Requests and answers of `hawser cp`, from anyone: decoding answers, and what it accepts can be written again, as the
// server does with a request's id.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cli/files/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::cli;
  const FileMessage message = decode_file_message({reinterpret_cast<const char*>(data), size});
  HAWSER_ASSERT(message.json.is_object() || message.json.is_null(), "a message that is no object");
  if (message.json.is_null()) return 0;
  const Json copy = message.json;
  const std::string again = encode_file_message(copy, message.tail);
  const FileMessage second = decode_file_message(again);
  HAWSER_ASSERT(second.json.is_object() && second.tail == message.tail, "a message changed");
  HAWSER_ASSERT(encode_file_message(second.json, second.tail) == again, "a message's form is not stable");
  return 0;
}
