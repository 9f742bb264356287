#include "agent/own_card.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/bytes.h"

namespace hawser::agent {
namespace {

std::shared_ptr<const backend::RegionEntry> make_entry(std::uint32_t index, std::uint32_t generation,
                                                       std::string name = "") {
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->index = index;
  entry->generation = generation;
  entry->size = 4096;
  entry->key = {index + 1, generation};
  entry->rights = Rights::kReadWrite;
  entry->name = std::move(name);
  return entry;
}

class OwnCardTest : public testing::Test {
 protected:
  using Id = backend::RegionId;

  void SetUp() override { card_.open({.name = "a", .incarnation = {1, 2}, .born = 5, .driven = false}); }

  void add(std::uint32_t index, std::uint32_t generation, std::string extra = "") {
    assume_in_lane();
    OwnCard::Told told{.entry = make_entry(index, generation, "r" + std::to_string(index)), .extras = {}};
    if (!extra.empty()) told.extras.add(kFirst, extra);
    card_.add_regions({&told, 1});
  }
  void remove(std::uint32_t index, std::uint32_t generation) {
    assume_in_lane();
    card_.remove_regions(std::array{Id{index, generation}});
  }
  void add_backend(std::uint32_t number, std::string name, std::vector<OwnCard::Extra> extras = {}) {
    assume_in_lane();
    card_.add_backend(number, std::move(name), "at " + std::to_string(number), extras);
  }
  wire::Card since(std::uint64_t revision) { return decoded(card_.since(revision)); }
  static wire::Card decoded(const Result<std::string>& bytes) {
    return *wire::decode_card(base::as_bytes(bytes.value()));
  }
  static std::vector<std::uint32_t> indices_of(const wire::Card& card) {
    std::vector<std::uint32_t> all;
    for (const wire::CardRegion& region : card.regions) all.push_back(region.index);
    return all;
  }
  /// By backend's name.
  static std::map<std::string, std::string> extras_of(const wire::Card& card, std::size_t at) {
    std::map<std::string, std::string> all;
    for (const wire::CardExtra& extra : card.extras_of(card.regions[at])) {
      all[card.backends[extra.backend].name] = std::string(extra.bytes);
    }
    return all;
  }

