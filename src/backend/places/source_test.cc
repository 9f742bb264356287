#include "backend/places/source.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

std::uint64_t source(const char* host) { return source_of(base::numeric_address({host, 7}).value()); }

TEST(Source, LoopbackIsOneAndAddressesDiffer) {
  EXPECT_EQ(source("127.0.0.1"), source("127.9.9.9"));
  EXPECT_EQ(source("127.0.0.1"), source("::1"));
  EXPECT_NE(source("10.0.0.1"), source("10.0.0.2"));
  EXPECT_NE(source("10.0.0.1"), source("127.0.0.1"));
}

TEST(Source, TheLowerHalfOfAnAddressOfIpv6DoesNotCount) {
  EXPECT_EQ(source("fd00::1"), source("fd00::ffff:ffff:ffff:ffff"));
  EXPECT_NE(source("fd00::1"), source("fd00:0:0:1::1"));
}

}  // namespace
}  // namespace hawser::backend
