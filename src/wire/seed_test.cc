#include "wire/seed.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"

namespace hawser::wire {
namespace {

Result<SeedMessage> decoded(const std::string& bytes) { return decode_seed(base::as_bytes(bytes)); }

TEST(SeedMessages, GoThereAndBack) {
  const std::string set = encode(SeedMessage{.kind = SeedKind::kSet, .id = 7, .key = "k", .value = "value"});
  const SeedMessage got = decoded(set).value();
  EXPECT_EQ(got.kind, SeedKind::kSet);
  EXPECT_EQ(got.id, 7u);
  EXPECT_EQ(got.key, "k");
  EXPECT_EQ(got.value, "value");
  const std::string get = encode(SeedMessage{.kind = SeedKind::kGet, .id = UINT64_MAX, .key = "k"});
  EXPECT_EQ(decoded(get).value().id, UINT64_MAX);
  const std::string prove = encode(SeedMessage{.kind = SeedKind::kProve, .id = 8, .key = "token", .value = "mac"});
  EXPECT_EQ(prove, std::string("\x04\x08\0\0\0\0\0\0\0\x05token\x03mac", 19));
  EXPECT_EQ(decoded(prove).value().kind, SeedKind::kProve);
  EXPECT_EQ(decoded(prove).value().value, "mac");
  const std::string answer =
      encode(SeedMessage{.kind = SeedKind::kAnswer, .id = 1, .value = "why", .code = Code::kFailed});
  EXPECT_EQ(decoded(answer).value().code, Code::kFailed);
  EXPECT_EQ(decoded(answer).value().value, "why");
}

TEST(SeedMessages, HaveOneForm) {
  const std::string get = encode(SeedMessage{.kind = SeedKind::kGet, .id = 1, .key = "key"});
  EXPECT_EQ(get, std::string("\x02\x01\0\0\0\0\0\0\0\x03key", 13));
}

TEST(SeedMessages, WrongOnesAreRefused) {
  const std::string set = encode(SeedMessage{.kind = SeedKind::kSet, .id = 7, .key = "k", .value = "value"});
  for (std::size_t size = 0; size < set.size(); ++size) EXPECT_FALSE(decoded(set.substr(0, size))) << size;
  EXPECT_FALSE(decoded(set + "x"));
  EXPECT_FALSE(decoded(encode(SeedMessage{.kind = SeedKind::kGet, .key = ""})));
  EXPECT_FALSE(decoded(encode(SeedMessage{.kind = static_cast<SeedKind>(0), .key = "k"})));
  EXPECT_FALSE(decoded(encode(SeedMessage{.kind = static_cast<SeedKind>(5), .key = "k"})));
  std::string answer = encode(SeedMessage{.kind = SeedKind::kAnswer, .code = Code::kFailed});
  answer[9] = static_cast<char>(static_cast<int>(Code::kFailed) + 1);
  EXPECT_FALSE(decoded(answer));
}

TEST(SeedMessages, AreBounded) {
  const std::string key(kSeedKeyMax, 'k'), value(kSeedValueMax, 'v');
  EXPECT_TRUE(decoded(encode(SeedMessage{.kind = SeedKind::kSet, .key = key, .value = value})));
  EXPECT_FALSE(decoded(encode(SeedMessage{.kind = SeedKind::kSet, .key = key + "k", .value = value})));
  EXPECT_FALSE(decoded(encode(SeedMessage{.kind = SeedKind::kSet, .key = key, .value = value + "v"})));
}

}  // namespace
}  // namespace hawser::wire
