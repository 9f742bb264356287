#include "cli/explain_view.h"

#include <gtest/gtest.h>

#include "cli/page_fields.h"

namespace hawser::cli {
namespace {

Fields page() {
  return {{"schema", "hawser.status/1"},
          {"agent", "prefill"},
          {"is_driven", true},
          {"closed_backends", {{{"backend", "verbs"}, {"why", "no RDMA device (advice)"}}}},
          {"peers",
           {{{"peer", "decode"},
             {"state", "up"},
             {"p50_ns", 12000u},
             {"p99_ns", 34000u},
             {"paths",
              {{{"backend", "tcp"}, {"state", "up"}, {"bytes_out", 3u << 20}, {"bytes_in", 0u}, {"about", "TLS 1.3"}}}},
             {"ways", {{{"backend", "shm"}, {"why", "another host"}}, {{"backend", "tcp"}}, {{"backend", "later"}}}}},
            {{"peer", "many"}, {"state", "down"}, {"paths", Fields::array()}}}},
          {"waiting",
           {{{"who", "transfers"}, {"what", "the end"}, {"peer", "decode"}, {"count", 1u}},
            {{"who", "transfers"}, {"what", "a path"}, {"peer", "many"}, {"count", 1u}}}}};
}

AgentLook look(const Fields& text) {
  return agent_look(
      "/run/one.status",
      {.process = 77, .is_alive = true, .is_asleep = true, .worked_at = Instant::from_ns(0), .text = text.dump()});
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ExplainView, TellsOfEachWayAndWhyNot) {
  bool is_found = false;
  const std::string text = explain_text(look(page()), "decode", Instant::from_ns(0), &is_found);
  EXPECT_TRUE(is_found);
  EXPECT_TRUE(has(text, "prefill (process 77, asleep) to decode: up, transfers take 12.0 µs (p99 34.0 µs)")) << text;
  EXPECT_TRUE(has(text, "  shm    no ")) << text;
  EXPECT_TRUE(has(text, "another host")) << text;
  EXPECT_TRUE(has(text, "  tcp    up          3 MiB / 0 B  TLS 1.3")) << text;
  EXPECT_TRUE(has(text, "  later  not opened")) << text;
  EXPECT_TRUE(has(text, "  verbs  not here")) << text;
  EXPECT_TRUE(has(text, "waiting: transfers: the end of decode")) << text;
  EXPECT_FALSE(has(text, "of many")) << "of others it does not speak: " << text;
}

TEST(ExplainView, WithoutAPeerItTellsOfAll) {
  bool is_found = false;
  const std::string text = explain_text(look(page()), "", Instant::from_ns(0), &is_found);
  EXPECT_TRUE(has(text, "to decode: up")) << text;
  EXPECT_TRUE(has(text, "to many: down\n  the page has no room for reasons")) << text;
  EXPECT_EQ(explain_rows(look(page()), "").size(), 2u);
}

TEST(ExplainView, OfAStrangerItTellsNothing) {
  bool is_found = true;
  EXPECT_EQ(explain_text(look(page()), "nobody", Instant::from_ns(0), &is_found), "");
  EXPECT_FALSE(is_found);
  EXPECT_TRUE(explain_rows(look(page()), "nobody").empty());
  EXPECT_EQ(explain_text(look(Fields("nonsense")), "", Instant::from_ns(0), &is_found), "") << "no page";
  EXPECT_FALSE(is_found);
}

TEST(ExplainView, RowsHaveTheReasonsToo) {
  const Json rows = explain_rows(look(page()), "decode");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["agent"], "prefill");
  EXPECT_EQ(rows[0]["ways"][0]["why"], "another host");
  EXPECT_EQ(rows[0]["closed_backends"][0]["backend"], "verbs");
}

}  // namespace
}  // namespace hawser::cli
