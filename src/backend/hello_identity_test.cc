#include "backend/hello_identity.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

TEST(HelloIdentity, WhatIsSaidIsHeard) {
  Identity identity;
  identity.name = "store";
  identity.incarnation = {1, 2};
  identity.public_key[3] = std::byte{7};
  identity.born = 9;
  identity.driven = !identity.driven;
  identity.version_min = 3;
  identity.version_max = 4;
  wire::Hello hello = hello_of(identity);
  EXPECT_EQ(hello.born, 0U);
  hello.born = identity.born;
  const Identity heard = identity_of(hello);
  EXPECT_EQ(heard.name, identity.name);
  EXPECT_EQ(heard.incarnation, identity.incarnation);
  EXPECT_EQ(heard.public_key, identity.public_key);
  EXPECT_EQ(heard.born, identity.born);
  EXPECT_EQ(heard.driven, identity.driven);
  EXPECT_EQ(heard.version_min, 3);
  EXPECT_EQ(heard.version_max, 4);
}

}  // namespace
}  // namespace hawser::backend
