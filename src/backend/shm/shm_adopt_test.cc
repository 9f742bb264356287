// Adopted memory between two ports, in one process and in two: what is mapped, what goes by cross-memory attach, and
// that every byte lands where it should.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "backend/shm/path.h"
#include "backend/shm/test_host.h"
#include "backend/test_pages.h"

namespace hawser::backend::shm {
namespace {

constexpr std::size_t kPage = TestPages::kPage;

class ShmAdopt : public ::testing::Test {
 protected:
  /// A binding that has been asked for, by a first read of one byte.
  ShmBinding& bound(Path* path, const RegionEntry& region, std::uint64_t at) {
    Binding* const made = path->bind(b_.ref(region)).value();
    std::byte byte{};
    const Piece piece{&byte, at, 1};
    EXPECT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kRead, made, {&piece, 1}, 1)).ok());
    return static_cast<ShmBinding&>(*made);
  }
  /// Why cross-memory attach cannot be used here; empty: it can.
  static std::string why_no_attach(Path* path) {
    constexpr std::string_view kBefore = " cross-memory ", kAfter = " mapped ";
    const std::string text = path->describe();
    const std::size_t from = text.find(kBefore), to = text.rfind(kAfter);
    if (from == std::string::npos || to == std::string::npos) ADD_FAILURE() << text;
    const std::string said = text.substr(from + kBefore.size(), to - from - kBefore.size());
    return said == "allowed" ? "" : "no cross-memory attach here: " + said;
  }

  TestFolder folder_;
  TestHost a_{"alice", folder_.path()};
  TestHost b_{"bob", folder_.path()};
};

/// Every byte of `target` that a write of the pieces touched has its value, and no other changed.
struct Mirror {
  explicit Mirror(std::span<std::byte> bytes) : target(bytes), expected(bytes.begin(), bytes.end()) {}
  void wrote(const Piece& piece) { std::memcpy(expected.data() + piece.remote, piece.local, piece.size); }
  bool matches() const { return std::memcmp(target.data(), expected.data(), target.size()) == 0; }
  std::span<std::byte> target;
  std::vector<std::byte> expected;
};

TEST_F(ShmAdopt, WholePagesAreMappedWithoutAttaching) {
  Options options;
  options.attach = false;
  TestHost c("carol", folder_.path(), options);
  Path* const path = connect(c, b_);
  TestPages pages(64);
  const auto region = b_.adopt(pages.bytes());
  ASSERT_TRUE(region->pages->file()) << region->pages->refusal().to_string();
  Binding* const target = path->bind(b_.ref(*region)).value();
  Mirror mirror(pages.bytes());
  std::vector<std::byte> source(60 * kPage, std::byte{0x5a});
  const Piece piece{source.data(), 1000, source.size()};
  mirror.wrote(piece);
  ASSERT_TRUE(transfer(c, b_, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 1)).ok());
  EXPECT_EQ(static_cast<ShmBinding*>(target)->state, ShmBinding::State::kMapped);
  EXPECT_TRUE(mirror.matches());
  EXPECT_EQ(why_no_attach(path), "no cross-memory attach here: attach=false");
  EXPECT_NE(path->describe().find("mapped 1 regions, 262144 bytes"), std::string::npos) << path->describe();
}

TEST_F(ShmAdopt, EndsLandToo) {
  Path* const path = connect(a_, b_);
  if (const std::string why = why_no_attach(path); !why.empty()) GTEST_SKIP() << why;
  TestPages pages(40);
  const auto bytes = pages.bytes(16, 38 * kPage);
  const auto region = b_.adopt(bytes);
  ASSERT_TRUE(region->pages->file()) << region->pages->refusal().to_string();
  ShmBinding& target = bound(path, *region, 0);
  EXPECT_EQ(target.state, ShmBinding::State::kMapped);
  EXPECT_EQ(target.head, kPage - 16);
  EXPECT_EQ(target.tail, 16u);
  Mirror mirror(bytes);
  std::vector<std::byte> source(bytes.size());
  base::Rng rng(3);
  std::uint64_t cookie = 10;
  const std::uint64_t size = bytes.size();
  const std::pair<std::uint64_t, std::uint64_t> ranges[] = {
      {0, 1},        {0, kPage - 16},           {kPage - 17, 2}, {kPage - 16, 1},      {kPage - 16, kPage},
      {0, size},     {size - 16, 16},           {size - 17, 2},  {size - 17, 1},       {100, size - 100},
      {0, size - 1}, {kPage - 16, size - 4096}, {5, 3 * kPage},  {size - 20000, 20000}};
  for (const auto& [at, count] : ranges) {
    for (std::byte& byte : source) byte = static_cast<std::byte>(rng.u64());
    const Piece piece{source.data(), at, count};
    mirror.wrote(piece);
    ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, &target, {&piece, 1}, ++cookie)).ok()) << at;
    ASSERT_TRUE(mirror.matches()) << "written " << at << " " << count;
    std::vector<std::byte> back(count);
    const Piece reverse{back.data(), at, count};
    ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kRead, &target, {&reverse, 1}, ++cookie)).ok());
    ASSERT_EQ(std::memcmp(back.data(), source.data(), count), 0) << "read " << at << " " << count;
  }
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(pages.base()[i], TestPages::value(i, 1));
  for (std::size_t i = 16 + size; i < 40 * kPage; ++i) ASSERT_EQ(pages.base()[i], TestPages::value(i, 1)) << i;
}

