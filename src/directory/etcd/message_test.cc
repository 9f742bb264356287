#include "directory/etcd/message.h"

#include <gtest/gtest.h>

namespace hawser::directory::etcd {
namespace {

constexpr std::string_view kHeader =
    R"("header":{"cluster_id":"13455796455940752355","member_id":"4","revision":"7","raft_term":"2"})";

std::string with_header(std::string_view rest) {
  return "{" + std::string(kHeader) + (rest.empty() ? "" : ",") + std::string(rest) + "}";
}

TEST(EtcdMessage, PutsAreTransactions) {
  EXPECT_EQ(encode_put({.key = "k", .value = "v"}), R"({"compare":[],"failure":[{"request_range":{"key":"aw=="}}],)"
                                                    R"("success":[{"request_put":{"key":"aw==","value":"dg=="}}]})");
  const std::string both = encode_put({.key = "k", .value = "", .lease = 9, .only_new = true, .if_revision = 5});
  EXPECT_NE(both.find(R"({"create_revision":"0","key":"aw==","result":"EQUAL","target":"CREATE"})"), std::string::npos);
  EXPECT_NE(both.find(R"({"key":"aw==","mod_revision":"5","result":"EQUAL","target":"MOD"})"), std::string::npos);
  EXPECT_NE(both.find(R"("lease":"9")"), std::string::npos);
}

TEST(EtcdMessage, RangesOfPrefixes) {
  EXPECT_EQ(end_of_prefix("a/"), "a0");
  EXPECT_EQ(end_of_prefix("a\xff"), "b");
  EXPECT_EQ(end_of_prefix("\xff\xff"), std::string(1, '\0'));
  EXPECT_EQ(end_of_prefix(""), std::string(1, '\0'));
  EXPECT_EQ(encode_range({.key = "", .end = std::string_view("\0", 1), .limit = 32}),
            R"({"key":"AA==","limit":"32","range_end":"AA=="})");
  EXPECT_EQ(
      encode_watch("", 8, 1),
      R"({"create_request":{"fragment":true,"key":"AA==","range_end":"AA==","start_revision":"8","watch_id":"1"}})");
}

TEST(EtcdMessage, RangesAreRead) {
  const RangeAnswer answer =
      decode_range(
          with_header(R"("kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"3","version":"1",)"
                      R"("value":"b25l","lease":"77"},{"key":"Zm9w","mod_revision":4}],"more":true,"count":"9")"))
          .value();
  EXPECT_EQ(answer.header.cluster_id, 13455796455940752355u);
  EXPECT_EQ(answer.header.revision, 7);
  ASSERT_EQ(answer.entries.size(), 2u);
  EXPECT_EQ(answer.entries[0].key, "foo");
  EXPECT_EQ(answer.entries[0].value, "one");
  EXPECT_EQ(answer.entries[0].lease, 77);
  EXPECT_EQ(answer.entries[1].value, "");
  EXPECT_EQ(answer.entries[1].revision, 4);
  EXPECT_TRUE(answer.has_more);
}

TEST(EtcdMessage, PutsThatWereRefusedNameTheHolder) {
  EXPECT_TRUE(decode_put(with_header(R"("succeeded":true,"responses":[{"response_put":{}}])")).value().is_put);
  const PutAnswer refused =
      decode_put(with_header(R"("responses":[{"response_range":{"kvs":[{"key":"aw==","mod_revision":"3"}]}}])"))
          .value();
  EXPECT_FALSE(refused.is_put);
  EXPECT_EQ(refused.holder->revision, 3);
  EXPECT_FALSE(decode_put(with_header(R"("responses":[{"response_range":{}}])")).value().holder);
}

TEST(EtcdMessage, LeasesErasesAndLogins) {
  EXPECT_EQ(decode_lease(with_header(R"("ID":"43","TTL":"15")")).value().ttl, 15);
  EXPECT_EQ(decode_lease(R"({"result":)" + with_header(R"("ID":"43")") + "}").value().ttl, 0);
  EXPECT_EQ(decode_erase(with_header(R"("deleted":"1")")).value(), 1u);
  EXPECT_EQ(decode_erase(with_header("")).value(), 0u);
  EXPECT_EQ(decode_login(with_header(R"("token":"abc.12")")).value(), "abc.12");
  EXPECT_EQ(decode_login(with_header(R"("token":"abc\r\nX: y")")).status().code(), Code::kCorrupt);
}

TEST(EtcdMessage, WatchesAreRead) {
  const WatchAnswer created =
      decode_watch(R"({"result":)" + with_header(R"("watch_id":"7","created":true)") + "}").value();
  EXPECT_TRUE(created.is_created);
  EXPECT_EQ(created.watch_id, 7);
  const WatchAnswer told =
      decode_watch(R"({"result":)" +
                   with_header(R"("watch_id":"7","events":[{"kv":{"key":"aw==","mod_revision":"2"}},)"
                               R"({"type":"DELETE","kv":{"key":"aw==","mod_revision":"4"}}])") +
                   "}")
          .value();
  ASSERT_EQ(told.events.size(), 2u);
  EXPECT_FALSE(told.events[0].is_erased);
  EXPECT_TRUE(told.events[1].is_erased);
  EXPECT_EQ(told.events[1].entry.revision, 4);
  const WatchAnswer gone =
      decode_watch(R"({"result":)" + with_header(R"("watch_id":"7","canceled":true,"compact_revision":"3")") + "}")
          .value();
  EXPECT_TRUE(gone.is_cancelled);
  EXPECT_EQ(gone.compacted, 3);
  const WatchAnswer failed =
      decode_watch(R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})").value();
  EXPECT_EQ(failed.fault, Fault::kTransient);
}

