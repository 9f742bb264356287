#include "base/listen_text.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

std::string split(std::string_view text) {
  const auto parts = split_listen(text);
  return parts ? parts->places + " | " + parts->ports : "none";
}

TEST(ListenText, PlacesAndPortsAreSplit) {
  EXPECT_EQ(split("10.0.0.1"), "10.0.0.1 | ");
  EXPECT_EQ(split("10.0.0.1:7000"), "10.0.0.1 | 7000");
  EXPECT_EQ(split("[::]:7000-7100"), ":: | 7000-7100");
  EXPECT_EQ(split("fe80::1"), "fe80::1 | ");
  EXPECT_EQ(split("eth0:7000"), "eth0 | 7000");
  EXPECT_EQ(split("10.0.0.0/8, ^docker0:7000"), "10.0.0.0/8,^docker0 | 7000");
  EXPECT_EQ(split("eth0:7000,eth1:7000"), "eth0,eth1 | 7000");
  EXPECT_EQ(split("^[fd00::/8]:7000"), "^fd00::/8 | 7000");
}

TEST(ListenText, WhatIsNoneIsNone) {
  for (const char* const wrong : {"", " ", ":7000", "10.0.0.1:", "[::1", "[::1]7000", "[::1]:", "[]", "a:http", "^",
                                  "eth0,,eth1", "eth0:1,eth1:2"}) {
    EXPECT_EQ(split(wrong), "none") << wrong;
  }
}

}  // namespace
}  // namespace hawser::base
