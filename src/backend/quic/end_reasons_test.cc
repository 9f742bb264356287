#include "backend/quic/end_reasons.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::backend::quic {
namespace {

class NamedAlerts final : public Handshakes {
 public:
  Result<std::unique_ptr<HandshakeEnd>> open_end(tls::End) const override { return Status(Code::kUnsupported, "none"); }
  const char* alert_name(std::uint8_t alert) const override { return alert == 42 ? "Bad certificate" : nullptr; }
};

CloseError application_close(std::uint64_t code) {
  CloseError error = {};
  error.type = kApplicationClose;
  error.error_code = code;
  return error;
}

CloseError transport_close(std::uint64_t code, std::string_view reason = {}) {
  CloseError error = {};
  error.error_code = code;
  error.reason = reinterpret_cast<std::uint8_t*>(const_cast<char*>(reason.data()));
  error.reasonlen = reason.size();
  return error;
}

const NamedAlerts kAlerts;

TEST(EndReasons, AnOrderlyEndIsNone) {
  EXPECT_TRUE(reason_of(application_close(kCodeOrderly), kAlerts).ok());
  for (const std::uint64_t code : {kCodeAborted, kCodeStill, std::uint64_t{77}}) {
    EXPECT_EQ(reason_of(application_close(code), kAlerts).code(), Code::kDisconnected) << code;
  }
}

TEST(EndReasons, AnAlertIsDeniedByName) {
  const Status named = reason_of(transport_close(NGTCP2_CRYPTO_ERROR | 42), kAlerts);
  EXPECT_EQ(named.code(), Code::kDenied);
  EXPECT_NE(named.to_string().find("Bad certificate"), std::string::npos);
  EXPECT_NE(reason_of(transport_close(NGTCP2_CRYPTO_ERROR | 43), kAlerts).to_string().find("'?'"), std::string::npos);
  EXPECT_NE(reason_of_alert(42, kAlerts).to_string().find("Bad certificate"), std::string::npos);
  EXPECT_EQ(reason_of_alert(1, kAlerts).code(), Code::kDenied);
}

TEST(EndReasons, WhatThePeerSaysIsShownAsOneLine) {
  const Status status = reason_of(transport_close(0x7, "no\nsense"), kAlerts);
  EXPECT_EQ(status.code(), Code::kDisconnected);
  EXPECT_NE(status.to_string().find("error 0x7"), std::string::npos);
  EXPECT_EQ(status.to_string().find('\n'), std::string::npos);
}

TEST(EndReasons, OfSomeErrorsThePeerHearsNothing) {
  EXPECT_EQ(quiet_reason_of(NGTCP2_ERR_IDLE_CLOSE)->code(), Code::kDisconnected);
  EXPECT_EQ(quiet_reason_of(NGTCP2_ERR_DROP_CONN)->code(), Code::kDisconnected);
  EXPECT_EQ(quiet_reason_of(NGTCP2_ERR_HANDSHAKE_TIMEOUT)->code(), Code::kTimedOut);
  EXPECT_FALSE(quiet_reason_of(NGTCP2_ERR_CRYPTO).has_value());
  EXPECT_FALSE(quiet_reason_of(NGTCP2_ERR_PROTO).has_value());
}

}  // namespace
}  // namespace hawser::backend::quic
