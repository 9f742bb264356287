#include "backend/shm/region_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "backend/shm/mapping.h"

namespace hawser::backend::shm {
namespace {

/// The peer asks over a socket of its own.
class RegionServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    near_ = base::Fd(ends[0]);
    far_ = base::Fd(ends[1]);
    auto arena = Arena::create(2 * kPage, Rights::kReadWrite, HugePages::kOff);
    ASSERT_TRUE(arena);
    arena_ = *arena;
  }
  static constexpr std::size_t kPage = 4096;

  /// Adds a region of one page, the second one of the arena.
  Bind add_mapped(Rights rights) { return add(arena_, arena_->bytes().data() + kPage, rights); }
  Bind add(std::shared_ptr<Arena> arena, std::byte* base, Rights rights, DeviceKind device = DeviceKind::kHost) {
    RegionEntry entry;
    entry.key = base::random_id128();
    entry.base = base;
    entry.size = kPage;
    entry.rights = rights;
    entry.device.kind = device;
    entry.arena = std::move(arena);
    const auto added = table_.add(std::move(entry));
    EXPECT_TRUE(added);
    return Bind{7, (*added)->index, (*added)->generation, (*added)->key};
  }
  Bound answer_to(const Bind& asked) {
    const bool is_served = server_.answer(asked, {});
    EXPECT_TRUE(server_.has_reply());
    EXPECT_EQ(server_.send(near_.get()), Io::kDone);
    EXPECT_FALSE(server_.has_reply());
    EXPECT_EQ(receive_packet(far_.get(), &packet_), Io::kDone);
    const auto control = decode_control(packet_.bytes(), {});
    EXPECT_TRUE(control);
    Bound bound = std::get<Bound>(*control);
    EXPECT_EQ(bound.request, asked.request);
    EXPECT_EQ(is_served, bound.code == Code::kOk);
    return bound;
  }

  RegionTable table_{16};
  Options options_;
  RegionServer server_{table_, options_};
  std::shared_ptr<Arena> arena_;
  base::Fd near_, far_;
  Packet packet_;
};

TEST_F(RegionServerTest, WhatCanBeMappedGoesWithItsFile) {
  const Bound bound = answer_to(add_mapped(Rights::kReadWrite));
  EXPECT_EQ(bound.code, Code::kOk);
  EXPECT_EQ(bound.kind, MemoryKind::kMapped);
  EXPECT_EQ(bound.place, kPage);
  EXPECT_EQ(bound.size, kPage);
  ASSERT_EQ(packet_.fd_count, 1u);
  EXPECT_TRUE(Mapping::map(packet_.fds[0].get(), 2 * kPage, Mapping::Access::kReadWrite));
}

TEST_F(RegionServerTest, WhoMayOnlyReadGetsAFileThatCanOnlyBeRead) {
  EXPECT_EQ(answer_to(add_mapped(Rights::kRead)).rights, Rights::kRead);
  ASSERT_EQ(packet_.fd_count, 1u);
  EXPECT_FALSE(Mapping::map(packet_.fds[0].get(), 2 * kPage, Mapping::Access::kReadWrite));
  EXPECT_TRUE(Mapping::map(packet_.fds[0].get(), 2 * kPage, Mapping::Access::kRead));
}

TEST_F(RegionServerTest, ForeignMemoryIsAnAddress) {
  std::array<std::byte, kPage> memory{};
  const Bound bound = answer_to(add(nullptr, memory.data(), Rights::kReadWrite));
  EXPECT_EQ(bound.kind, MemoryKind::kForeign);
  EXPECT_EQ(bound.place, reinterpret_cast<std::uint64_t>(memory.data()));
  EXPECT_EQ(packet_.fd_count, 0u);
}

TEST_F(RegionServerTest, WithoutMappingEverythingIsForeign) {
  options_.map = false;
  EXPECT_EQ(answer_to(add_mapped(Rights::kReadWrite)).kind, MemoryKind::kForeign);
  EXPECT_EQ(packet_.fd_count, 0u);
}

TEST_F(RegionServerTest, AWrongKeyAndNoSuchRegionGetOneAnswer) {
  Bind wrong = add_mapped(Rights::kReadWrite);
  wrong.key = base::random_id128();
  const Bound denied = answer_to(wrong);
  EXPECT_EQ(denied.code, Code::kDenied);
  EXPECT_EQ(packet_.fd_count, 0u);
  const Bound missing = answer_to(Bind{7, 15, 1, base::random_id128()});
  EXPECT_EQ(missing.code, denied.code);
  EXPECT_EQ(missing.reason, denied.reason);
}

TEST_F(RegionServerTest, AfterAFileARefusalBringsNone) {
  answer_to(add_mapped(Rights::kReadWrite));
  EXPECT_EQ(packet_.fd_count, 1u);
  packet_ = Packet();
  EXPECT_EQ(answer_to(Bind{7, 15, 1, base::random_id128()}).code, Code::kDenied);
  EXPECT_EQ(packet_.fd_count, 0u);
}

TEST_F(RegionServerTest, MemoryOfADeviceIsRefused) {
  std::array<std::byte, kPage> memory{};
  EXPECT_EQ(answer_to(add(nullptr, memory.data(), Rights::kReadWrite, DeviceKind::kCuda)).code, Code::kUnsupported);
}

TEST_F(RegionServerTest, AnAnswerWaitsForRoomInTheSocket) {
  const Bind asked = add_mapped(Rights::kReadWrite);
  std::size_t sent = 0;
  for (bool waits = false; !waits; sent += waits ? 0 : 1) {
    EXPECT_TRUE(server_.answer(asked, {}));
    waits = server_.send(near_.get()) == Io::kAgain;
  }
  EXPECT_TRUE(server_.has_reply());
  for (std::size_t i = 0; i < sent; ++i) EXPECT_EQ(receive_packet(far_.get(), &packet_), Io::kDone);
  EXPECT_EQ(server_.send(near_.get()), Io::kDone);
  EXPECT_EQ(receive_packet(far_.get(), &packet_), Io::kDone);
  EXPECT_EQ(packet_.fd_count, 1u);
}

}  // namespace
}  // namespace hawser::backend::shm
