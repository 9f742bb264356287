#include "compat/incoming_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hawser::compat {
namespace {

using PartKind = NotificationPart::Kind;

struct IncomingPartsTest : ::testing::Test {
  /// A peer of that name; each has a key of its own.
  IncomingParts::Sender sender(std::size_t place) {
    return {.key = &is_gone[place], .name = std::to_string(place), .is_gone = [this, place] { return is_gone[place]; }};
  }
  void take(std::size_t place, const NotificationPart& part) { incoming.take(sender(place), encode_part(part), into); }
  void take_part(std::size_t place, std::uint64_t id, std::string_view body) {
    take(place, {.kind = PartKind::kPart, .id = id, .total = static_cast<std::uint32_t>(body.size()), .bytes = body});
  }
  void take_whole(std::size_t place, std::uint64_t id, std::size_t size) {
    take(place, {.kind = PartKind::kWhole, .id = id, .total = static_cast<std::uint32_t>(size)});
  }
  std::size_t count(std::string_view what) const {
    std::size_t found = 0;
    for (const std::string& line : lines) found += line.find(what) != std::string::npos;
    return found;
  }

  const std::string text = std::string(kPlainMax + 1, 'x');
  bool is_gone[2] = {};
  std::vector<std::string> lines;
  base::Logger log{LogOptions{.level = LogLevel::kWarn,
                              .sink = [this](LogLevel, std::string_view line) { lines.emplace_back(line); }}};
  IncomingParts incoming{log};
  NotificationMap into;
};

TEST_F(IncomingPartsTest, BodiesOfSeveralPeersArePutTogether) {
  take_part(0, 1, text);
  take_part(1, 1, text + "y");
  EXPECT_TRUE(into.empty());
  EXPECT_FALSE(incoming.empty());
  take_whole(1, 1, text.size() + 1);
  take_whole(0, 1, text.size());
  EXPECT_EQ(into["0"], std::vector<std::string>{text});
  EXPECT_EQ(into["1"], std::vector<std::string>{text + "y"});
  EXPECT_TRUE(incoming.empty()) << "nothing is known of peers of which nothing waits";
  EXPECT_TRUE(lines.empty());
}

TEST_F(IncomingPartsTest, WhatBeginsAsPartsDoIsDeliveredAsItIs) {
  const std::string plain = std::string(kPartMagic) + "not a part";
  take(0, {.bytes = plain});
  EXPECT_EQ(into["0"], std::vector<std::string>{plain});
  EXPECT_TRUE(incoming.empty());
}

TEST_F(IncomingPartsTest, WhatAPeerLeavesUnfinishedIsDroppedOnceItIsGone) {
  take_part(0, 1, text);
  take_part(1, 1, text);
  EXPECT_TRUE(incoming.gone().empty());
  is_gone[0] = true;
  const std::vector<const void*> gone = incoming.gone();
  EXPECT_EQ(gone, std::vector<const void*>{&is_gone[0]});
  incoming.forget(gone);
  EXPECT_EQ(count("agent '0' is gone: what came of 1 long notifications is dropped"), 1u);
  take_whole(1, 1, text.size());
  EXPECT_EQ(into["1"].size(), 1u);
}

TEST_F(IncomingPartsTest, WhatAPeerFinishedBeforeItWentIsDelivered) {
  take_part(0, 1, text);
  is_gone[0] = true;
  const std::vector<const void*> gone = incoming.gone();
  take_whole(0, 1, text.size());
  incoming.forget(gone);
  EXPECT_EQ(into["0"].size(), 1u);
  EXPECT_TRUE(lines.empty());
}

TEST_F(IncomingPartsTest, WhatIsDroppedIsTold) {
  take_whole(0, 7, 10);
  EXPECT_TRUE(into.empty());
  EXPECT_EQ(count("get_notifs: from agent '0'"), 1u);
  EXPECT_TRUE(incoming.empty());
}

}  // namespace
}  // namespace hawser::compat
