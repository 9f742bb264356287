#include "cli/token_share.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

namespace hawser::cli {
namespace {

TEST(TokenShare, IsReadByItsPathAsOftenAsAnybodyWants) {
  const identity::TokenText token = identity::TokenText::make();
  Result<TokenShare> made = TokenShare::make(token);
  ASSERT_TRUE(made.has_value()) << made.error().to_string();
  const TokenShare share = std::move(*made);  // The path stays.
  for (int i = 0; i < 2; ++i) {
    const auto read = identity::TokenText::read(share.path());
    ASSERT_TRUE(read.has_value()) << read.error().to_string();
    EXPECT_EQ(read->text(), token.text());
  }
  EXPECT_EQ(share.path().find(token.text()), std::string::npos);
}

TEST(TokenShare, IsReadByAnotherProcessWhichDoesNotInheritIt) {
  const identity::TokenText token = identity::TokenText::make();
  const TokenShare share = TokenShare::make(token).value();
  const std::string there = "test \"$(cat " + share.path() + ")\" = '" + token.text() + "'";
  EXPECT_EQ(std::system(there.c_str()), 0);
  const std::string number = share.path().substr(share.path().rfind('/') + 1);
  EXPECT_NE(std::system(("test -e /proc/$$/fd/" + number).c_str()), 0);
}

TEST(TokenShare, IsThisUsersAloneAndNobodyChangesIt) {
  const TokenShare share = TokenShare::make(identity::TokenText::make()).value();
  struct stat facts = {};
  ASSERT_EQ(::stat(share.path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  std::fstream file(share.path(), std::ios::in | std::ios::out);
  file << "another" << std::flush;
  EXPECT_TRUE(file.fail());
}

TEST(TokenShare, EndsWithItsObject) {
  std::optional<TokenShare> share = TokenShare::make(identity::TokenText::make()).value();
  const std::string path = share->path();
  share.reset();
  EXPECT_EQ(identity::TokenText::read(path).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hawser::cli
