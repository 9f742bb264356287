#include "agent/admission_ticket.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

AdmissionTicket some_ticket() {
  AdmissionTicket ticket;
  for (std::size_t i = 0; i < ticket.public_key.size(); ++i) ticket.public_key[i] = static_cast<std::byte>(i * 7);
  ticket.admission = {.hi = 0x1122334455667788, .lo = 0x99aabbccddeeff00};
  return ticket;
}

TEST(AdmissionTicket, ComesBackAsItWas) {
  const std::string text = to_string(some_ticket());
  EXPECT_EQ(text.size(), 64u);
  EXPECT_EQ(text.find_first_of("+/=:@#"), std::string::npos) << text;
  const Result<AdmissionTicket> back = parse_ticket(text);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(back->public_key, some_ticket().public_key);
  EXPECT_EQ(back->admission, some_ticket().admission);
}

TEST(AdmissionTicket, Golden) {
  EXPECT_EQ(to_string(some_ticket()), "AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK-2vcTL0tkA_-7dzLuqmYh3ZlVEMyIR");
}

TEST(AdmissionTicket, WhatIsNoneIsRefusedAndNotRepeated) {
  const std::string good = to_string(some_ticket());
  const std::string most = good.substr(0, 63);
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "A", most + "=", most + "+", most + std::string(1, '\0'),
        good.substr(0, 20) + "\x8e\x9c\xab\xb3" + good.substr(24)}) {
    const Result<AdmissionTicket> parsed = parse_ticket(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code(), Code::kInvalid);
    if (bad.empty()) continue;
    EXPECT_EQ(parsed.error().to_string().find(bad.substr(0, 20)), std::string::npos);
  }
}

TEST(AdmissionTicket, IsSplitFromTheAddress) {
  const auto plain = split_ticket("10.0.0.5:7000");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->address, "10.0.0.5:7000");
  EXPECT_TRUE(plain->ticket.admission.is_zero());
  const std::string typed = "[::1]:7000#" + to_string(some_ticket());
  const auto both = split_ticket(typed);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->address, "[::1]:7000");
  EXPECT_EQ(both->ticket.admission, some_ticket().admission);
  EXPECT_FALSE(split_ticket("10.0.0.5:7000#"));
}

}  // namespace
}  // namespace hawser::agent
