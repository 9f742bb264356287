// Writes into memory that peers have lent: in chunks, over one path, until they end or it does.

#include "agent/engine/lent_writes.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

/// What it was told.
class WriteListener final : public Service {
 public:
  std::span<const OwnChannel> channels() const override { return {}; }
  Status on_message(Session&, std::uint32_t, std::span<const std::byte>, Instant) override { return {}; }
  void on_control(Session&) override {}
  bool pump(Session&, std::size_t*) override { return true; }
  void end(Session&, const Status&) override {}
  void on_written(Session&, std::uint64_t cookie, std::uint64_t bytes, const Status& status) override {
    written.emplace_back(cookie, bytes);
    codes.push_back(status.code());
  }
  bool awaits(const Session&) const override { return false; }
  std::size_t left(const Session&) const override { return 0; }
  std::string_view name() const override { return "told"; }
  Instant next_deadline() const override { return Instant::max(); }
  std::size_t expire(Instant) override { return 0; }
  void describe(const Visitor&) const override {}

  std::vector<std::pair<std::uint64_t, std::uint64_t>> written;
  std::vector<Code> codes;
};

class LentWritesTest : public ::testing::Test {
 protected:
  static constexpr wire::Lent kLent{.index = 3, .generation = 4, .key = {5, 6}};

  std::uint64_t begin() { return carrier_.begin_write(service_, session_, kLent, memory_.size(), Priority::kBulk, 77); }
  LentWrite write(std::uint64_t number, std::size_t offset, std::size_t size) {
    return carrier_.write(number, offset, std::span(memory_).subspan(offset, size));
  }

  Rig rig_{{.carries_arrivals = true, .quits_at_once = true}};
  WriteListener service_;
  Carrier& carrier_ = rig_.engine.carrier();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  Session& session_ = *peer_->session();
  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
};

TEST_F(LentWritesTest, ChunksGoFromMemoryThatIsNoRegion) {
  const std::uint64_t number = begin();
  ASSERT_NE(number, 0u);
  EXPECT_EQ(path_.bound.back(), (std::pair<std::uint32_t, std::uint32_t>{3, 4}));
  EXPECT_EQ(write(number, 200, 300), LentWrite::kYes);
  const backend::Chunk chunk = path_.submitted.back();
  EXPECT_EQ(chunk.bytes, 300u);
  EXPECT_EQ(chunk.pieces[0].local, memory_.data() + 200);
  EXPECT_EQ(chunk.pieces[0].remote, 200u);
  EXPECT_FALSE(chunk.covered);
  EXPECT_TRUE(LentWrites::is_its(chunk.cookie));
  rig_.end_chunk(rig_.first, path_, chunk);
  EXPECT_EQ(service_.written, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{77, 300}}));
  EXPECT_EQ(service_.codes, std::vector{Code::kOk});
  carrier_.end_write(number);
  EXPECT_EQ(path_.unbound.back(), (std::pair<std::uint32_t, std::uint32_t>{3, 4}));
  EXPECT_TRUE(path_.cancelled.empty()) << "nothing was under way";
  EXPECT_EQ(write(number, 0, 1), LentWrite::kLost);
}

TEST_F(LentWritesTest, WhatEndsBadlyIsTold) {
  const std::uint64_t number = begin();
  EXPECT_EQ(write(number, 0, 300), LentWrite::kYes);
  rig_.end_chunk(rig_.first, path_, path_.submitted.back(), Status(Code::kDenied, "it was taken back"));
  EXPECT_EQ(service_.codes, std::vector{Code::kDenied});
}

TEST_F(LentWritesTest, AnEndedWriteIsCancelledAndToldNoMore) {
  const std::uint64_t number = begin();
  EXPECT_EQ(write(number, 0, 300), LentWrite::kYes);
  const backend::Chunk chunk = path_.submitted.back();
  carrier_.end_write(number);
  EXPECT_EQ(path_.cancelled, std::vector{chunk.transfer});
  EXPECT_TRUE(path_.unbound.empty()) << "the path still has a chunk of it";
  rig_.end_chunk(rig_.first, path_, chunk, Status(Code::kCancelled, "cancelled"));
  EXPECT_TRUE(service_.written.empty());
  EXPECT_EQ(path_.unbound.size(), 1u);
}

TEST_F(LentWritesTest, WithoutRoomItIsTriedAgain) {
  const std::uint64_t number = begin();
  path_.chunk_room = 0;
  EXPECT_EQ(write(number, 0, 300), LentWrite::kNoRoom);
  path_.chunk_room = 1;
  EXPECT_EQ(write(number, 0, 300), LentWrite::kYes);
}

TEST_F(LentWritesTest, ItEndsWithItsPath) {
  const std::uint64_t number = begin();
  path_.is_down = true;
  rig_.go_down(rig_.first, path_, Status(Code::kDisconnected, "lost").with_scope(Scope::kPath));
  EXPECT_EQ(write(number, 0, 300), LentWrite::kLost);
  EXPECT_EQ(begin(), 0u);
  carrier_.end_write(number);
}

TEST_F(LentWritesTest, APathThatQuitsSlowlyCarriesNone) {
  Rig slow;
  const std::shared_ptr<PeerCore> other = hand_peer("other", 8);
  slow.connect(other);
  EXPECT_EQ(slow.engine.carrier().begin_write(service_, *other->session(), kLent, 10, Priority::kBulk, 1), 0u);
}

}  // namespace
}  // namespace hawser::agent
