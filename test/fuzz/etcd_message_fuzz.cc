// Answers of an etcd, or of whoever says it is one: whatever comes, each decoder answers.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "directory/etcd/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::directory::etcd;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto range = decode_range(text)) HAWSER_ASSERT(range->header.revision > 0, "a range of no revision");
  if (const auto put = decode_put(text)) HAWSER_ASSERT(put->header.revision > 0, "a put of no revision");
  if (const auto lease = decode_lease(text)) HAWSER_ASSERT(lease->ttl >= 0, "a lease that has ended before it began");
  if (const auto token = decode_login(text)) {
    HAWSER_ASSERT(token->find_first_of("\r\n") == std::string::npos, "a token that breaks its header line");
  }
  (void)decode_erase(text);
  (void)decode_watch(text);
  (void)decode_error(text, 500);
  return 0;
}
