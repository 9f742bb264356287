#include "runtime/call_ledger.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

TEST(CallLedger, KnowsTheLastCallsOnly) {
  CallLedger ledger;
  EXPECT_FALSE(ledger.differs(0, 1));
  EXPECT_FALSE(ledger.differs(7, 1));
  for (std::uint64_t number = 0; number <= CallLedger::kKept; ++number) ledger.note(number, number + 100);
  EXPECT_FALSE(ledger.differs(0, 1)) << "it was long ago";
  for (std::uint64_t number = 1; number <= CallLedger::kKept; ++number) {
    EXPECT_FALSE(ledger.differs(number, number + 100));
    EXPECT_TRUE(ledger.differs(number, number + 101));
  }
  EXPECT_FALSE(ledger.differs(CallLedger::kKept + 1, 1)) << "it was not called yet";
}

TEST(CallLedger, NumberZeroIsNoSpecialCase) {
  CallLedger ledger;
  ledger.note(0, 0);
  EXPECT_FALSE(ledger.differs(0, 0));
  EXPECT_TRUE(ledger.differs(0, 1));
}

}  // namespace
}  // namespace hawser::runtime
