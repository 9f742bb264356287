#include "backend/shm/parts_sent.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace hawser::backend::shm {
namespace {

std::vector<std::string> behind(const PartsSent& parts, std::uint64_t read) {
  std::vector<std::string> all;
  parts.each_behind(read, [&](std::span<const std::byte> begin) { all.emplace_back(base::as_text(begin)); });
  return all;
}

void begin(PartsSent& parts, std::string_view head, std::string_view body, std::uint64_t read,
           std::uint64_t position = 0) {
  parts.begin(base::as_bytes(head), base::as_bytes(body), position, read);
}

TEST(PartsSent, AMessageIsShownUntilItsEndWasRead) {
  PartsSent parts;
  begin(parts, "he", "ad", 0);
  EXPECT_EQ(behind(parts, 1'000), std::vector<std::string>{"head"}) << "it is not all in the ring";
  parts.finish(300);
  EXPECT_EQ(behind(parts, 299), std::vector<std::string>{"head"});
  EXPECT_TRUE(behind(parts, 300).empty());
}

TEST(PartsSent, OfALongMessageItKeepsTheFirstLine) {
  PartsSent parts;
  begin(parts, std::string(kLinePayload - 1, 'h'), "body", 0);
  begin(parts, "", std::string(kLinePayload + 1, 'b'), 0);
  EXPECT_EQ(behind(parts, 0),
            (std::vector<std::string>{std::string(kLinePayload - 1, 'h') + "b", std::string(kLinePayload, 'b')}));
}

TEST(PartsSent, KnowsWhereMessagesBegin) {
  PartsSent parts;
  EXPECT_FALSE(parts.begins_at(0));
  begin(parts, "first", "", 0, 100);
  parts.finish(300);
  begin(parts, "second", "", 300, 400);
  EXPECT_FALSE(parts.begins_at(100)) << "it was read, and is forgotten";
  EXPECT_TRUE(parts.begins_at(400));
  EXPECT_FALSE(parts.begins_at(300));
}

// A producer writes only where it knows that the peer has read: at most a ring's lines lie between the two.
TEST(PartsSent, MoreThanTheRingHoldsAreNotKept) {
  constexpr std::uint64_t kLines = 1024, kEach = 256;
  PartsSent parts;
  for (std::uint64_t at = 0; at < 100 * kLines; at += kEach) {
    begin(parts, "message", "", at < kLines - kEach ? 0 : at - (kLines - kEach));
    parts.finish(at + kEach);
    EXPECT_LE(parts.size(), kLines / kEach);
  }
  EXPECT_EQ(parts.size(), kLines / kEach);
}

}  // namespace
}  // namespace hawser::backend::shm
