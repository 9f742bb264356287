#include <gtest/gtest.h>

#include <cstring>

#include "backend/loopback/factory.h"

namespace hawser::backend {
namespace {

class Loopback : public ::testing::Test {
 protected:
  Loopback() {
    identity_.name = "self";
    identity_.incarnation = base::random_id128();
    const Context context{identity_, regions_, log_, base::Rng(1), Security::kDefault, {}, {}, Clock::steady()};
    backend_ = std::move(loopback_factory().open(context, {})).value();
    port_ = std::move(backend_->open_port()).value();
    address_ = backend_->address();
    path_ = port_
                ->open_path({.peer = "self", .incarnation = {}, .address = address_, .supersedes = {}, .deadline = {}},
                            Instant())
                .value();
  }

  std::shared_ptr<const RegionEntry> add(std::span<std::byte> bytes, Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = base::random_id128();
    entry.base = bytes.data();
    entry.size = bytes.size();
    entry.rights = rights;
    return regions_.add(std::move(entry)).value();
  }
  static RemoteRegionRef ref(const RegionEntry& entry) {
    return {entry.index, entry.generation, entry.key, entry.size, entry.rights, entry.device, {}};
  }
  static Chunk chunk(Operation op, Binding* target, const Piece& piece, std::uint64_t cookie) {
    Chunk made;
    made.op = op;
    made.transfer = cookie;
    made.cookie = cookie;
    made.target = target;
    made.pieces = {&piece, 1};
    made.bytes = piece.size;
    return made;
  }
  std::vector<PortEvent> poll() {
    port_->turn(Instant(), {.copy_bytes = 256 * 1024});
    std::vector<PortEvent> events(16);
    events.resize(port_->poll(events));
    return events;
  }

  Identity identity_;
  RegionTable regions_{16};
  base::Logger log_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Port> port_;
  std::string address_;
  Path* path_ = nullptr;
};

TEST_F(Loopback, ComesUpAsItself) {
  const auto events = poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, PortEvent::Kind::kPathUp);
  EXPECT_EQ(events[0].peer->name, "self");
  EXPECT_TRUE(backend_->reachable(address_).ok());
  EXPECT_EQ(backend_->reachable("other").code(), Code::kUnsupported);
}

TEST_F(Loopback, CopiesSmallAtOnceAndLargeInTurns) {
  poll();
  std::vector<std::byte> memory(1 << 20);
  std::vector<std::byte> source(1 << 20, std::byte{7});
  auto region = add(memory);
  Binding* target = path_->bind(ref(*region)).value();
  const Piece small{source.data(), 5, 100};
  const Chunk first = chunk(Operation::kWrite, target, small, 1);
  EXPECT_EQ(path_->submit({&first, 1}, Instant()).done, 1u);
  EXPECT_EQ(memory[5], std::byte{7});
  EXPECT_EQ(memory[105], std::byte{0});

  const Piece large{source.data(), 0, source.size()};
  const Chunk second = chunk(Operation::kWrite, target, large, 2);
  const Submitted submitted = path_->submit({&second, 1}, Instant());
  EXPECT_EQ(submitted.taken, 1u);
  EXPECT_EQ(submitted.done, 0u);
  int turns = 1;
  std::vector<PortEvent> events;
  while ((events = poll()).empty()) ++turns;
  EXPECT_EQ(turns, 4);
  EXPECT_EQ(events[0].cookie, 2u);
  EXPECT_TRUE(events[0].status.ok());
  EXPECT_EQ(memory, source);
  EXPECT_TRUE(port_->prepare_sleep());
}

TEST_F(Loopback, RefusesWhatIsNotAllowed) {
  poll();
  std::vector<std::byte> memory(4096);
  auto region = add(memory, Rights::kRead);
  RemoteRegionRef forged = ref(*region);
  forged.key.hi ^= 1;
  EXPECT_EQ(path_->bind(forged).error().code(), Code::kDenied);
  Binding* target = path_->bind(ref(*region)).value();
  std::vector<std::byte> local(4096);
  const Piece piece{local.data(), 0, 4096};
  const Chunk write = chunk(Operation::kWrite, target, piece, 1);
  EXPECT_EQ(path_->submit({&write, 1}, Instant()).done, 0u);
  EXPECT_EQ(poll().at(0).status.code(), Code::kDenied);
  const Chunk read = chunk(Operation::kRead, target, piece, 2);
  EXPECT_EQ(path_->submit({&read, 1}, Instant()).done, 1u);
  regions_.close(region->index, region->generation);
  EXPECT_TRUE(port_->region_quiet(region->index, region->generation, nullptr));
  EXPECT_EQ(path_->submit({&read, 1}, Instant()).done, 0u);
  EXPECT_EQ(poll().at(0).status.code(), Code::kDenied);
}

TEST_F(Loopback, MessagesComeBackInOrderAndAreBounded) {
  poll();
  std::string text(1000, 'x');
  const auto bytes = std::as_bytes(std::span<const char>(text));
  std::size_t sent = 0;
  while (path_->send(Priority::kBulk, bytes.first(10), bytes.subspan(10))) ++sent;
  EXPECT_EQ(sent, 1024u);
  EXPECT_FALSE(port_->prepare_sleep());
  std::size_t received = 0;
  for (auto events = poll(); !events.empty(); events = poll()) {
    for (const PortEvent& event : events) {
      EXPECT_EQ(event.path, path_);
      EXPECT_EQ(event.bytes.size(), 1000u);
      ++received;
    }
  }
  EXPECT_EQ(received, sent);
}

TEST_F(Loopback, CancelAndCloseEndAllChunks) {
  poll();
  std::vector<std::byte> memory(1 << 20);
  auto region = add(memory);
  Binding* target = path_->bind(ref(*region)).value();
  std::vector<std::byte> local(1 << 20);
  const Piece piece{local.data(), 0, local.size()};
  const Chunk chunks[] = {chunk(Operation::kWrite, target, piece, 1), chunk(Operation::kWrite, target, piece, 2)};
  ASSERT_EQ(path_->submit(chunks, Instant()).taken, 2u);
  path_->cancel(2);
  port_->begin_close(Instant());
  std::vector<PortEvent> events(16);
  events.resize(port_->poll(events));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].status.code(), Code::kCancelled);
  EXPECT_EQ(events[1].status.code(), Code::kDisconnected);
  EXPECT_EQ(events[2].kind, PortEvent::Kind::kPathDown);
  EXPECT_TRUE(port_->idle());
}

}  // namespace
}  // namespace hawser::backend
