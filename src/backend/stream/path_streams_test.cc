#include "backend/stream/path_streams.h"

#include <gtest/gtest.h>

#include "backend/stream/memory_network.h"

namespace hawser::backend::stream {
namespace {

using std::chrono::milliseconds;

class PathStreamsTest : public testing::Test {
 protected:
  PathStreamsTest() { streams_.set_count(3); }

  void adopt(unsigned stream, Instant deadline = Instant::max()) {
    auto shake = std::make_unique<Handshake>(network_.connect("there").value(), wire::Versions{});
    streams_.adopt(stream, std::move(shake), deadline);
  }
  void open(unsigned stream) {
    adopt(stream);
    streams_.settle(stream);
  }
  unsigned links() {
    unsigned count = 0;
    streams_.each_link([&](unsigned, PathStreams::Lane&) { ++count; });
    return count;
  }

  MemorySwitch switch_;
  MemoryNetwork network_{switch_, "here"};
  MemoryNetwork there_{switch_, "there"};
  StreamPath* const path_ = reinterpret_cast<StreamPath*>(&switch_);  ///< Told, and never followed.
  PathStreams streams_{path_};
  Instant now_ = Instant::from_ns(10'000'000'000);
};

TEST_F(PathStreamsTest, AStreamKnowsItsPathAndItsIndex) {
  adopt(1);
  EXPECT_TRUE(streams_.is_there(1));
  EXPECT_FALSE(streams_.is_there(2));
  const auto* owner = static_cast<const StreamOwner*>(streams_[1].shake->stream().owner);
  EXPECT_EQ(owner, &streams_[1].owner);
  EXPECT_EQ(owner->path, path_);
  EXPECT_EQ(owner->index, 1u);
  EXPECT_TRUE(owner->readable);
}

TEST_F(PathStreamsTest, AfterTheHellosTheStreamIsLeft) {
  adopt(0);
  streams_[0].owner.readable = false;
  streams_.settle(0);
  EXPECT_EQ(streams_[0].shake, nullptr);
  EXPECT_NE(streams_[0].stream, nullptr);
  EXPECT_TRUE(streams_[0].owner.readable) << "there may be something behind the hello";
  EXPECT_EQ(streams_.describe(), ", stream 0 memory");
}

TEST_F(PathStreamsTest, NetworksPutWhatComesInPlaceUntilThatIsStopped) {
  RegionTable regions(1);
  EventQueue events;
  Machine machine(regions, events, nullptr, {.peer = "peer", .streams = 3});
  open(0);
  open(1);
  EXPECT_EQ(streams_[1].stream->landing, nullptr);
  for (const unsigned stream : {0u, 1u}) streams_.land(stream, machine);
  EXPECT_TRUE(streams_.landed(1).ok());
  EXPECT_TRUE(streams_.landed(2).ok()) << "nothing can have come there";
  const std::vector<std::byte> wrong(64, std::byte{0xff});
  EXPECT_GT(streams_[1].stream->landing->place(wrong), 0u);
  EXPECT_EQ(streams_.landed(1).code(), Code::kCorrupt);
  EXPECT_TRUE(streams_.landed(0).ok());
  streams_.stop_landing();
  EXPECT_EQ(streams_[0].stream->landing, nullptr);
  EXPECT_EQ(streams_[1].stream->landing, nullptr);
  EXPECT_EQ(streams_.landed(1).code(), Code::kCorrupt) << "that is still told";
}

TEST_F(PathStreamsTest, StreamsOfLinksAreThereOnceTheyBegan) {
  EXPECT_FALSE(streams_.has_links());
  EXPECT_FALSE(streams_.is_there(kStreamsMax));
  EXPECT_EQ(links(), 0u);
  adopt(kStreamsMax + 2);
  EXPECT_TRUE(streams_.has_links());
  EXPECT_TRUE(streams_.is_there(kStreamsMax + 2));
  EXPECT_FALSE(streams_.is_there(kStreamsMax));
  EXPECT_EQ(links(), 1u);
  streams_.settle(kStreamsMax + 2);
  EXPECT_EQ(streams_.describe(), ", 1 streams of messages");
}

TEST_F(PathStreamsTest, TheFirstHelloThatIsDueCountsButForStream0) {
  EXPECT_EQ(streams_.next_deadline(), Instant::max());
  adopt(0, now_);
  adopt(1, now_ + milliseconds(3));
  adopt(kStreamsMax, now_ + milliseconds(2));
  EXPECT_EQ(streams_.next_deadline(), now_ + milliseconds(2));
  streams_.settle(kStreamsMax);
  EXPECT_EQ(streams_.next_deadline(), now_ + milliseconds(3));
}

TEST_F(PathStreamsTest, AHelloThatMayHaveComeKeepsItAwake) {
  EXPECT_TRUE(streams_.may_sleep(nullptr));
  adopt(0);
  EXPECT_FALSE(streams_.may_sleep(nullptr));
  streams_[0].owner.readable = false;
  EXPECT_TRUE(streams_.may_sleep(nullptr));
}

TEST_F(PathStreamsTest, AStreamIsHotForAWhileAfterBytesMoved) {
  open(1);
  streams_[1].note_progress(0, now_);
  EXPECT_FALSE(streams_.is_hot());
  streams_[1].note_progress(1, now_);
  EXPECT_TRUE(streams_.is_hot());
  streams_[1].note_progress(0, now_ + kHot);
  EXPECT_FALSE(streams_.is_hot());
  open(kStreamsMax);
  streams_[kStreamsMax].note_progress(1, now_);
  EXPECT_TRUE(streams_.is_hot()) << "those of links, too";
}

TEST_F(PathStreamsTest, AllAreClosedTogether) {
  open(0);
  adopt(1);
  open(kStreamsMax);
  streams_.close_all(true);
  for (const unsigned each : {0u, 1u, kStreamsMax}) EXPECT_FALSE(streams_.is_there(each)) << each;
  for (const auto& [there, back] : switch_.joined) EXPECT_TRUE(there->reset);
  EXPECT_EQ(streams_[0].owner.path, nullptr);
  EXPECT_EQ(streams_.owner_of_question()->path, path_);
}

}  // namespace
}  // namespace hawser::backend::stream
