#include <hawser/compat/status.h>

#include <gtest/gtest.h>

#include "compat/refusal.h"

namespace hawser::compat {
namespace {

TEST(NixlCodes, ARefusalIsFoundAgainAndNamesItsCall) {
  for (int number = -12; number < 0; ++number) {
    const auto code = static_cast<NixlCode>(number);
    const Status status = refusal(code, "post_xfer_req", "why");
    EXPECT_EQ(code_of(status), code) << to_string(code);
    EXPECT_EQ(status.message(), "post_xfer_req: why");
    const Status caused = refusal(code, "post_xfer_req", "why", Status(Code::kBusy, "deeper"));
    EXPECT_EQ(code_of(caused), code) << to_string(code);
    EXPECT_NE(caused.to_string().find("deeper"), std::string::npos);
  }
  EXPECT_EQ(code_of(Status()), NixlCode::kSuccess);
}

TEST(NixlCodes, HawsersOwnCodesHaveOne) {
  EXPECT_EQ(code_of(Status(Code::kDisconnected, "x")), NixlCode::kRemoteDisconnect);
  EXPECT_EQ(code_of(Status(Code::kBusy, "x")), NixlCode::kBackend);
  EXPECT_EQ(code_of(Status(Code::kTimedOut, "x")), NixlCode::kBackend);
  EXPECT_EQ(code_of(Status(Code::kCorrupt, "x")), NixlCode::kMismatch);
  EXPECT_EQ(code_of(marked(NixlCode::kBackend, Status(Code::kNotFound, "x"))), NixlCode::kBackend);
}

}  // namespace
}  // namespace hawser::compat
