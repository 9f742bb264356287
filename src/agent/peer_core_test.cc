#include "agent/peer_core.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/bytes.h"

namespace hawser::agent {
namespace {

CardRef card_of(std::uint64_t number) {
  wire::Card card;
  card.name = "known " + std::to_string(number);
  card.incarnation = {78, number};
  card.revision = 4;
  card.born = number;
  card.admission = {9, number};
  card.backends.push_back({.name = "tcp", .address = "here"});
  card.regions.push_back({.index = 3, .generation = 1, .size = 64, .key = {1, 2}, .name = "kv"});
  return *share_card(base::as_bytes(wire::encode(card).value()));
}

std::shared_ptr<PeerCore> known(std::uint64_t number) {
  return std::make_shared<PeerCore>(std::weak_ptr<Core>(), card_of(number));
}

TEST(PeerCore, OneThatIsKnownHasNothingButItsCard) {
  const std::shared_ptr<PeerCore> peer = known(1);
  EXPECT_EQ(peer->name, "known 1");
  EXPECT_EQ(peer->incarnation, (base::Id128{78, 1}));
  EXPECT_EQ(peer->born(), 1u);
  EXPECT_TRUE(peer->has_card());
  EXPECT_EQ(peer->ticket().admission, (base::Id128{9, 1}));
  EXPECT_EQ(peer->session(), nullptr);
  peer->note_born(1);
  EXPECT_TRUE(peer->outranks(*std::make_shared<PeerCore>(std::weak_ptr<Core>(), "older", base::Id128{79, 1})));
  EXPECT_EQ(peer->used(), nullptr);
}

TEST(PeerCore, ItsUseBeginsWithWhatItsCardTells) {
  const std::shared_ptr<PeerCore> peer = known(2);
  PeerUse& its = peer->use();
  EXPECT_EQ(peer->used(), &its);
  EXPECT_EQ(&peer->use(), &its);
  EXPECT_EQ(peer->born(), 2u);
  EXPECT_EQ(peer->ticket().admission, (base::Id128{9, 2}));
  const base::MutexLock lock(its.mutex);
  ASSERT_NE(its.card, nullptr);
  EXPECT_TRUE(its.card->complete());
  EXPECT_EQ(its.card->revision(), 4u);
  EXPECT_EQ(*its.card->address_of("tcp"), "here");
  ASSERT_NE(its.card->find_name("kv"), nullptr);
  EXPECT_EQ(its.card->find_name("kv")->index, 3u);
}

TEST(PeerCore, OneThatWasMetHasNoCard) {
  const auto peer = std::make_shared<PeerCore>(std::weak_ptr<Core>(), "met", base::Id128{1, 2}, 7);
  EXPECT_FALSE(peer->has_card());
  EXPECT_EQ(peer->born(), 7u);
  peer->note_born(9);
  EXPECT_EQ(peer->born(), 9u);
  EXPECT_FALSE(peer->has_card());
  const base::MutexLock lock(peer->use().mutex);
  EXPECT_EQ(peer->use().card, nullptr);
}

TEST(PeerCore, AllThreadsThatUseItFirstGetTheSame) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    const std::shared_ptr<PeerCore> peer = known(100 + round);
    std::vector<PeerUse*> seen(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < seen.size(); ++t) {
      threads.emplace_back([&, t] {
        peer->note_born(1000 + t);
        EXPECT_TRUE(peer->has_card());
        EXPECT_EQ(peer->session(), nullptr);
        seen[t] = &peer->use();
        const base::MutexLock lock(seen[t]->mutex);
        EXPECT_TRUE(seen[t]->card->complete());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (PeerUse* const each : seen) EXPECT_EQ(each, peer->used());
    EXPECT_EQ(peer->born(), 1003u);
  }
}

}  // namespace
}  // namespace hawser::agent
