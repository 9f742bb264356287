#include "agent/life.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace hawser::agent {
namespace {

TEST(Life, BeginsOpenThenClosesThenIsClosed) {
  Life life("a");
  EXPECT_TRUE(life.usable("call").ok());
  EXPECT_FALSE(life.is_closing());
  life.begin_to_close();
  EXPECT_TRUE(life.is_closing());
  EXPECT_FALSE(life.is_closed());
  EXPECT_EQ(life.usable("call").code(), Code::kInvalid);
  EXPECT_NE(life.usable("call").to_string().find("call: agent 'a' is closed"), std::string::npos);
  EXPECT_TRUE(life.not_forked("call").ok()) << "what only reads works on a closed agent, too";
  life.end();
  EXPECT_TRUE(life.is_closed());
}

TEST(Life, OneThatEndsWithoutHavingBegunToCloseIsClosing) {
  Life life("a");
  life.end();
  EXPECT_TRUE(life.is_closing());
  EXPECT_FALSE(life.usable("call").ok());
}

TEST(Life, RefusesCallsOfAnInlineHandlerByName) {
  Life life("a");
  life.user_code().begin();
  for (const Status& refused : {life.usable("call"), life.not_inline("call")}) {
    EXPECT_EQ(refused.code(), Code::kInvalid);
    EXPECT_NE(refused.to_string().find("call: an inline handler must not call it"), std::string::npos);
    EXPECT_NE(refused.to_string().find("agent 'a'"), std::string::npos);
  }
  EXPECT_TRUE(life.not_forked("call").ok()) << "what only reads works there, too";
  life.user_code().end();
  EXPECT_TRUE(life.usable("call").ok());
}

TEST(Life, BelongsToTheProcessThatMadeIt) {
  const Life life("a");
  const std::string opener = std::to_string(::getpid());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Status refused = life.usable("call");
    const bool is_named = refused.to_string().find(opener) != std::string::npos;
    const bool is_right = life.disowned() && refused.code() == Code::kInvalid && is_named;
    ::_exit(is_right && Life("b").usable("call").ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(life.disowned());
}

}  // namespace
}  // namespace hawser::agent
