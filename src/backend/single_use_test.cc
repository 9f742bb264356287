#include "backend/single_use.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

TEST(SingleUse, AdmitsAllOfTheFirstTransferAndNoOther) {
  SingleUse use;
  const base::Id128 a{1, 2}, b{1, 3};
  EXPECT_TRUE(use.admits(a, 7));
  EXPECT_TRUE(use.admits(a, 7)) << "another chunk of it";
  EXPECT_FALSE(use.admits(a, 8)) << "the next transfer";
  EXPECT_FALSE(use.admits(b, 7)) << "another agent's, with the same number";
  EXPECT_TRUE(use.admits(a, 7)) << "a chunk that is sent again";
}

TEST(SingleUse, ItIsOverOnceItsHolderSaysSo) {
  SingleUse use;
  EXPECT_FALSE(use.is_over());
  EXPECT_TRUE(use.admits({1, 2}, 7));
  EXPECT_FALSE(use.is_over()) << "a transfer has more chunks";
  use.note_over();
  EXPECT_TRUE(use.is_over());
}

}  // namespace
}  // namespace hawser::backend