TEST(EtcdMessage, FaultsByWhatToDo) {
  const auto fault = [](std::string_view text, int code, long http = 500) {
    return decode_error(R"({"error":")" + std::string(text) + R"(","message":")" + std::string(text) + R"(","code":)" +
                            std::to_string(code) + "}",
                        http)
        .fault;
  };
  EXPECT_EQ(fault("etcdserver: leader changed", 14), Fault::kTransient);
  EXPECT_EQ(fault("etcdserver: no leader", 14), Fault::kTransient);
  EXPECT_EQ(fault("etcdserver: request timed out, possibly due to previous leader failure", 14), Fault::kTransient);
  EXPECT_EQ(fault("etcdserver: too many requests", 8), Fault::kTransient);
  EXPECT_EQ(fault("all SubConns are in TransientFailure", 14), Fault::kTransient);
  EXPECT_EQ(fault("etcdserver: mvcc: database space exceeded", 8), Fault::kFinal);
  EXPECT_EQ(fault("etcdserver: requested lease not found", 5), Fault::kNoSuchLease);
  EXPECT_EQ(fault("etcdserver: mvcc: required revision has been compacted", 11), Fault::kCompacted);
  EXPECT_EQ(fault("etcdserver: invalid auth token", 16), Fault::kToken);
  EXPECT_EQ(fault("etcdserver: permission denied", 7), Fault::kDenied);
  EXPECT_EQ(fault("etcdserver: user name is empty", 3), Fault::kDenied);
  EXPECT_EQ(fault("etcdserver: authentication failed, invalid user ID or password", 3), Fault::kDenied);
  EXPECT_EQ(decode_error("<html>bad gateway</html>", 502).fault, Fault::kTransient);
  EXPECT_EQ(decode_error("404 page not found", 404).fault, Fault::kFinal);
}

TEST(EtcdMessage, WhatIsNotOfTheFormIsCorrupt) {
  const std::string deep = with_header(R"("kvs":)" + std::string(1000, '[') + std::string(1000, ']'));
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("{"), deep, with_header(R"("kvs":{})"),
        with_header(R"("kvs":[{"key":"%%%"}])"), with_header(R"("kvs":[{"mod_revision":"1x"}])"),
        with_header(R"("kvs":[{"mod_revision":"99999999999999999999"}])"),
        with_header(R"("kvs":[{"mod_revision":1.5}])"), with_header(R"("kvs":[7])"), with_header(R"("more":"yes")")}) {
    EXPECT_EQ(decode_range(text).status().code(), Code::kCorrupt) << text.substr(0, 200);
  }
  EXPECT_EQ(decode_watch("{}").status().code(), Code::kCorrupt);
  EXPECT_EQ(decode_watch(R"({"result":[]})").status().code(), Code::kCorrupt);
  EXPECT_EQ(decode_watch(R"({"result":)" + with_header(R"("events":[{"type":"MOVE"}])") + "}").status().code(),
            Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::directory::etcd
