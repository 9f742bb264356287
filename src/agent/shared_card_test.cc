#include "agent/shared_card.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/bytes.h"

namespace hawser::agent {
namespace {

std::string card_bytes(std::uint64_t number, std::uint64_t revision = 1, wire::CardKind kind = wire::CardKind::kFull) {
  wire::Card card;
  card.name = "shared " + std::to_string(number);
  card.incarnation = {77, number};
  card.revision = revision;
  card.born = number;
  card.kind = kind;
  card.admission = {9, number};
  card.public_key.fill(std::byte{3});
  return wire::encode(card).value();
}

Result<CardRef> share(const std::string& bytes) { return share_card(base::as_bytes(bytes)); }

TEST(SharedCard, EqualBytesAreOneAndGoWithTheLast) {
  const std::size_t before = shared_cards();
  CardRef first = *share(card_bytes(1));
  CardRef second = *share(card_bytes(1));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, *share(card_bytes(1, 2)));
  EXPECT_EQ(shared_cards(), before + 1);
  EXPECT_EQ(first->name, "shared 1");
  EXPECT_EQ(first->incarnation, (base::Id128{77, 1}));
  EXPECT_EQ(first->born, 1u);
  EXPECT_EQ(first->ticket.admission, (base::Id128{9, 1}));
  EXPECT_EQ(first->ticket.public_key[31], std::byte{3});
  EXPECT_EQ(first->bytes, card_bytes(1));
  const CardRef third = second;
  first = CardRef();
  second = CardRef();
  EXPECT_EQ(shared_cards(), before + 1);
  EXPECT_EQ(third->name, "shared 1");
}

TEST(SharedCard, OnlySmallFullCardsAreShared) {
  EXPECT_FALSE(*share(card_bytes(2, 1, wire::CardKind::kPartial)));
  wire::Card large;
  large.name = "large";
  large.incarnation = {77, 2};
  large.backends.push_back({.name = "tcp", .address = std::string(kSharedCardMax, 'a')});
  EXPECT_FALSE(*share(wire::encode(large).value()));
  std::string broken = card_bytes(2);
  broken[20] ^= 1;
  EXPECT_EQ(share(broken).error().code(), Code::kCorrupt);
}

TEST(SharedCard, OneWithoutACardIsNobodyElses) {
  const CardRef one = CardRef::alone("p", {1, 2}, 7);
  const CardRef other = CardRef::alone("p", {1, 2}, 7);
  EXPECT_NE(one, other);
  EXPECT_FALSE(one->has_card());
  EXPECT_EQ(one->born, 7u);
}

TEST(SharedCard, ThreadsShareAndDropTheSameCards) {
  const std::size_t before = shared_cards();
  std::vector<std::string> cards;
  for (std::uint64_t i = 0; i < 4; ++i) cards.push_back(card_bytes(100 + i));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const CardRef one = *share(cards[(t + i) % cards.size()]);
        const CardRef same = one;  // NOLINT: a second reference is what is tested.
        EXPECT_EQ(same->bytes, cards[(t + i) % cards.size()]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared_cards(), before);
}

TEST(SharedCard, AForkedChildHasATableOfItsOwn) {
#if defined(__SANITIZE_THREAD__) || defined(HAWSER_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
  CardRef parents = *share(card_bytes(5));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    const bool is_readable = parents->name == "shared 5";
    const CardRef own = *share(card_bytes(5));
    const bool is_own = own != parents && shared_cards() == 1;
    parents = CardRef();  // The parent's lock could be held: it stays.
    ::_exit(is_readable && is_own ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace hawser::agent
