// A directory in a real etcd that is away, dies, comes back with what it knew or without, or forgets old revisions.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "directory/etcd/http.h"
#include "etcd_server.h"

namespace hawser::etcd_test {
namespace {

using directory::etcd::HttpClient;

/// A request to the gateway itself.
std::string raw(const EtcdServer& server, const std::string& path, const std::string& body) {
  const auto http = HttpClient::open({}).value();
  const auto reply = http->post({server.url() + path, body, ""}, now() + kPatience);
  EXPECT_TRUE(reply) << reply.status().to_string();
  return reply ? reply->body : "";
}

std::shared_ptr<Directory> open(const EtcdServer& server, Duration timeout = kPatience, Duration lease = 10s) {
  return etcd({.endpoints = {server.endpoint()}, .prefix = "t/", .lease = lease, .timeout = timeout}).value();
}

constexpr PutOptions kTied{.tied = true};

TEST(EtcdFault, AwayAtTheStartThenThere) {
  EtcdServer server;
  const auto directory = open(server, 300ms);
  const Instant from = now();
  const DirectoryEvent got = await(*directory, directory->get("k"));
  EXPECT_EQ(got.status.code(), Code::kDisconnected);
  EXPECT_NE(got.status.message().find(server.endpoint()), std::string::npos) << got.status.to_string();
  EXPECT_FALSE(got.status.advice().empty());
  EXPECT_GE(now() - from, 250ms);
  Picture failed(*directory, "");
  EXPECT_TRUE(eventually([&] {
    failed.look();
    return failed.error().code() == Code::kDisconnected;
  }));
  // A value that stands for us is put once etcd is there, though its put was answered with an error; others are not.
  EXPECT_EQ(put(*directory, "card", "mine", kTied).code(), Code::kDisconnected);
  EXPECT_EQ(put(*directory, "plain", "v").code(), Code::kDisconnected);
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto other = open(server);
  EXPECT_TRUE(eventually([&] { return get(*other, "card") == "mine"; }));
  EXPECT_EQ(get(*other, "plain"), "(not found)");
}

TEST(EtcdFault, WhatOneThreadIsToldIsNotLostForAnother) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto directory = open(server);
  ASSERT_TRUE(put(*directory, "k", "v").ok());
  while (directory->run_job(now(), now())) continue;  // What is told by now.
  const Ticket mine = directory->get("k");
  std::thread other([&] {
    EXPECT_EQ(get(*directory, "k"), "v");  // Answered after mine, so both were told of here.
    while (directory->run_job(now(), now())) continue;
  });
  other.join();
  EXPECT_TRUE(directory->run_job(now(), now())) << "and to be told here still";
  EXPECT_TRUE(directory->poll(mine));
  EXPECT_FALSE(directory->run_job(now(), now()));
}

TEST(EtcdFault, KilledAndStartedAgainWithWhatItKnew) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto directory = open(server, 300ms);
  ASSERT_TRUE(put(*open(server), "stays", "1").ok());
  ASSERT_TRUE(eventually([&] { return put(*directory, "card", "mine", kTied).ok(); }));
  const auto watching = open(server);
  Picture picture(*watching, "");
  ASSERT_TRUE(picture.await("card=mine stays=1"));
  server.kill();
  const DirectoryEvent got = await(*directory, directory->get("stays"));
  EXPECT_TRUE(got.status.code() == Code::kDisconnected || got.status.code() == Code::kTimedOut)
      << got.status.to_string();
  // Asked while it is away, answered when it is back: the deadline is long.
  const Ticket late = watching->put("late", "2", {});
  server.start();
  ASSERT_TRUE(server.await_ready());
  EXPECT_TRUE(await(*watching, late).status.ok());
  EXPECT_TRUE(picture.await("card=mine late=2 stays=1"));
  EXPECT_TRUE(put(*open(server), "stays", "3").ok());
  EXPECT_TRUE(picture.await("card=mine late=2 stays=3"));
}

TEST(EtcdFault, StartedAgainWithAnEmptyStore) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto directory = open(server);
  ASSERT_TRUE(put(*directory, "gone", "1").ok());
  ASSERT_TRUE(put(*directory, "card", "mine", kTied).ok());
  ASSERT_TRUE(put(*directory, "card", "newer", kTied).ok());
  const auto watching = open(server);
  Picture picture(*watching, "");
  ASSERT_TRUE(picture.await("card=newer gone=1"));
  server.start(/*is_new=*/true);
  ASSERT_TRUE(server.await_ready());
  // What was tied comes back by itself, and nothing else.
  EXPECT_TRUE(picture.await("card=newer"));
  EXPECT_TRUE(put(*watching, "fresh", "2").ok());
  EXPECT_TRUE(picture.await("card=newer fresh=2"));
  EXPECT_EQ(get(*directory, "gone"), "(not found)");
}

