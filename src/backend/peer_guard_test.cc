#include "backend/peer_guard.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

constexpr Instant kNow = Instant::from_ns(100'000'000'000);
constexpr base::Id128 kFirst{1, 1}, kSecond{2, 2}, kThird{3, 3};

std::array<std::byte, 32> key(unsigned char fill) {
  std::array<std::byte, 32> key;
  key.fill(std::byte{fill});
  return key;
}

PeerClaim claim(const base::Id128& incarnation, unsigned char its_key, std::string_view name,
                std::string_view identity = {}) {
  return {.incarnation = incarnation,
          .public_key = key(its_key),
          .name = name,
          .identity = identity,
          .is_key_proven = true};
}

std::shared_ptr<PeerGuard> guard_with(const PeerQuotas& quotas = {}) { return std::make_shared<PeerGuard>(quotas); }

std::uint64_t refusals(const PeerGuard& guard, std::string_view bound) {
  for (const auto& [name, count] : guard.refusals()) {
    if (name == bound) return count;
  }
  return 0;
}

TEST(PeerGuardTest, APeerHasItsConnectionsAndNoneMore) {
  const auto guard = guard_with({.connections = 2});
  PeerSeat one = *guard->admit(claim(kFirst, 1, "a"), kNow);
  const PeerSeat two = *guard->admit(claim(kFirst, 1, "a"), kNow);
  const Result<PeerSeat> third = guard->admit(claim(kFirst, 1, "a"), kNow);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Code::kBusy);
  EXPECT_EQ(third.error().message(),
            "limits.peer_connections = 2 is in use for a: close some, or raise HAWSER_LIMITS_PEER_CONNECTIONS there");
  EXPECT_TRUE(guard->admit(claim(kSecond, 2, "b"), kNow)) << "another peer has its own";
  EXPECT_EQ(refusals(*guard, "peer_connections"), 1u);
  one.end();
  EXPECT_TRUE(guard->admit(claim(kFirst, 1, "a"), kNow)) << "one has ended";
}

TEST(PeerGuardTest, ConnectionsOfThisAgentsOwnDoNotCount) {
  const auto guard = guard_with({.connections = 1});
  const PeerSeat ours = guard->seat(claim(kFirst, 1, "a"));
  EXPECT_TRUE(guard->admit(claim(kFirst, 1, "a"), kNow));
}

TEST(PeerGuardTest, OperationsAndBytesAreBoundedTogetherOverAllPaths) {
  const auto guard = guard_with({.operations = 2, .bytes = 100});
  const PeerSeat one = *guard->admit(claim(kFirst, 1, "a"), kNow);
  const PeerSeat two = *guard->admit(claim(kFirst, 1, "a"), kNow);
  ASSERT_EQ(one.account(), two.account());
  PeerAccount& account = *one.account();
  Quota over = Quota::kName;
  OperationCharge first, second, third;
  EXPECT_TRUE(first.take(account, 60, &over));
  EXPECT_FALSE(second.take(account, 41, &over));
  EXPECT_EQ(over, Quota::kBytes);
  EXPECT_TRUE(second.take(account, 40, &over));
  EXPECT_FALSE(third.take(account, 0, &over));
  EXPECT_EQ(over, Quota::kOperations);
  first.release();
  EXPECT_TRUE(third.take(account, 60, &over));
  EXPECT_EQ(account.bytes(), 100u);
  OperationCharge moved = std::move(third);
  EXPECT_EQ(account.operations(), 2u);
  moved = OperationCharge();
  second.release();
  EXPECT_EQ(account.operations(), 0u);
  EXPECT_EQ(account.bytes(), 0u);
  EXPECT_FALSE(first.take(account, UINT64_MAX, &over)) << "sums do not wrap";
}

TEST(PeerGuardTest, RefusalsAreCountedAndLogged) {
  std::vector<std::string> lines;
  const LogSink sink = [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); };
  const base::Logger log({.level = LogLevel::kWarn, .sink = sink});
  const auto guard = std::make_shared<PeerGuard>(PeerQuotas{.operations = 7}, &log);
  const auto account = guard->account(kFirst);
  for (int i = 0; i < 5; ++i) account->refused(Quota::kOperations, "a", kNow);
  EXPECT_EQ(refusals(*guard, "peer_operations"), 5u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("refused a: limits.peer_operations = 7 is in use"), std::string::npos) << lines[0];
}

