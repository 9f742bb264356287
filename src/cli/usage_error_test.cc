#include "cli/usage_error.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

class UsageErrorTest : public testing::Test {
 protected:
  UsageErrorTest() {
    CLI::App* serve = app_.add_subcommand("serve", "");
    serve->add_option("--listen", listen_, "");
    serve->add_option("-n,--number", number_, "");
    serve->add_option("--folder", listen_, "")->required();
    CLI::App* ping = app_.add_subcommand("ping", "");
    ping->add_subcommand("far", "")->add_option("--rounds", number_, "");
    app_.require_subcommand(1);
  }
  UsageError explain(std::vector<std::string> words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
      app_.parse(reversed);
    } catch (const CLI::ParseError& error) {
      return explain_usage(app_, words, error);
    }
    ADD_FAILURE() << "that was right";
    return {};
  }

  CLI::App app_{"", "hawser"};
  std::string listen_;
  int number_ = 0;
};

TEST_F(UsageErrorTest, NamesTheWordAndWhatIsNear) {
  EXPECT_EQ(explain({"srve"}).text,
            "there is no command 'srve'. Did you mean 'serve'? `hawser --help` lists the commands.");
  EXPECT_EQ(explain({}).text, "a command is needed: one of serve, ping. `hawser --help` lists the commands.");
  EXPECT_EQ(explain({"--wrong"}).text, "there is no option '--wrong'. `hawser --help` lists the commands.");
  const UsageError option = explain({"serve", "--lisen", "x"});
  EXPECT_EQ(option.command, "serve");
  EXPECT_EQ(option.text,
            "there is no option '--lisen'. Did you mean '--listen'? `hawser serve --help` shows what it takes.");
  EXPECT_EQ(explain({"serve", "--lisen=x"}).text, option.text);
  EXPECT_NE(explain({"serve", "-x"}).text.find("there is no option '-x'."), std::string::npos);
}

TEST_F(UsageErrorTest, ACommandBelowAnotherIsNamedByBoth) {
  const UsageError option = explain({"ping", "far", "--round", "3"});
  EXPECT_EQ(option.command, "ping far");
  EXPECT_EQ(option.text,
            "there is no option '--round'. Did you mean '--rounds'? `hawser ping far --help` shows what it takes.");
  EXPECT_NE(explain({"ping", "far", "--rounds", "x"}).text.find("`hawser ping far --help`"), std::string::npos);
  EXPECT_EQ(explain({"ping", "--rounds", "x"}).command, "ping");
}

TEST_F(UsageErrorTest, OtherMistakesAreToldInTheParsersWords) {
  EXPECT_NE(explain({"serve", "-n7"}).text.find("--folder is required. `hawser serve --help`"), std::string::npos);
  EXPECT_NE(explain({"serve", "--folder", "a", "--number", "x\x1b[2J"}).text.find("x\\x1b[2J"), std::string::npos);
  EXPECT_EQ(explain({"serve", "--folder", "a", "b"}).command, "serve");
}

}  // namespace
}  // namespace hawser::cli
