#include "backend/stream/place_search.h"

#include <gtest/gtest.h>

#include "backend/stream/memory_network.h"

namespace hawser::backend::stream {
namespace {

using std::chrono::milliseconds;
using Found = PlaceSearch::Found;

class PlaceSearchTest : public testing::Test {
 protected:
  PlaceSearch search(std::vector<std::string> places, bool is_here = true, std::string left_out = {}) {
    return PlaceSearch(network_, nullptr,
                       {.places = std::move(places), .left_out = std::move(left_out), .is_here = is_here, .known = {}},
                       now_, now_ + std::chrono::seconds(5));
  }
  /// The next stream that it gives out.
  std::unique_ptr<Stream> next(PlaceSearch& search) {
    for (int i = 0; i < 100 && !search.is_over(); ++i) {
      if (std::unique_ptr<Stream> stream = search.turn(now_)) return stream;
      now_ = std::max(now_, search.next_deadline());
    }
    return nullptr;
  }

  MemorySwitch switch_;
  MemoryNetwork network_{switch_, "here"};
  MemoryNetwork one_{switch_, "one"};
  MemoryNetwork other_{switch_, "other"};
  const Status stranger_ = Status(Code::kDisconnected, "another agent answers there");
  Instant now_ = Instant::from_ns(10'000'000'000);
};

TEST_F(PlaceSearchTest, APlaceThatLedElsewhereIsFollowedByTheNext) {
  PlaceSearch places = search({"one", "other"}, true, "ten (not routed)");
  ASSERT_NE(next(places), nullptr);
  EXPECT_EQ(places.place(), "one");
  places.reject(stranger_, Found::kNobody, now_);
  ASSERT_NE(next(places), nullptr);
  EXPECT_EQ(places.place(), "other");
  EXPECT_EQ(places.others(now_), "ten (not routed); one: another agent answers there");
}

TEST_F(PlaceSearchTest, NothingIsSaidOfOthersWhereThereAreNone) {
  PlaceSearch places = search({"one"});
  ASSERT_NE(next(places), nullptr);
  EXPECT_EQ(places.others(now_), "");
}

TEST_F(PlaceSearchTest, ARefusalEverywhereIsDeathHereAndMayChangeElsewhere) {
  PlaceSearch here = search({"nobody", "no one"});
  EXPECT_EQ(next(here), nullptr);
  EXPECT_EQ(here.verdict("b").why.scope(), Scope::kPeer);
  EXPECT_FALSE(here.verdict("b").is_refused_elsewhere);
  PlaceSearch there = search({"nobody", "no one"}, false);
  EXPECT_EQ(next(there), nullptr);
  EXPECT_EQ(there.verdict("b").why.scope(), Scope::kPath);
  EXPECT_TRUE(there.verdict("b").is_refused_elsewhere);
}

TEST_F(PlaceSearchTest, AnotherIncarnationIsTheVerdictWhereNoPlaceLedToTheRightOne) {
  PlaceSearch places = search({"one", "other"});
  ASSERT_NE(next(places), nullptr);
  places.reject(Status(Code::kDisconnected, "b restarted").with_scope(Scope::kPeer), Found::kYounger, now_);
  ASSERT_NE(next(places), nullptr);
  EXPECT_LE(places.hello_deadline(), now_ + milliseconds(500)) << "the others are hurried";
  places.reject(stranger_, Found::kNobody, now_);
  ASSERT_TRUE(places.is_over());
  EXPECT_EQ(places.verdict("b").why.message(), "b restarted");
}

TEST_F(PlaceSearchTest, AMisfitIsTheVerdictWhereAnotherTryEndsAlike) {
  PlaceSearch places = search({"one"});
  ASSERT_NE(next(places), nullptr);
  places.reject(Status(Code::kUnsupported, "it speaks version 9"), Found::kMisfit, now_);
  ASSERT_TRUE(places.is_over());
  EXPECT_EQ(places.verdict("b").why.code(), Code::kUnsupported);
}

}  // namespace
}  // namespace hawser::backend::stream
