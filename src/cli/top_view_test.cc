#include "cli/top_view.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kSecond = 1'000'000'000;

json status(const std::string& name, std::int64_t at_ns, std::uint64_t written) {
  return {
      {"schema", "hawser.status/1"},
      {"agent", name},
      {"is_driven", true},
      {"at_ns", at_ns},
      {"sessions", 2u},
      {"in_flight", 3u},
      {"bytes_written", written},
      {"bytes_read", 0u},
      {"transfers", 41u},
      {"errors", 0u},
      {"peers",
       {{{"peer", "decode"},
         {"state", "up"},
         {"p50_ns", 12'000u},
         {"p99_ns", 34'000u},
         {"paths",
          {{{"backend", "shm"}, {"state", "up"}, {"bytes_out", written}, {"bytes_in", 0u}, {"errors", 5u}}}}}}},
      {"waiting",
       {{{"who", "transfers"}, {"what", "the end"}, {"peer", "decode"}, {"count", 3u}, {"since_ns", at_ns - kSecond}}}},
      {"waiting_in_all", 4u}};
}

AgentLook look(const json& text, bool is_alive = true, bool is_asleep = false, std::int64_t worked_ns = 0) {
  return agent_look("/run/one.status", {.process = 77,
                                        .is_alive = is_alive,
                                        .is_asleep = is_asleep,
                                        .worked_at = Instant::from_ns(worked_ns),
                                        .text = text.dump()});
}

TEST(TopView, RatesComeFromTwoLooks) {
  const Look before{look(status("prefill", 10 * kSecond, 1 << 20))};
  const Look now{look(status("prefill", 12 * kSecond, 3 << 20), true, false, 12 * kSecond)};
  const std::string text = top_text(now, before, Instant::from_ns(12 * kSecond));
  EXPECT_NE(text.find("prefill"), std::string::npos) << text;
  EXPECT_NE(text.find("1 MiB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("12.0"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting: transfers: the end (3) of decode, for 1.00 s"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting: 3 more"), std::string::npos) << text;
  EXPECT_NE(text.find("and 1 peers more"), std::string::npos) << text;
  const auto rows = top_rows(now, before, Instant::from_ns(13 * kSecond));
  EXPECT_EQ(rows[0]["bytes_written_per_s"], 1 << 20);
  EXPECT_EQ(rows[0]["last_turn_ns_ago"], kSecond);
  // An agent that is at work and has nothing to tell keeps its text. One that is stuck keeps it, too.
  const Look quiet{look(status("prefill", 10 * kSecond, 1 << 20), true, false, 12 * kSecond)};
  EXPECT_EQ(top_rows(quiet, before, Instant::from_ns(12 * kSecond))[0]["bytes_written_per_s"], 0);
  EXPECT_TRUE(top_rows(before, before, Instant::from_ns(12 * kSecond))[0]["bytes_written_per_s"].is_null());
  // Without an earlier look, and after a restart that counts from nothing again, there is no rate.
  EXPECT_TRUE(top_rows(now, {}, Instant::from_ns(0))[0]["bytes_written_per_s"].is_null());
  EXPECT_TRUE(top_rows(before, now, Instant::from_ns(0))[0]["bytes_written_per_s"].is_null());
}

TEST(TopView, States) {
  const json text = status("one", 0, 0);
  const auto at = [](std::int64_t ns) { return Instant::from_ns(ns); };
  EXPECT_EQ(state_of(look(text, true, false, 7 * kSecond), at(10 * kSecond)), "up");
  EXPECT_EQ(state_of(look(text, true, false, 7 * kSecond), at(10 * kSecond + 1)), "stuck");
  json polled = text;
  polled["is_driven"] = false;
  EXPECT_EQ(state_of(look(polled, true, false, 7 * kSecond), at(11 * kSecond)), "unpolled");
  EXPECT_EQ(state_of(look(text, true, true, 7 * kSecond), at(100 * kSecond)), "asleep");
  EXPECT_EQ(state_of(look(text, false, false, 7 * kSecond), at(7 * kSecond)), "dead");
}

TEST(TopView, NamesCannotPaintTheScreen) {
  const std::string text = top_text({look(status("\x1b[2Jred\n", kSecond, 0))}, {}, Instant::from_ns(kSecond));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 9) << text;
}

TEST(TopView, WhatIsNoStatusIsShownAsUnknown) {
  for (const std::string text : {"", "{", "[]", "{\"schema\":\"hawser.status/2\"}", "{\"schema\":1}"}) {
    const AgentLook agent = agent_look("/run/one.status", {.process = 78, .is_alive = true, .text = text});
    EXPECT_TRUE(agent.status.is_null()) << text;
    EXPECT_NE(top_text({agent}, {}, Instant::from_ns(0)).find("78"), std::string::npos);
  }
  // Fields of other kinds than they should be count as missing.
  const json odd = {{"schema", "hawser.status/1"},
                    {"agent", 7},
                    {"peers", "x"},
                    {"waiting", {1, "x", json::array()}},
                    {"sessions", -1},
                    {"at_ns", "x"},
                    {"bytes_written", 1.5}};
  EXPECT_FALSE(top_text({look(odd)}, {look(odd)}, Instant::from_ns(0)).empty());
  EXPECT_EQ(top_rows({look(odd)}, {look(odd)}, Instant::from_ns(0)).size(), 1u);
}

}  // namespace
}  // namespace hawser::cli
