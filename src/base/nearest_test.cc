#include "base/nearest.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

TEST(Nearest, TakesWhatWasProbablyMeant) {
  const std::vector<std::string> commands{"serve", "ping", "topo", "top", "cp", "doctor"};
  EXPECT_EQ(nearest("sevre", commands), "serve");
  EXPECT_EQ(nearest("doct", commands), "doctor");
  EXPECT_EQ(nearest("docter", commands), "doctor");
  EXPECT_EQ(nearest("pnig", commands), "ping");
  EXPECT_EQ(nearest("tpo", commands), "topo");
  EXPECT_EQ(nearest("", commands), "");
  EXPECT_EQ(nearest("entirely-else", commands), "");
  EXPECT_EQ(nearest("xyz", commands), "");
  EXPECT_EQ(nearest(std::string(65, 's'), {std::string(65, 's')}), "");
  EXPECT_EQ(nearest(std::string(64, 's'), {std::string(64, 's')}), std::string(64, 's'));
}

TEST(Nearest, ANameBelowAnotherIsMeantByItself) {
  const std::vector<std::string> options{"deadline", "listen", "limits.peers"};
  EXPECT_EQ(nearest("tcp.listen", options), "listen");
  EXPECT_EQ(nearest("peers", options), "limits.peers");
  EXPECT_EQ(nearest("en", options), "");
}

TEST(Nearest, IsSaidAsAQuestion) {
  EXPECT_EQ(did_you_mean("deadlin", {"deadline"}), " Did you mean 'deadline'?");
  EXPECT_EQ(did_you_mean("x", {"deadline"}), "");
}

}  // namespace
}  // namespace hawser::base