TEST(PeerGuardTest, ANameBelongsToTheFirstKeyUntilItIsDown) {
  const auto guard = guard_with();
  EXPECT_TRUE(guard->check(claim(kFirst, 1, "a"), kNow).ok());
  PeerSeat seat = *guard->admit(claim(kFirst, 1, "a"), kNow);
  guard->note_session(kFirst, "a", true);
  const Status refused = guard->check(claim(kSecond, 2, "a"), kNow);
  EXPECT_EQ(refused.code(), Code::kBusy);
  EXPECT_NE(refused.message().find("the name 'a' is held by the live incarnation " + to_hex(kFirst)),
            std::string_view::npos)
      << refused.to_string();
  EXPECT_TRUE(guard->check(claim(kSecond, 2, "b"), kNow).ok());
  seat.leave();
  EXPECT_FALSE(guard->check(claim(kSecond, 2, "a"), kNow).ok()) << "its session is being mended";
  EXPECT_TRUE(guard->check(claim(kFirst, 1, "a"), kNow).ok()) << "it comes back itself";
  guard->note_session(kFirst, "a", false);
  EXPECT_TRUE(guard->check(claim(kSecond, 2, "a"), kNow).ok());
  EXPECT_EQ(refusals(*guard, "name"), 2u);
}

TEST(PeerGuardTest, OfTwoThatTheAgentItselfConnectedToBothMayComeBack) {
  const auto guard = guard_with();
  guard->note_session(kFirst, "a", true);
  guard->note_session(kSecond, "a", true);
  EXPECT_TRUE(guard->check(claim(kFirst, 1, "a"), kNow).ok());
  EXPECT_TRUE(guard->check(claim(kSecond, 2, "a"), kNow).ok());
  EXPECT_FALSE(guard->check(claim(kThird, 3, "a"), kNow).ok());
}

TEST(PeerGuardTest, ReplicasShareAName) {
  const auto guard = guard_with();
  const PeerSeat seat = *guard->admit(claim(kFirst, 1, "a", "spiffe://x/a"), kNow);
  guard->note_session(kFirst, "a", true);
  EXPECT_TRUE(guard->check(claim(kSecond, 2, "a", "spiffe://x/a"), kNow).ok());
  const Status other = guard->check(claim(kSecond, 2, "a", "spiffe://x/b"), kNow);
  EXPECT_EQ(other.code(), Code::kBusy);
  EXPECT_NE(other.message().find("(spiffe://x/a)"), std::string_view::npos) << other.to_string();
}

TEST(PeerGuardTest, WhoseCardTheAgentHasMayComeUnderATakenName) {
  const auto is_second = [](const PeerClaim& each) { return each.incarnation == kSecond && each.public_key == key(2); };
  const auto guard = std::make_shared<PeerGuard>(PeerQuotas(), nullptr, is_second);
  guard->note_session(kFirst, "a", true);
  EXPECT_TRUE(guard->check(claim(kSecond, 2, "a"), kNow).ok());
  EXPECT_FALSE(guard->check(claim(kSecond, 3, "a"), kNow).ok()) << "another key";
  EXPECT_FALSE(guard->check(claim(kThird, 3, "a"), kNow).ok());
}

TEST(PeerGuardTest, AnIncarnationBelongsToTheFirstKeyThatProvedIt) {
  const auto guard = guard_with();
  const PeerSeat seat = *guard->admit(claim(kFirst, 1, "a"), kNow);
  EXPECT_EQ(guard->check(claim(kFirst, 2, "a"), kNow).code(), Code::kDenied);
  EXPECT_EQ(guard->check(claim(kFirst, 2, "b"), kNow).code(), Code::kDenied);
  EXPECT_TRUE(guard->check(claim(kFirst, 1, "a"), kNow).ok());
}

TEST(PeerGuardTest, WhereKeysAreNotProvenNamesAreNobodys) {
  const auto guard = guard_with();
  guard->note_session(kFirst, "a", true);
  PeerClaim in_clear = claim(kSecond, 2, "a");
  in_clear.is_key_proven = false;
  EXPECT_TRUE(guard->check(in_clear, kNow).ok());
}

TEST(PeerGuardTest, NothingIsKeptOfPeersThatLeft) {
  const auto guard = guard_with();
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    const PeerSeat seat = *guard->admit(claim({i, i}, 1, "a"), kNow);
    guard->note_session({i, i}, "a", true);
    guard->note_session({i, i}, "a", false);
  }
  EXPECT_EQ(guard->accounts(), 0u);
}

TEST(PeerGuardTest, AnAccountMayOutliveTheGuard) {
  auto guard = guard_with();
  const std::shared_ptr<PeerAccount> account = guard->account(kFirst);
  guard->note_session(kSecond, "b", true);
  guard.reset();
  Quota over = Quota::kName;
  OperationCharge charge;
  EXPECT_TRUE(charge.take(*account, 1, &over));
  account->refused(Quota::kBytes, "a", kNow);
}

}  // namespace
}  // namespace hawser::backend