  static constexpr std::uint32_t kFirst = 1, kSecond = 3;
  OwnCard card_;
};

TEST_F(OwnCardTest, TellsWhoTheAgentIs) {
  const wire::Card card = since(0);
  EXPECT_EQ(card.kind, wire::CardKind::kFull);
  EXPECT_EQ(card.name, "a");
  EXPECT_EQ(card.incarnation, (base::Id128{1, 2}));
  EXPECT_EQ(card.born, 5u);
  EXPECT_FALSE(card.driven);
  EXPECT_EQ(card.revision, 1u);
  EXPECT_TRUE(card.regions.empty());
}

TEST_F(OwnCardTest, OnlyWhatChangesGivesANewRevision) {
  assume_in_lane();
  card_.say_driven(false);
  EXPECT_EQ(card_.revision(), 1u);
  card_.say_driven(true);
  EXPECT_EQ(card_.revision(), 2u);
  EXPECT_TRUE(since(0).driven);
  remove(0, 1);
  EXPECT_EQ(card_.revision(), 2u) << "there was no such region";
  add(0, 1);
  EXPECT_EQ(card_.revision(), 3u);
  remove(0, 2);
  EXPECT_EQ(card_.revision(), 3u) << "another generation";
  remove(0, 1);
  EXPECT_EQ(card_.revision(), 4u);
}

TEST_F(OwnCardTest, AFullCardHasAllRegionsByIndex) {
  for (const std::uint32_t index : {3u, 0u, 2u}) add(index, 1);
  const wire::Card card = since(0);
  EXPECT_EQ(indices_of(card), (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(card.regions[1].name, "r2");
  EXPECT_EQ(card.revision, 4u);
}

TEST_F(OwnCardTest, ADeltaHasWhatCameAndWhatWent) {
  for (const std::uint32_t index : {0u, 1u}) add(index, 1);
  const std::uint64_t known = card_.revision();
  remove(0, 1);
  add(0, 2);
  add(7, 1);
  remove(7, 1);
  const wire::Card delta = since(known);
  EXPECT_EQ(delta.kind, wire::CardKind::kDelta);
  EXPECT_EQ(delta.base_revision, known);
  EXPECT_EQ(delta.revision, card_.revision());
  EXPECT_EQ(indices_of(delta), std::vector<std::uint32_t>{0});
  EXPECT_EQ(delta.regions[0].generation, 2u);
  ASSERT_EQ(delta.removed.size(), 2u);
  EXPECT_EQ(delta.removed[0].index, 0u);
  EXPECT_EQ(delta.removed[1].index, 7u);
  const wire::Card none = since(card_.revision());
  EXPECT_EQ(none.kind, wire::CardKind::kDelta);
  EXPECT_TRUE(none.regions.empty() && none.removed.empty());
}

TEST_F(OwnCardTest, OneThatIsFurtherBehindThanChangesAreKeptGetsAFullCard) {
  for (std::uint32_t i = 0; i < OwnCard::kChangesMax; ++i) add(i, 1);
  EXPECT_EQ(since(1).kind, wire::CardKind::kDelta) << "as many as are kept";
  add(static_cast<std::uint32_t>(OwnCard::kChangesMax), 1);
  EXPECT_EQ(since(1).kind, wire::CardKind::kFull) << "one more";
  EXPECT_EQ(since(2).kind, wire::CardKind::kDelta);
  EXPECT_EQ(since(card_.revision() + 1).kind, wire::CardKind::kFull) << "a revision that never was";
}

TEST_F(OwnCardTest, ABackendThatComesLaterHasItsExtrasAndEndsDeltas) {
  add_backend(kFirst, "shm");
  add(0, 1, "of shm");
  add(1, 1);
  const std::uint64_t known = card_.revision();
  remove(1, 1);
  add_backend(kSecond, "tcp", {{Id{0, 1}, "of tcp"}, {Id{1, 1}, "of one that went"}, {Id{9, 1}, "of none"}});
  EXPECT_EQ(card_.revision(), known + 2);
  const wire::Card card = since(known);
  EXPECT_EQ(card.kind, wire::CardKind::kFull);
  ASSERT_EQ(card.backends.size(), 2u);
  EXPECT_EQ(card.backends[1].address, "at 3");
  ASSERT_EQ(indices_of(card), std::vector<std::uint32_t>{0});
  EXPECT_EQ(extras_of(card, 0), (std::map<std::string, std::string>{{"shm", "of shm"}, {"tcp", "of tcp"}}));
}

TEST_F(OwnCardTest, ExtrasOfABackendThatDidNotOpenAreNotTold) {
  add(0, 1, "of one that never opened");
  EXPECT_TRUE(since(0).extras.empty());
}

TEST_F(OwnCardTest, RenewedExtrasReplaceThoseOfTheSameBackend) {
  add_backend(kFirst, "shm");
  add(0, 1, "before");
  add(1, 1, "before");
  const std::uint64_t known = card_.revision();
  assume_in_lane();
  card_.renew_extras(kFirst, std::array<OwnCard::Extra, 3>{{{Id{0, 1}, "after"}, {Id{1, 1}, ""}, {Id{2, 1}, "no"}}});
  const wire::Card card = since(known);
  EXPECT_EQ(card.kind, wire::CardKind::kFull);
  EXPECT_EQ(extras_of(card, 0), (std::map<std::string, std::string>{{"shm", "after"}}));
  EXPECT_TRUE(extras_of(card, 1).empty());
}

TEST_F(OwnCardTest, APartialCardHasTheRegionsThatWereNamed) {
  for (const std::uint32_t index : {0u, 1u, 2u}) add(index, 1);
  const wire::Card card = decoded(card_.partial(std::array{2u, 0u, 2u}));
  EXPECT_EQ(card.kind, wire::CardKind::kPartial);
  EXPECT_EQ(indices_of(card), (std::vector<std::uint32_t>{0, 2}));
  remove(2, 1);
  const Status refused = card_.partial(std::array{0u, 2u}).error();
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_NE(refused.to_string().find("#2"), std::string::npos) << refused.to_string();
}

TEST_F(OwnCardTest, KeepsNoEntryThatItDoesNotTellOf) {
  auto entry = make_entry(0, 1);
  const std::weak_ptr<const backend::RegionEntry> watched = entry;
  OwnCard::Told told{.entry = std::move(entry), .extras = {}};
  assume_in_lane();
  card_.add_regions({&told, 1});
  EXPECT_FALSE(watched.expired());
  remove(0, 1);
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace hawser::agent