TEST_F(ShmAdopt, ManyPiecesOverTheEnds) {
  Path* const path = connect(a_, b_);
  if (const std::string why = why_no_attach(path); !why.empty()) GTEST_SKIP() << why;
  TestPages pages(4);
  const auto bytes = pages.bytes(8, 3 * kPage);
  const auto region = b_.adopt(bytes);
  ShmBinding& target = bound(path, *region, 0);
  std::vector<std::byte> source(bytes.size());
  base::Rng rng(4);
  for (std::byte& byte : source) byte = static_cast<std::byte>(rng.u64());
  std::vector<Piece> pieces;  // more than one kernel call takes, in both ends and between
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) pieces.push_back({source.data() + at, at, 4});
  Mirror mirror(bytes);
  for (const Piece& piece : pieces) mirror.wrote(piece);
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, &target, pieces, 2)).ok());
  EXPECT_TRUE(mirror.matches());
  std::vector<std::byte> back(bytes.size());
  for (Piece& piece : pieces) piece.local = back.data() + piece.remote;
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kRead, &target, pieces, 3)).ok());
  EXPECT_EQ(back, source);
}

TEST_F(ShmAdopt, EndsAreMovedInsideThePin) {
  Path* const path = connect(a_, b_);
  if (const std::string why = why_no_attach(path); !why.empty()) GTEST_SKIP() << why;
  TestPages pages(4);
  const auto region = b_.adopt(pages.bytes(8, 3 * kPage));
  ShmBinding& target = bound(path, *region, 0);
  b_.regions().close(region->index, region->generation);
  ASSERT_TRUE(b_.port().region_quiet(region->index, region->generation, nullptr));
  ASSERT_TRUE(region->pages->release().ok());
  std::vector<std::byte> source(3 * kPage, std::byte{0x66});
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{3 * kPage}}) {
    const Piece piece{source.data(), 0, size};
    const Status status = transfer(a_, b_, path, chunk_of(Operation::kWrite, &target, {&piece, 1}, size));
    EXPECT_EQ(status.code(), Code::kDenied) << status.to_string();
  }
  EXPECT_TRUE(pages.holds(1));
}

TEST_F(ShmAdopt, WithoutAttachARegionWithEndsIsRefusedAtOnce) {
  Options options;
  options.attach = false;
  TestHost c("carol", folder_.path(), options);
  Path* const path = connect(c, b_);
  TestPages pages(4);
  const auto region = b_.adopt(pages.bytes(8, 3 * kPage));
  ASSERT_TRUE(region->pages->file());
  const auto bound = path->bind(b_.ref(*region));
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code(), Code::kUnsupported);
}

TEST_F(ShmAdopt, RefusedMemoryIsReachedAsBefore) {
  Path* const path = connect(a_, b_);
  if (const std::string why = why_no_attach(path); !why.empty()) GTEST_SKIP() << why;
  TestPages pages(8);
  const auto first = b_.adopt(pages.bytes(0, 4 * kPage));
  const auto all = b_.adopt(pages.bytes());
  ASSERT_FALSE(all->pages->file());
  ShmBinding& target = bound(path, *all, 0);
  EXPECT_EQ(target.state, ShmBinding::State::kForeign);
  std::vector<std::byte> source(8 * kPage, std::byte{0x12});
  const Piece piece{source.data(), 0, source.size()};
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, &target, {&piece, 1}, 2)).ok());
  EXPECT_EQ(std::memcmp(pages.base(), source.data(), source.size()), 0);
  ASSERT_TRUE(first->pages->release().ok());  // the larger one still holds the pages
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, &target, {&piece, 1}, 3)).ok());
  ASSERT_TRUE(all->pages->release().ok());
  EXPECT_EQ(std::memcmp(pages.base(), source.data(), source.size()), 0);
}

