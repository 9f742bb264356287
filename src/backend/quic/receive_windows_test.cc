#include "backend/quic/receive_windows.h"

#include <gtest/gtest.h>

namespace hawser::backend::quic {
namespace {

TEST(ConnectionWindow, OfAStrangerOnlyWhatIsReadCountsAsTaken) {
  ConnectionWindow window(1000);
  EXPECT_EQ(window.came(300), 0u);
  EXPECT_EQ(window.taken(100), 100u);
  EXPECT_FALSE(window.is_trusted());
}

TEST(ConnectionWindow, TrustPaysWhatCameBefore) {
  ConnectionWindow window(1000);
  EXPECT_EQ(window.came(300), 0u);
  EXPECT_EQ(window.trust(), 300u);
  EXPECT_EQ(window.trust(), 0u);
  EXPECT_EQ(window.came(700), 700u) << "nobody has to read it";
  EXPECT_EQ(window.taken(1000), 0u) << "it counted as taken already";
}

TEST(ConnectionWindow, WhatIsUnreadIsBounded) {
  ConnectionWindow window(1000);
  EXPECT_EQ(window.trust(), 0u);
  EXPECT_EQ(window.came(1000), 1000u);
  EXPECT_EQ(window.came(500), 0u);
  EXPECT_EQ(window.taken(200), 200u) << "what is owed is paid first";
  EXPECT_EQ(window.taken(1000), 300u);
  EXPECT_EQ(window.came(1000), 0u) << "300 are unread still";
  EXPECT_EQ(window.came(500, false), 500u) << "as if there were no bound";
}

TEST(ConnectionWindow, TrustPaysNoMoreThanMayBeUnread) {
  ConnectionWindow window(1000);
  EXPECT_EQ(window.came(1500), 0u);
  EXPECT_EQ(window.trust(), 1000u);
  EXPECT_EQ(window.taken(1500), 500u);
}

TEST(StreamWindow, OpensByHalvesAndGetsTwiceAsWideUpToItsBound) {
  StreamWindow window(100);
  window.read(49);
  EXPECT_FALSE(window.is_worth_a_frame());
  window.read(1);
  ASSERT_TRUE(window.is_worth_a_frame());
  EXPECT_EQ(window.widen(300), 150u) << "50 that were read, and 100 more";
  EXPECT_EQ(window.size(), 200u);
  window.read(100);
  EXPECT_EQ(window.widen(300), 200u) << "to 300, no further";
  window.read(200);
  EXPECT_EQ(window.widen(300), 200u);
  EXPECT_EQ(window.size(), 300u);
}

TEST(StreamWindow, ABoundBelowTheFirstWindowMakesItNoSmaller) {
  StreamWindow window(100);
  window.read(60);
  EXPECT_EQ(window.widen(10), 60u);
  EXPECT_EQ(window.size(), 100u);
}

TEST(StreamWindow, SettlesWithoutGettingWider) {
  StreamWindow window(100);
  window.read(30);
  EXPECT_EQ(window.settle(), 30u);
  EXPECT_EQ(window.settle(), 0u);
  EXPECT_EQ(window.size(), 100u);
}

}  // namespace
}  // namespace hawser::backend::quic
