#include "backend/stream/outlet.h"

#include <gtest/gtest.h>

#include <array>

#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

TEST(Outlet, GathersAllThatWaitsWithoutABound) {
  Outlet outlet;
  outlet.add_bytes(base::as_bytes("first"));
  outlet.sent(5);
  outlet.add_bytes(base::as_bytes("goodbye"));
  std::array<iovec, 4> parts;
  ASSERT_EQ(outlet.gather(parts, UINT64_MAX), 1u);
  EXPECT_EQ(std::string_view(static_cast<const char*>(parts[0].iov_base), parts[0].iov_len), "goodbye");
}

}  // namespace
}  // namespace hawser::backend::stream
