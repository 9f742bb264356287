#include "cli/host_list.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

using Hosts = std::vector<RankHost>;
using Places = std::vector<std::size_t>;

TEST(HostList, NamesStandWithCommasBetweenThem) {
  EXPECT_EQ(parse_hosts("a").value(), (Hosts{{"a", 0}}));
  EXPECT_EQ(parse_hosts("a, b:4,10.0.0.1:2,fe80::1").value(),
            (Hosts{{"a", 0}, {"b", 4}, {"10.0.0.1", 2}, {"fe80::1", 0}}));
  EXPECT_EQ(parse_hosts("a:1024").value()[0].slots, 1024u);
  for (const char* wrong :
       {"", "a,", ",a", "a:", "a:0", "a:1025", "a:x", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a'b"}) {
    EXPECT_EQ(parse_hosts(wrong).error().code(), Code::kInvalid) << wrong;
  }
}

TEST(HostList, AFileHasALineForEach) {
  EXPECT_EQ(parse_host_file("# those that we have\n\na  slots=4  # fast\nb:2\n c \n").value(),
            (Hosts{{"a", 4}, {"b", 2}, {"c", 0}}));
  for (const char* wrong : {"", "# none\n", "a slots=\n", "a max=4\n", "a slots=0"}) {
    EXPECT_EQ(parse_host_file(wrong).error().code(), Code::kInvalid) << wrong;
  }
}

TEST(HostList, RanksAreSharedEvenlyAndInOrder) {
  EXPECT_EQ(share_ranks({{"a", 0}, {"b", 0}}, 4).value(), (Places{0, 0, 1, 1}));
  EXPECT_EQ(share_ranks({{"a", 0}, {"b", 0}}, 5).value(), (Places{0, 0, 0, 1, 1}));
  EXPECT_EQ(share_ranks({{"a", 0}, {"b", 0}, {"c", 0}}, 2).value(), (Places{0, 1}));
  EXPECT_EQ(share_ranks({{"a", 1}, {"b", 0}, {"c", 0}}, 5).value(), (Places{0, 1, 1, 2, 2}));
  EXPECT_EQ(share_ranks({{"a", 3}, {"b", 3}}, 4).value(), (Places{0, 0, 0, 1}));
  EXPECT_EQ(share_ranks({{"a", 3}, {"b", 3}}, 6).value().size(), 6u);
  EXPECT_EQ(share_ranks({{"a", 3}, {"b", 3}}, 7).error().code(), Code::kInvalid);
}

TEST(HostList, WithoutANumberEachSlotIsARank) {
  EXPECT_EQ(all_slots({{"a", 4}, {"b", 1}}, 5).value(), 5u);
  EXPECT_EQ(all_slots({{"a", 4}, {"b", 2}}, 5).error().code(), Code::kInvalid);
  EXPECT_EQ(all_slots({{"a", 4}, {"b", 0}}, 5).error().code(), Code::kInvalid)
      << "b takes its share of a number that is not said";
  EXPECT_EQ(all_slots({}, 5).error().code(), Code::kInvalid);
  constexpr std::uint32_t kAll = ~0u;
  EXPECT_EQ(all_slots({{"a", kAll}, {"b", 2}}, kAll).error().code(), Code::kInvalid) << "the sum does not wrap";
}

}  // namespace
}  // namespace hawser::cli
