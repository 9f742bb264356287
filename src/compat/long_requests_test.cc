#include "compat/long_requests.h"

#include <gtest/gtest.h>

#include <functional>

namespace hawser::compat {
namespace {

struct Looked final : LongRequest {
  void try_look() override {
    ++looks;
    if (on_look) on_look();
  }
  int looks = 0;
  std::function<void()> on_look;
};

TEST(LongRequests, ALookIsALookAtAll) {
  LongRequests requests;
  Looked one, two;
  EXPECT_TRUE(requests.empty());
  requests.join(&one);
  requests.join(&one);
  requests.join(&two);
  EXPECT_FALSE(requests.empty());
  requests.look_at_all();
  EXPECT_EQ(one.looks, 1) << "though it joined twice";
  EXPECT_EQ(two.looks, 1);
  requests.leave(&one);
  requests.look_at_all();
  EXPECT_EQ(one.looks, 1);
  EXPECT_EQ(two.looks, 2);
  requests.leave(&two);
  requests.leave(&two);
  EXPECT_TRUE(requests.empty());
}

TEST(LongRequests, WhatIsLookedAtMayLeaveAndTakeOthersWithIt) {
  LongRequests requests;
  Looked all[4];
  for (Looked& each : all) {
    requests.join(&each);
    each.on_look = [&] {
      for (Looked& other : all) requests.leave(&other);
    };
  }
  requests.look_at_all();
  EXPECT_TRUE(requests.empty());
  EXPECT_EQ(all[0].looks + all[1].looks + all[2].looks + all[3].looks, 1) << "those that left may be gone";
}

TEST(LongRequests, WhatJoinsMeanwhileIsLookedAtTheNextTime) {
  LongRequests requests;
  Looked one, late;
  one.on_look = [&] { requests.join(&late); };
  requests.join(&one);
  requests.look_at_all();
  EXPECT_EQ(late.looks, 0);
  requests.look_at_all();
  EXPECT_EQ(late.looks, 1);
}

}  // namespace
}  // namespace hawser::compat
