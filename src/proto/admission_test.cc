#include "proto/admission.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hawser::proto {
namespace {

using base::FarEnd;
using enum wire::Admission;

constexpr std::string_view kGolden = R"(
       elsewhere               -        -      -      -      -      -      -
       elsewhere   secret      card     -      card   -      -      -      -
       elsewhere          open none     -      -      none   none   none   -
       elsewhere   secret open card     -      card   none   none   none   -
       elsewhere          key  none     -      -      -      -      -      -
       elsewhere   secret key  card     -      card   -      -      -      -
       same user               user     -      -      user   -      cookie -
       same user   secret      card     -      card   user   -      cookie -
       same user          open user     -      -      user   none   none   -
       same user   secret open card     -      card   user   none   none   -
       same user          key  user     -      -      user   -      cookie -
       same user   secret key  card     -      card   user   -      cookie -
       other user              user     -      -      -      -      -      -
       other user  secret      card     -      card   -      -      -      -
       other user         open user     -      -      none   none   none   -
       other user  secret open card     -      card   none   none   none   -
       other user         key  user     -      -      -      -      -      -
       other user  secret key  card     -      card   -      -      -      -
       nobody                  user     -      -      -      -      -      -
       nobody      secret      card     -      card   -      -      -      -
       nobody             open user     -      -      none   none   none   -
       nobody      secret open card     -      card   none   none   none   -
       nobody             key  user     -      -      -      -      -      -
       nobody      secret key  card     -      card   -      -      -      -
       cannot ask              cookie   -      -      cookie -      cookie -
       cannot ask  secret      card     -      card   cookie -      cookie -
       cannot ask         open cookie   -      -      none   none   none   -
       cannot ask  secret open card     -      card   none   none   none   -
       cannot ask         key  cookie   -      -      cookie -      cookie -
       cannot ask  secret key  card     -      card   cookie -      cookie -
       elsewhere               identity, clear -        -        -        -        -        -        -
       elsewhere   secret      identity, clear card     -        -        -        -        -        -
       elsewhere               identity, tls   identity -        -        -        -        -        identity
       elsewhere   secret      identity, tls   identity -        -        -        -        -        identity
       same user               identity, clear user     -        -        user     -        cookie   -
       same user   secret      identity, clear card     -        card     user     -        cookie   -
       same user               identity, tls   user     -        -        user     -        cookie   identity
       same user   secret      identity, tls   card     -        card     user     -        cookie   identity
       other user              identity, clear user     -        -        -        -        -        -
       other user  secret      identity, clear card     -        -        -        -        -        -
       other user              identity, tls   identity -        -        -        -        -        identity
       other user  secret      identity, tls   identity -        -        -        -        -        identity
       nobody                  identity, clear user     -        -        -        -        -        -
       nobody      secret      identity, clear card     -        -        -        -        -        -
       nobody                  identity, tls   identity -        -        -        -        -        identity
       nobody      secret      identity, tls   identity -        -        -        -        -        identity
       cannot ask              identity, clear cookie   -        -        -        -        -        -
       cannot ask  secret      identity, clear card     -        -        -        -        -        -
       cannot ask              identity, tls   identity -        -        -        -        -        identity
       cannot ask  secret      identity, tls   identity -        -        -        -        -        identity
card   elsewhere               refuse prove  refuse refuse refuse refuse
card   elsewhere          open refuse prove  refuse refuse refuse refuse
card   elsewhere          key  refuse prove  refuse refuse refuse refuse
card   same user               refuse prove  refuse refuse refuse refuse
card   same user          open refuse prove  refuse refuse refuse refuse
card   same user          key  refuse prove  refuse refuse refuse refuse
card   other user              refuse prove  refuse refuse refuse refuse
card   other user         open refuse prove  refuse refuse refuse refuse
card   other user         key  refuse prove  refuse refuse refuse refuse
card   nobody                  refuse prove  refuse refuse refuse refuse
card   nobody             open refuse prove  refuse refuse refuse refuse
card   nobody             key  refuse prove  refuse refuse refuse refuse
card   cannot ask              refuse prove  refuse refuse refuse refuse
card   cannot ask         open refuse prove  refuse refuse refuse refuse
card   cannot ask         key  refuse prove  refuse refuse refuse refuse
user   elsewhere               refuse refuse refuse refuse refuse refuse
user   elsewhere          open refuse refuse go     go     refuse refuse
user   elsewhere          key  refuse refuse refuse go     refuse refuse
user   same user               refuse refuse go     refuse prove  refuse
user   same user          open refuse refuse go     go     prove  refuse
user   same user          key  refuse refuse go     go     prove  refuse
user   other user              refuse refuse refuse refuse refuse refuse
user   other user         open refuse refuse go     go     refuse refuse
user   other user         key  refuse refuse refuse go     refuse refuse
user   nobody                  refuse refuse refuse refuse refuse refuse
user   nobody             open refuse refuse go     go     refuse refuse
user   nobody             key  refuse refuse refuse go     refuse refuse
user   cannot ask              refuse refuse refuse refuse prove  refuse
user   cannot ask         open refuse refuse go     go     prove  refuse
user   cannot ask         key  refuse refuse refuse go     prove  refuse
none   elsewhere               refuse refuse refuse refuse refuse refuse
none   elsewhere          open refuse refuse refuse go     refuse refuse
none   elsewhere          key  refuse refuse refuse go     refuse refuse
none   same user               refuse refuse refuse refuse refuse refuse
none   same user          open refuse refuse refuse go     refuse refuse
none   same user          key  refuse refuse refuse go     refuse refuse
none   other user              refuse refuse refuse refuse refuse refuse
none   other user         open refuse refuse refuse go     refuse refuse
none   other user         key  refuse refuse refuse go     refuse refuse
none   nobody                  refuse refuse refuse refuse refuse refuse
none   nobody             open refuse refuse refuse go     refuse refuse
none   nobody             key  refuse refuse refuse go     refuse refuse
none   cannot ask              refuse refuse refuse refuse refuse refuse
none   cannot ask         open refuse refuse refuse go     refuse refuse
none   cannot ask         key  refuse refuse refuse go     refuse refuse
cookie elsewhere               refuse refuse refuse refuse refuse refuse
cookie elsewhere          open refuse refuse refuse go     refuse refuse
cookie elsewhere          key  refuse refuse refuse go     refuse refuse
cookie same user               refuse refuse refuse refuse prove  refuse
cookie same user          open refuse refuse refuse go     prove  refuse
cookie same user          key  refuse refuse refuse go     prove  refuse
cookie other user              refuse refuse refuse refuse refuse refuse
cookie other user         open refuse refuse refuse go     refuse refuse
cookie other user         key  refuse refuse refuse go     refuse refuse
cookie nobody                  refuse refuse refuse refuse refuse refuse
cookie nobody             open refuse refuse refuse go     refuse refuse
cookie nobody             key  refuse refuse refuse go     refuse refuse
cookie cannot ask              refuse refuse refuse refuse prove  refuse
cookie cannot ask         open refuse refuse refuse go     prove  refuse
cookie cannot ask         key  refuse refuse refuse go     prove  refuse
identity elsewhere               refuse refuse refuse refuse refuse prove
identity elsewhere          open refuse refuse refuse refuse refuse prove
identity elsewhere          key  refuse refuse refuse refuse refuse prove
identity same user               refuse refuse refuse refuse refuse prove
identity same user          open refuse refuse refuse refuse refuse prove
identity same user          key  refuse refuse refuse refuse refuse prove
identity other user              refuse refuse refuse refuse refuse prove
identity other user         open refuse refuse refuse refuse refuse prove
identity other user         key  refuse refuse refuse refuse refuse prove
identity nobody                  refuse refuse refuse refuse refuse prove
identity nobody             open refuse refuse refuse refuse refuse prove
identity nobody             key  refuse refuse refuse refuse refuse prove
identity cannot ask              refuse refuse refuse refuse refuse prove
identity cannot ask         open refuse refuse refuse refuse refuse prove
identity cannot ask         key  refuse refuse refuse refuse refuse prove
)";