TEST(EtcdFault, ASuccessorsValueIsNotReplaced) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto old = open(server);
  ASSERT_TRUE(put(*old, "card", "old", kTied).ok());
  const auto successor = open(server);
  ASSERT_TRUE(put(*successor, "card", "new", kTied).ok());
  ASSERT_TRUE(put(*successor, "card", "newest", {}).ok());
  // All leases go; the old handle notices, and leaves what is another's.
  std::string leases = raw(server, "/v3/lease/leases", "{}");
  for (std::size_t at = 0; (at = leases.find("\"ID\":\"", at)) != std::string::npos;) {
    at += 6;
    raw(server, "/v3/lease/revoke", "{\"ID\":\"" + leases.substr(at, leases.find('"', at) - at) + "\"}");
  }
  EXPECT_TRUE(eventually([&] {
    const auto warnings = old->warnings();
    return std::any_of(warnings.begin(), warnings.end(),
                       [](const std::string& text) { return text.find("is another's now") != std::string::npos; });
  }));
  EXPECT_EQ(get(*old, "card"), "newest");
}

TEST(EtcdFault, AHandleThatGoesTakesItsTiedValuesAlong) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto watching = open(server);
  Picture picture(*watching, "");
  {
    const auto directory = open(server);
    ASSERT_TRUE(put(*directory, "card", "mine", kTied).ok());
    ASSERT_TRUE(put(*directory, "stays", "v").ok());
    ASSERT_TRUE(picture.await("card=mine stays=v"));
  }
  EXPECT_TRUE(picture.await("stays=v"));
}

TEST(EtcdFault, AStoppedServerRunsIntoTheDeadline) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto directory = open(server, 500ms);
  server.stop();
  const DirectoryEvent got = await(*directory, directory->get("k"));
  EXPECT_TRUE(got.status.code() == Code::kTimedOut || got.status.code() == Code::kDisconnected)
      << got.status.to_string();
  server.resume();
  EXPECT_TRUE(eventually([&] { return get(*directory, "k") == "(not found)"; }));
}

TEST(EtcdFault, RevisionsThatWereCompacted) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto directory = open(server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(put(*directory, "k" + std::to_string(i % 40), std::to_string(i)).ok());
  const DirectoryEvent last = await(*directory, directory->put("last", "v", {}));
  raw(server, "/v3/kv/compaction", "{\"revision\":\"" + std::to_string(last.entries.at(0).version) + "\"}");
  // More than a page, so that a list goes on at the revision it began with.
  EXPECT_EQ(await(*directory, directory->list("")).entries.size(), 41u);
  Picture picture(*directory, "last");
  EXPECT_TRUE(picture.await("last=v"));
}

TEST(EtcdFault, MoreWatchesThanOneAndFewerAgain) {
  EtcdServer server;
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto directory = open(server);
  ASSERT_TRUE(put(*directory, "a/1", "x").ok());
  ASSERT_TRUE(put(*directory, "b/1", "y").ok());
  Picture narrow(*directory, "a/");
  ASSERT_TRUE(narrow.await("a/1=x"));
  {
    Picture other(*directory, "b/");
    ASSERT_TRUE(other.await("b/1=y"));
    Picture wide(*directory, "");
    ASSERT_TRUE(wide.await("a/1=x b/1=y"));
    ASSERT_TRUE(put(*directory, "c", "z").ok());
    EXPECT_TRUE(wide.await("a/1=x b/1=y c=z"));
    ASSERT_TRUE(put(*directory, "a/2", "w").ok());
    EXPECT_TRUE(narrow.await("a/1=x a/2=w"));
  }
  ASSERT_TRUE(put(*directory, "a/1", "v").ok());
  EXPECT_TRUE(narrow.await("a/1=v a/2=w"));
}

// Its threads may be anywhere when it is told to end, also before their first look for that. Who misses it sleeps on.
TEST(EtcdFault, ClosedAtAnyMomentOfItsBeginning) {
  const EtcdServer server;
  for (int i = 0; i < 3000; ++i) {
    const auto directory = open(server);
    const Instant until = now() + std::chrono::nanoseconds(i % 300 * 500);
    while (now() < until) continue;
  }
}

TEST(EtcdFault, WrongOptionsAreNamed) {
  const auto message = [](EtcdOptions options) { return std::string(etcd(options).status().message()); };
  EXPECT_NE(message({.endpoints = {}}).find("endpoints"), std::string::npos);
  EXPECT_NE(message({.endpoints = {"nowhere"}}).find("nowhere"), std::string::npos);
  EXPECT_NE(message({.endpoints = {"ftp://a:1"}}).find("ftp"), std::string::npos);
  EXPECT_NE(message({.ca = "/nowhere/ca.pem"}).find("/nowhere/ca.pem"), std::string::npos);
  EXPECT_NE(message({.cert = "/dev/null"}).find("cert"), std::string::npos);
  EXPECT_NE(message({.password = "x"}).find("user"), std::string::npos);
  EXPECT_NE(message({.timeout = 1ms}).find("timeout"), std::string::npos);
  EXPECT_NE(message({.lease = 1ms}).find("lease"), std::string::npos);
}

}  // namespace
}  // namespace hawser::etcd_test
