#include "runtime/pieces.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace hawser::runtime {
namespace {

TEST(Pieces, RunsAreWhatLiesTogether) {
  const std::string a = "abc", b = "d", c = "efgh";
  Pieces pieces;
  EXPECT_EQ(pieces.bytes(), 0U);
  EXPECT_TRUE(pieces.run(0).empty());
  for (const std::string_view part :
       {std::string_view(a), std::string_view(), std::string_view(b), std::string_view(c)}) {
    pieces.add(base::as_bytes(part));
  }
  EXPECT_EQ(pieces.count(), 3U);
  EXPECT_EQ(pieces.bytes(), 8U);
  const std::vector<std::string> runs = {"abc", "bc", "c", "d", "efgh", "fgh", "gh", "h", ""};
  for (std::size_t at = 0; at < runs.size(); ++at) EXPECT_EQ(base::as_text(pieces.run(at)), runs[at]) << at;
}

TEST(Pieces, AnyPartIsGathered) {
  const std::string a = "abc", b = "d", c = "efgh";
  Pieces pieces;
  for (const std::string* const part : {&a, &b, &c}) pieces.add(base::as_bytes(*part));
  const std::string all = a + b + c;
  for (std::size_t at = 0; at <= all.size(); ++at) {
    for (std::size_t size = 0; at + size <= all.size(); ++size) {
      std::string got(size, ' ');
      pieces.gather(at, std::as_writable_bytes(std::span(got)));
      EXPECT_EQ(got, all.substr(at, size));
    }
  }
}

}  // namespace
}  // namespace hawser::runtime
