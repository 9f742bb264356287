#include "cli/live.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/test_folder.h"
#include "base/user_socket.h"

namespace hawser::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const std::string kId(32, 'a'), kOther(32, 'b');

class LiveTest : public testing::Test {
 protected:
  /// Answers the next caller so, and hangs up.
  static void answer(const base::UserSocket& socket, std::string_view text) {
    std::optional<base::UserSocket::Caller> caller;
    while (!caller) caller = std::move(socket.accept().value());
    std::array<char, 256> request;
    while (::recv(caller->socket.get(), request.data(), request.size(), 0) < 0) continue;
    ASSERT_EQ(::send(caller->socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  AgentLook page(const std::string& incarnation, const std::string& socket) const {
    const json status = {{"schema", "hawser.status/1"},
                         {"agent", "a"},
                         {"incarnation", incarnation},
                         {"socket", socket},
                         {"at_ns", 1'000'000'000}};
    return agent_look(folder_.path("page.status"), {.process = 77, .is_alive = true, .text = status.dump()});
  }

  base::TestFolder folder_;
};

TEST_F(LiveTest, AnAnswerToDescribeIsReadLineByLine) {
  const Described all = parse_described(R"({"schema":"hawser.describe/1","process":7,"agents":2})"
                                        "\n"
                                        R"({"agent":{"schema":"hawser.status/1","agent":"a","incarnation":")" +
                                        kId +
                                        "\"}}\n"
                                        R"({"peer":{"peer":"p"}})"
                                        "\nnonsense\n[1]\n"
                                        R"({"waiting":{"who":"transfers"}})"
                                        "\n"
                                        R"({"busy":{"agent":"b","incarnation":")" +
                                        kOther +
                                        "\"}}\n"
                                        R"({"end":true})"
                                        "\n");
  ASSERT_EQ(all.agents.size(), 1u);
  EXPECT_EQ(all.agents.at(kId)["peers"][0]["peer"], "p");
  EXPECT_EQ(all.agents.at(kId)["waiting"][0]["who"], "transfers");
  EXPECT_EQ(all.busy.at(kOther), "b");
  EXPECT_TRUE(all.is_whole);
  EXPECT_FALSE(parse_described("{\"agent\":{}}\n{\"end\":true}").is_whole) << "its last line is cut";
  EXPECT_TRUE(parse_described("{\"peer\":{}}\n{\"waiting\":1}\n{\"agent\":3}\n{\"busy\":4}\n").agents.empty());
}

TEST_F(LiveTest, AnAgentThatAnswersIsLive) {
  const auto socket = base::UserSocket::listen(folder_.path(), "s", ".ask", 4).value();
  std::thread process([&] {
    answer(socket, R"({"agent":{"schema":"hawser.status/1","agent":"a","at_ns":5,"incarnation":")" + kId +
                       "\"}}\n{\"end\":true}\n");
  });
  const Look look = ask_live({page(kId, "s.ask")});
  process.join();
  EXPECT_TRUE(look[0].is_live) << look[0].not_live;
  EXPECT_EQ(look[0].status["at_ns"], 5);
  EXPECT_EQ(not_live_text(look, Instant::from_ns(9)), "");
  EXPECT_EQ(top_rows(look, {}, Instant::from_ns(9))[0]["live"], true);
}

TEST_F(LiveTest, OneThatDoesNotAnswerKeepsItsPageAndSaysHowOldThatIs) {
  const auto socket = base::UserSocket::listen(folder_.path(), "s", ".ask", 4).value();
  const Instant before = Clock::steady().now();
  const Look look = ask_live({page(kId, "s.ask")});
  const Duration took = Clock::steady().now() - before;
  EXPECT_GE(took, kLivePatience);
  EXPECT_LT(took, 4 * kLivePatience);
  EXPECT_FALSE(look[0].is_live);
  EXPECT_EQ(look[0].status["agent"], "a");
  const std::string told = not_live_text(look, Instant::from_ns(4'000'000'000));
  EXPECT_NE(told.find("did not answer within 1.00 s. Shown is its page, 3.00 s old"), std::string::npos) << told;
  EXPECT_EQ(top_rows(look, {}, Instant::from_ns(9))[0]["live"], false);
}

TEST_F(LiveTest, EachReasonIsNamed) {
  const auto why = [&](const std::string& text) {
    const auto socket = base::UserSocket::listen(folder_.path(), "s", ".ask", 4).value();
    std::thread process([&] { answer(socket, text); });
    const Look look = ask_live({page(kId, "s.ask")});
    process.join();
    return look[0].not_live;
  };
  EXPECT_NE(
      why("{\"busy\":{\"agent\":\"a\",\"incarnation\":\"" + kId + "\"}}\n{\"end\":true}\n").find("held the agent"),
      std::string::npos);
  EXPECT_NE(why("{\"agent\":{\"incarnation\":\"" + kId + "\"}}\n").find("before its end"), std::string::npos);
  EXPECT_NE(why("{\"end\":true}\n").find("no such agent any more"), std::string::npos);
  EXPECT_NE(ask_live({page(kId, "none.ask")})[0].not_live.find("not found"), std::string::npos);
  EXPECT_NE(ask_live({page(kId, "")})[0].not_live.find("HAWSER_STATUS_SOCKET"), std::string::npos);
  EXPECT_NE(ask_live({page(kId, "../elsewhere.ask")})[0].not_live.find("no status socket"), std::string::npos)
      << "a page cannot send its reader elsewhere";
}

TEST_F(LiveTest, ManyAgentsOfOneProcessAreOneQuestion) {
  const auto socket = base::UserSocket::listen(folder_.path(), "s", ".ask", 4).value();
  Look pages;
  std::string text;
  for (char digit = '0'; digit < '9'; ++digit) {
    const std::string id(32, digit);
    pages.push_back(page(id, "s.ask"));
    text += "{\"agent\":{\"incarnation\":\"" + id + "\"}}\n";
  }
  std::thread process([&] { answer(socket, text + "{\"end\":true}\n"); });
  const Look look = ask_live(pages);
  process.join();
  for (const AgentLook& each : look) EXPECT_TRUE(each.is_live) << each.not_live;
}

}  // namespace
}  // namespace hawser::cli
