#include "compat/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"

namespace hawser::compat {
namespace {

using Kind = NotificationPart::Kind;

std::string body_of(std::uint64_t id, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(id * 31 + i * 7 + i / 253);
  return text;
}

/// What a sender makes of a body, in order; the last one delivers it.
std::vector<std::string> parts_of(std::uint64_t id, const std::string& text) {
  std::vector<std::string> parts;
  const auto total = static_cast<std::uint32_t>(text.size());
  for (std::size_t at = 0; at < text.size(); at += kPartBytesMax) {
    parts.push_back(encode_part({.kind = Kind::kPart,
                                 .id = id,
                                 .total = total,
                                 .offset = static_cast<std::uint32_t>(at),
                                 .bytes = std::string_view(text).substr(at, kPartBytesMax)}));
  }
  parts.push_back(encode_part({.kind = Kind::kWhole, .id = id, .total = total}));
  return parts;
}

struct Peers {
  AssemblyBudget budget;
  Assembler one{&budget};

  /// What all of it delivered, and how often something was said to be lost.
  std::vector<std::string> texts;
  int lost = 0;
  void take(const std::string& part) {
    Assembler::Taken taken = one.take(part);
    if (taken.text) texts.push_back(std::move(*taken.text));
    lost += taken.lost.ok() ? 0 : 1;
    EXPECT_TRUE(taken.lost.ok() || taken.lost.code() == Code::kCorrupt);
  }
  void take_all(const std::vector<std::string>& parts) {
    for (const std::string& part : parts) take(part);
  }
  void expect_clean() const {
    EXPECT_TRUE(one.empty());
    EXPECT_EQ(one.bytes(), 0u);
    EXPECT_EQ(budget.used, 0u);
  }
};

TEST(NotificationParts, GoThereAndBack) {
  for (const std::size_t size : {kPlainMax + 1, kMessageMax, kMessageMax + 1, std::size_t{1} << 20, kNotificationMax}) {
    Peers peers;
    const std::string text = body_of(size, size);
    const std::vector<std::string> parts = parts_of(1, text);
    EXPECT_EQ(parts.size(), 1 + (size + kPartBytesMax - 1) / kPartBytesMax);
    for (const std::string& part : parts) EXPECT_LE(part.size(), kMessageMax);
    peers.take_all(parts);
    EXPECT_EQ(peers.lost, 0);
    ASSERT_EQ(peers.texts.size(), 1u);
    EXPECT_TRUE(peers.texts[0] == text) << size;
    peers.expect_clean();
  }
}

TEST(NotificationParts, WhatLooksLikeThemIsEscaped) {
  Peers peers;
  const std::string magic(kPartMagic);
  EXPECT_FALSE(is_marked(magic.substr(0, 7)));
  EXPECT_TRUE(is_marked(magic));
  for (const std::string& text : {magic, magic + std::string(1, '\1') + "what?", magic + body_of(1, kPlainMax - 8)}) {
    ASSERT_TRUE(goes_in_one(text));
    peers.take(encode_part({.bytes = text}));
    ASSERT_FALSE(peers.texts.empty());
    EXPECT_TRUE(peers.texts.back() == text);
  }
  EXPECT_EQ(peers.texts.size(), 3u);
  EXPECT_FALSE(goes_in_one(magic + body_of(1, kPlainMax - 7)));
  EXPECT_TRUE(goes_in_one(body_of(1, kMessageMax)));
  EXPECT_FALSE(goes_in_one(body_of(1, kMessageMax + 1)));
  EXPECT_EQ(peers.lost, 0);
}

TEST(NotificationParts, TwoMayBeInterleaved) {
  Peers peers;
  const std::string first = body_of(1, 300'000), second = body_of(2, 200'000);
  const std::vector<std::string> ones = parts_of(1, first), twos = parts_of(2, second);
  for (std::size_t i = 0; i < ones.size(); ++i) {
    if (i + 1 < ones.size()) peers.take(ones[i]);
    if (i < twos.size()) peers.take(twos[i]);
  }
  EXPECT_EQ(peers.texts, std::vector<std::string>{second});
  peers.take(ones.back());
  EXPECT_EQ(peers.texts, (std::vector<std::string>{second, first}));
  EXPECT_EQ(peers.lost, 0);
  peers.expect_clean();
}

TEST(NotificationParts, WhatIsMissingTwiceOrMisplacedLosesThatOneOnly) {
  const std::string text = body_of(1, 250'000), good = body_of(2, 100'000);
  const std::vector<std::string> parts = parts_of(1, text);  // Four, and the word.
  ASSERT_EQ(parts.size(), 5u);
  using Order = std::vector<std::size_t>;
  for (const Order& order : {Order{1, 2, 3, 4}, Order{0, 2, 3, 4}, Order{0, 1, 2, 4}, Order{0, 0, 1, 2, 3, 4},
                             Order{0, 1, 1, 2, 3, 4}, Order{0, 2, 1, 3, 4}, Order{3, 2, 1, 0, 4}, Order{4}}) {
    Peers peers;
    for (const std::size_t at : order) peers.take(parts[at]);
    EXPECT_TRUE(peers.texts.empty());
    EXPECT_GE(peers.lost, 1);
    EXPECT_LE(peers.lost, 2) << "one loss is told again and again";
    peers.expect_clean();
    peers.take_all(parts_of(2, good));
    EXPECT_EQ(peers.texts, std::vector<std::string>{good});
    peers.expect_clean();
  }
  Peers peers;
  peers.take_all(parts);
  peers.take(parts.back());
  EXPECT_EQ(peers.texts.size(), 1u) << "delivered twice";
  EXPECT_EQ(peers.lost, 1);
}

TEST(NotificationParts, AWordThatTellsAnotherLengthLosesIt) {
  for (const std::uint32_t total : {199'999u, 200'001u}) {
    for (const bool in_whole : {true, false}) {
      Peers peers;
      std::vector<std::string> parts = parts_of(1, body_of(1, 200'000));
      const std::size_t changed = in_whole ? parts.size() - 1 : 1;
      NotificationPart part = decode_part(parts[changed]).value();
      const std::string bytes(part.bytes);
      part.bytes = bytes;
      part.total = total;
      parts[changed] = encode_part(part);
      peers.take_all(parts);
      EXPECT_TRUE(peers.texts.empty());
      EXPECT_GE(peers.lost, 1);
      peers.expect_clean();
    }
  }
}

TEST(NotificationParts, ADroppedOneGivesItsPlaceBack) {
  Peers peers;
  const std::vector<std::string> parts = parts_of(7, body_of(7, 200'000));
  const std::string drop = encode_part({.kind = Kind::kDrop, .id = 7});
  peers.take(drop);  // It was never begun here.
  peers.take(parts[0]);
  EXPECT_EQ(peers.budget.used, 200'000u);
  peers.take(drop);
  peers.expect_clean();
  EXPECT_EQ(peers.lost, 0);
  peers.take(parts[1]);
  EXPECT_EQ(peers.lost, 1) << "the rest of what was dropped";
  peers.take(parts[2]);
  EXPECT_EQ(peers.lost, 1);
}

TEST(NotificationParts, AreBoundedByPeerAndInAll) {
  Peers peers;
  Assembler other(&peers.budget);
  peers.budget.max = Assembler::kBytesMax + kNotificationMax;
  const std::string text = body_of(1, kNotificationMax);
  std::uint64_t id = 1;
  for (; id <= Assembler::kBytesMax / kNotificationMax; ++id) peers.take(parts_of(id, text)[0]);
  EXPECT_EQ(peers.lost, 0);
  peers.take(parts_of(id, text)[0]);
  EXPECT_EQ(peers.lost, 1) << "beyond the bound of one peer";
  EXPECT_EQ(peers.one.bytes(), Assembler::kBytesMax);
  EXPECT_TRUE(other.take(parts_of(1, text)[0]).lost.ok());
  const Status refused = other.take(parts_of(2, text)[0]).lost;
  EXPECT_EQ(refused.code(), Code::kCorrupt) << "beyond the bound of all";
  EXPECT_NE(refused.to_string().find("all peers"), std::string::npos) << refused.to_string();
  EXPECT_EQ(peers.budget.used, peers.budget.max);
  // Room that one gives back serves the next.
  peers.take(encode_part({.kind = Kind::kDrop, .id = 1}));
  EXPECT_EQ(peers.budget.used, Assembler::kBytesMax);
  EXPECT_TRUE(other.take(parts_of(3, text)[0]).lost.ok());
  // Nor is the number of those that are to be ignored without bound.
  for (id = 100; id < 5000; ++id) {
    peers.take(encode_part({.kind = Kind::kPart, .id = id, .total = 100'000, .offset = 5, .bytes = "x"}));
  }
  EXPECT_LE(peers.one.bodies(), Assembler::kBodiesMax);
}

TEST(NotificationParts, WhatGoesWithItsPeerGivesItsPlaceBack) {
  AssemblyBudget budget;
  {
    Assembler peer(&budget);
    EXPECT_TRUE(peer.take(parts_of(1, body_of(1, 100'000))[0]).lost.ok());
    EXPECT_EQ(budget.used, 100'000u);
  }
  EXPECT_EQ(budget.used, 0u);
  Assembler successor(&budget);  // It counts from 1 again.
  EXPECT_FALSE(successor.take(parts_of(1, body_of(1, 100'000))[1]).lost.ok());
}

TEST(NotificationParts, MalformedOnesAreToldApart) {
  const std::string part = parts_of(1, body_of(1, 100'000))[0], whole = parts_of(1, body_of(1, 100'000)).back();
  const auto is_bad = [](const std::string& text) { return decode_part(text).status().code() == Code::kCorrupt; };
  for (std::size_t cut = 0; cut <= kPartHead; ++cut) EXPECT_TRUE(is_bad(part.substr(0, cut))) << cut;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_TRUE(is_bad(whole.substr(0, cut))) << cut;
  EXPECT_TRUE(is_bad(whole + "x"));
  EXPECT_TRUE(is_bad(encode_part({.kind = Kind::kDrop, .id = 1}) + "x"));
  EXPECT_TRUE(is_bad(std::string(kPartMagic) + '\4'));
  EXPECT_TRUE(is_bad(encode_part({.bytes = "no magic inside"})));
  const NotificationPart good{.kind = Kind::kPart, .id = 1, .total = 100'000, .offset = 0, .bytes = "x"};
  EXPECT_FALSE(is_bad(encode_part(good)));
  for (const auto& change : std::initializer_list<void (*)(NotificationPart&)>{
           [](NotificationPart& it) { it.id = 0; },
           [](NotificationPart& it) { it.total = kPlainMax; },
           [](NotificationPart& it) { it.total = kNotificationMax + 1; },
           [](NotificationPart& it) { it.total = UINT32_MAX; },
           [](NotificationPart& it) { it.offset = 100'000; },
           [](NotificationPart& it) { it.offset = UINT32_MAX; },
           [](NotificationPart& it) { it.bytes = {}; },
       }) {
    NotificationPart bad = good;
    change(bad);
    EXPECT_TRUE(is_bad(encode_part(bad)));
  }
}

TEST(NotificationParts, InAnyOrderNeitherBytesAreMixedNorBooksWrong) {
  base::Rng rng(11);
  for (int round = 0; round < 30; ++round) {
    Peers peers;
    constexpr std::size_t kBodies = 5;
    std::vector<std::string> texts;
    std::vector<std::vector<std::string>> all;
    for (std::uint64_t id = 1; id <= kBodies; ++id) {
      texts.push_back(body_of(id, kPlainMax + 1 + rng.below(150'000)));
      all.push_back(parts_of(id, texts.back()));
    }
    std::vector<std::size_t> next(kBodies, 0);
    for (int step = 0; step < 60; ++step) {
      const std::size_t which = rng.below(kBodies);
      if (rng.chance(0.05)) next[which] = rng.below(all[which].size());
      peers.take(all[which][next[which]]);
      next[which] = (next[which] + 1) % all[which].size();
    }
    for (const std::string& text : peers.texts) {
      EXPECT_TRUE(std::find(texts.begin(), texts.end(), text) != texts.end()) << "nobody sent this";
    }
    for (std::uint64_t id = 1; id <= kBodies; ++id) peers.take(encode_part({.kind = Kind::kDrop, .id = id}));
    peers.expect_clean();
  }
}

}  // namespace
}  // namespace hawser::compat