TEST_F(ShmAdopt, ReadersCannotWrite) {
  Path* const path = connect(a_, b_);
  TestPages pages(4);
  const auto region = b_.adopt(pages.bytes(), Rights::kRead);
  ASSERT_TRUE(region->pages->file());
  ShmBinding& target = bound(path, *region, 5);
  std::byte byte{0x99};
  const Piece piece{&byte, 0, 1};
  EXPECT_EQ(transfer(a_, b_, path, chunk_of(Operation::kWrite, &target, {&piece, 1}, 2)).code(), Code::kDenied);
  EXPECT_TRUE(pages.holds(1));
}

/// What a child must know to write into a region of its parent.
struct Invitation {
  char address[256] = {};
  std::size_t address_size = 0;
  base::Id128 incarnation;
  std::uint32_t index = 0, generation = 0;
  base::Id128 key;
  std::uint64_t size = 0;
  char extra = 0;
};

/// The child writes its pattern over the whole region, reads it back, and ends with 0 when all was mapped and right.
[[noreturn]] void run_child(int in, const std::string& folder) {
  Invitation invitation;
  if (::read(in, static_cast<void*>(&invitation), sizeof invitation) != sizeof invitation) ::_exit(1);
  TestHost host("child", folder);
  Path* const path = host.open({.peer = {},
                                .incarnation = invitation.incarnation,
                                .address = {invitation.address, invitation.address_size},
                                .supersedes = {},
                                .deadline = Instant::max()});
  if (!turn_until({&host}, [&] { return host.ups.contains(path); })) ::_exit(2);
  const auto bound = path->bind({invitation.index, invitation.generation, invitation.key, invitation.size,
                                 Rights::kReadWrite, Device{}, std::string_view(&invitation.extra, 1)});
  if (!bound) ::_exit(77);
  std::vector<std::byte> bytes(invitation.size), back(invitation.size);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = TestPages::value(i, 5);
  const Piece out{bytes.data(), 0, bytes.size()}, in_again{back.data(), 0, back.size()};
  const auto ends_well = [&](Operation op, const Piece& piece, std::uint64_t cookie) {
    const Chunk chunk = chunk_of(op, *bound, {&piece, 1}, cookie);
    const Submitted sent = path->submit({&chunk, 1}, Instant());
    return sent.done == 1 ||
           (turn_until({&host}, [&] { return host.done.contains(cookie); }) && host.done[cookie].ok());
  };
  if (!ends_well(Operation::kWrite, out, 1) || !ends_well(Operation::kRead, in_again, 2)) ::_exit(3);
  const bool is_mapped = static_cast<const ShmBinding*>(*bound)->state == ShmBinding::State::kMapped;
  ::_exit(!is_mapped ? 4 : back != bytes ? 5 : 0);
}

TEST_F(ShmAdopt, BetweenProcesses) {
  for (const std::size_t offset : {std::size_t{0}, std::size_t{16}}) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) run_child(pipe[0], folder_.path());
    TestHost host("parent", folder_.path());
    TestPages pages(512 + 2);
    const auto bytes = pages.bytes(offset, 512 * kPage);
    const auto region = host.adopt(bytes);
    ASSERT_TRUE(region->pages->file()) << region->pages->refusal().to_string();
    Invitation invitation{.incarnation = host.identity().incarnation,
                          .index = region->index,
                          .generation = region->generation,
                          .key = region->key,
                          .size = region->size,
                          .extra = host.ref(*region).extra[0]};
    const std::string address = host.backend().address();
    invitation.address_size = address.copy(invitation.address, sizeof invitation.address);
    ASSERT_EQ(::write(pipe[1], &invitation, sizeof invitation), static_cast<ssize_t>(sizeof invitation));
    int status = -1;
    ASSERT_TRUE(turn_until({&host}, [&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    ::close(pipe[0]);
    ::close(pipe[1]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no cross-memory attach here";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    host.regions().close(region->index, region->generation);
    ASSERT_TRUE(
        turn_until({&host}, [&] { return host.port().region_quiet(region->index, region->generation, nullptr); }));
    ASSERT_TRUE(region->pages->release().ok());
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], TestPages::value(i, 5)) << i;
  }
}

}  // namespace
}  // namespace hawser::backend::shm
