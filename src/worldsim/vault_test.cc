#include "worldsim/vault.h"

#include <gtest/gtest.h>

namespace hawser::worldsim {
namespace {

TEST(VaultTest, MemoryMayChangeWhileItIsLentAndNotAfterwards) {
  Vault vault;
  Loan& first = vault.lend(1, 10);
  Loan& second = vault.lend(2, 10);
  first.bytes[3] = std::byte{7};
  EXPECT_EQ(vault.first_touched(), nullptr);
  vault.take_back(first);
  EXPECT_EQ(vault.first_touched(), nullptr);
  second.bytes[3] = std::byte{7};
  EXPECT_EQ(vault.first_touched(), nullptr);
  first.bytes[9] = std::byte{7};
  EXPECT_EQ(vault.first_touched(), &first);
}

TEST(VaultTest, NoByteOfAScriptIsAMark) {
  Vault vault;
  Loan& loan = vault.lend(5, 4);
  vault.take_back(loan);
  for (const std::byte each : loan.bytes) EXPECT_GE(std::to_integer<int>(each), 0x80);
}

}  // namespace
}  // namespace hawser::worldsim