TEST(Admission, GoldenTable) { EXPECT_EQ("\n" + admission_table(), kGolden); }

TEST(Admission, WhatIsAskedByAnHonestOpenerIsAnsweredSoThatItGoesOn) {
  for (int i = 0; i < 16; ++i) {
    const bool knows_card = i % 2 != 0, is_local = i / 2 % 2 != 0, is_open = i / 4 % 2 != 0, can_ask = i / 8 % 2 != 0;
    const FarEnd end = !is_local ? FarEnd::kElsewhere : can_ask ? FarEnd::kSameUser : FarEnd::kCannotAsk;
    // An agent that was opened with security `none` has no secret.
    const AdmissionFacts acceptor = {.far_end = end, .has_secret = !is_open, .is_open = is_open};
    const AdmissionFacts opener = {.far_end = end, .has_secret = knows_card && !is_open, .is_open = is_open};
    const wire::Admission asked = ask(opener);
    if (asked == kNotSaid) {
      EXPECT_TRUE(!is_local && !is_open && !knows_card);
      continue;
    }
    const wire::Admission answer = admit(asked, acceptor);
    EXPECT_NE(answer, kNotSaid) << i << ": " << why_not(asked, acceptor);
    EXPECT_NE(answered(asked, answer, opener), AdmissionStep::kRefuse) << i;
    EXPECT_EQ(answered(asked, answer, opener), admitted(answer)) << i;
  }
}

TEST(Admission, NoOtherUserComesInWithoutTheCard) {
  for (const FarEnd end : {FarEnd::kElsewhere, FarEnd::kOtherUser, FarEnd::kNobody}) {
    const AdmissionFacts acceptor = {.far_end = end, .has_secret = true};
    for (const wire::Admission asked : {kNotSaid, kUser, kNone}) {
      EXPECT_EQ(admit(asked, acceptor), kNotSaid);
      EXPECT_FALSE(why_not(asked, acceptor).empty());
    }
    EXPECT_NE(admitted(admit(kCookie, acceptor)), AdmissionStep::kGo);
  }
}

TEST(Admission, NoOtherUserIsTakenForTheAcceptor) {
  for (const FarEnd end : {FarEnd::kElsewhere, FarEnd::kOtherUser, FarEnd::kNobody, FarEnd::kCannotAsk}) {
    for (const wire::Admission asked : {kCard, kUser, kNone, kCookie}) {
      for (const wire::Admission answer : {kNotSaid, kCard, kUser, kNone, kCookie}) {
        const AdmissionFacts opener = {.far_end = end, .has_secret = asked == kCard};
        EXPECT_NE(answered(asked, answer, opener), AdmissionStep::kGo);
      }
    }
  }
}

}  // namespace
}  // namespace hawser::proto
