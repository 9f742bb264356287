#include "backend/quic/ngtcp2_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hawser::backend::quic {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Ngtcp2, OlderLibrariesThanTheInterfaceAreRefusedByName) {
  EXPECT_TRUE(is_new_enough("libngtcp2.so", kLeastNumber, kLeastText).ok());
  EXPECT_TRUE(is_new_enough("libngtcp2.so", kLeastNumber + 1, "later").ok());
  const Status refused = is_new_enough("libngtcp2.so", kLeastNumber - 1, "0.11.99");
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_THAT(refused.to_string(), HasSubstr(std::string("libngtcp2.so is of version 0.11.99, which is older than ")));
  EXPECT_THAT(refused.to_string(), HasSubstr(kLeastText));
  EXPECT_THAT(refused.to_string(), HasSubstr(HAWSER_NGTCP2_PACKAGES));
}

TEST(Ngtcp2, TheLibraryIsOfTheSeriesOfTheHeaders) {
  const auto library = ngtcp2();
  if (!library) {
    EXPECT_THAT(library.error().to_string(), HasSubstr(HAWSER_NGTCP2_PACKAGES));
    GTEST_SKIP() << library.error().to_string();
  }
  const std::string_view headers = NGTCP2_VERSION;
  const std::string series(headers.starts_with("0.") ? headers.substr(0, headers.rfind('.') + 1)
                                                     : headers.substr(0, 2));
  EXPECT_THAT((*library)->version_text, StartsWith(series));
  EXPECT_GE((*library)->version(0)->version_num, kLeastNumber);
}

}  // namespace
}  // namespace hawser::backend::quic
