#include "backend/stream/link_use.h"

#include <gtest/gtest.h>

namespace hawser::backend::stream {
namespace {

/// The first link that may have a stream of its own.
wire::Link own_link() {
  for (unsigned index = 0; index < wire::kLinks; ++index) {
    if (has_own_stream(wire::Link::at(index))) return wire::Link::at(index);
  }
  ADD_FAILURE() << "no link has";
  return wire::Link::at(0);
}

TEST(LinkUse, EachLinkIsToldOnce) {
  LinkUse use(true);
  EXPECT_FALSE(use.has_news());
  use.note(own_link());
  EXPECT_TRUE(use.has_news());
  EXPECT_EQ(use.take(), 1u << own_link().index());
  use.note(own_link());
  EXPECT_FALSE(use.has_news());
  EXPECT_EQ(use.take(), 0u);
}

TEST(LinkUse, TheLibrarysOwnLinksStayWhereTheyAre) {
  LinkUse use(true);
  use.note(wire::Link(Priority::kRealtime));
  use.note(wire::Link(Priority::kBulk));
  EXPECT_FALSE(use.has_news());
}

TEST(LinkUse, WhereStreamsWaitForOneAnotherNoLinkHasOne) {
  LinkUse use(false);
  use.note(own_link());
  EXPECT_FALSE(use.has_news());
}

}  // namespace
}  // namespace hawser::backend::stream
