#pragma once

// What every directory must do, whatever it is made of. Run it over a factory:
//
//   INSTANTIATE_TEST_SUITE_P(File, DirectorySuite, testing::Values(DirectoryFactory{"file", make_file_world}));
//
// A world is one shared place: `open` gives handles to it, as several agents or processes would have them, and its time
// passes by `advance` alone where it can (a world of real servers waits).
//
// Thread rule: one thread.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <hawser/directory.h>

namespace hawser::conformance {

class DirectoryWorld {
 public:
  virtual ~DirectoryWorld() = default;
  virtual std::shared_ptr<Directory> open() = 0;
  virtual Instant now() const = 0;
  virtual void advance(Duration by) = 0;
  /// Between the two nothing that was asked for is answered, also where a directory runs by itself.
  virtual void hold() {}
  virtual void release() {}
  /// A lease that a test may use. Where time is real it must outlast a moment of a busy machine.
  virtual Duration lease() const { return std::chrono::seconds(2); }
  /// Jobs run while a test waits for one answer; each may wait a little for a server.
  virtual int jobs_max() const { return 2000; }
};

struct DirectoryFactory {
  std::string name;
  std::function<std::unique_ptr<DirectoryWorld>()> make;
};

class DirectorySuite : public testing::TestWithParam<DirectoryFactory> {
 protected:
  static constexpr Duration kStep = std::chrono::milliseconds(10);
  static constexpr Duration kVirtualLease = std::chrono::seconds(2);

  void SetUp() override {
    world_ = GetParam().make();
    first_ = world_->open();
    second_ = world_->open();
  }

  void run_jobs(Directory& directory) {
    for (int i = 0; i < world_->jobs_max() && directory.run_job(world_->now(), world_->now() + kStep); ++i) continue;
  }
  /// The next event of `ticket`; time passes while there is none.
  DirectoryEvent await(Directory& directory, Ticket ticket) {
    for (int i = 0; i < world_->jobs_max(); ++i) {
      if (auto event = directory.poll(ticket)) return *std::move(event);
      if (!directory.run_job(world_->now(), world_->now() + kStep)) world_->advance(kStep);
    }
    ADD_FAILURE() << "no answer";
    return {.ticket = ticket, .status = Status(Code::kTimedOut, "no answer"), .entries = {}};
  }
  /// The version that was put, or 0.
  std::uint64_t put(Directory& directory, std::string_view key, std::string_view value, PutOptions options = {}) {
    const DirectoryEvent event = await(directory, directory.put(key, value, options));
    EXPECT_TRUE(event.status.ok()) << event.status.to_string();
    EXPECT_EQ(event.entries.size(), 1u);
    return event.entries.empty() ? 0 : event.entries[0].version;
  }
  Code put_code(Directory& directory, std::string_view key, std::string_view value, PutOptions options) {
    return await(directory, directory.put(key, value, options)).status.code();
  }
  std::string get(Directory& directory, std::string_view key) {
    const DirectoryEvent event = await(directory, directory.get(key));
    if (!event.status.ok()) return "(" + std::string(to_string(event.status.code())) + ")";
    return event.entries.at(0).value;
  }
  std::vector<std::string> list(Directory& directory, std::string_view prefix) {
    const DirectoryEvent event = await(directory, directory.list(prefix));
    EXPECT_TRUE(event.status.ok()) << event.status.to_string();
    std::vector<std::string> keys;
    for (const DirectoryEntry& entry : event.entries) keys.push_back(entry.key);
    return keys;
  }
  /// Applies events of a watch until `picture` is what is expected, or patience ends.
  void await_picture(Directory& directory, Ticket watch, std::map<std::string, std::string>& picture,
                     const std::map<std::string, std::string>& expected) {
    for (int i = 0; i < world_->jobs_max() && picture != expected; ++i) {
      auto event = directory.poll(watch);
      if (!event) {
        if (!directory.run_job(world_->now(), world_->now() + kStep)) world_->advance(kStep);
        continue;
      }
      if (event->kind == DirectoryEvent::Kind::kAnswer) picture.clear();
      for (DirectoryEntry& entry : event->entries) {
        if (event->kind == DirectoryEvent::Kind::kErased) {
          picture.erase(entry.key);
        } else {
          picture[entry.key] = std::move(entry.value);
        }
      }
    }
    EXPECT_EQ(picture, expected);
  }

  std::unique_ptr<DirectoryWorld> world_;
  std::shared_ptr<Directory> first_, second_;
};

using Keys = std::vector<std::string>;
using Picture = std::map<std::string, std::string>;

TEST_P(DirectorySuite, WhatOneHandlePutsAnotherGets) {
  put(*first_, "hawser/cards/a", "card of a");
  EXPECT_EQ(get(*second_, "hawser/cards/a"), "card of a");
  put(*second_, "hawser/cards/a", "card of a, again");
  EXPECT_EQ(get(*first_, "hawser/cards/a"), "card of a, again");
}

TEST_P(DirectorySuite, AKeyThatIsNotThereIsNotFound) {
  const DirectoryEvent event = await(*first_, first_->get("nobody"));
  EXPECT_EQ(event.status.code(), Code::kNotFound);
  EXPECT_NE(event.status.message().find("nobody"), std::string_view::npos);
}

TEST_P(DirectorySuite, KeysAndValuesMayHoldAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string long_key = "long/" + std::string(kDirectoryKeyMax - 5, '/');
  const std::vector<std::string> keys = {bytes, ".", "..", "/", "a/../../b", "%2F", long_key, "A", "a", ".lock"};
  for (const std::string& key : keys) put(*first_, key, key + bytes);
  for (const std::string& key : keys) EXPECT_EQ(get(*second_, key), key + bytes);
  EXPECT_EQ(list(*second_, "").size(), keys.size());
  put(*first_, "empty", "");
  EXPECT_EQ(get(*second_, "empty"), "");
}

TEST_P(DirectorySuite, TheLargestValueFitsAndALargerOneIsRefused) {
  const std::string largest(kDirectoryValueMax, 'x');
  put(*first_, "k", largest);
  EXPECT_EQ(get(*second_, "k"), largest);
  EXPECT_EQ(put_code(*first_, "k", largest + "x", {}), Code::kInvalid);
  EXPECT_EQ(put_code(*first_, "", "v", {}), Code::kInvalid);
  EXPECT_EQ(put_code(*first_, std::string(kDirectoryKeyMax + 1, 'k'), "v", {}), Code::kInvalid);
}

TEST_P(DirectorySuite, ListsByPrefixInOrderOfKeys) {
  for (const char* key : {"b/1", "a/2", "a/1", "a"}) put(*first_, key, key);
  EXPECT_EQ(list(*second_, "a/"), (Keys{"a/1", "a/2"}));
  EXPECT_EQ(list(*second_, ""), (Keys{"a", "a/1", "a/2", "b/1"}));
  EXPECT_EQ(list(*second_, "c"), Keys{});
}

TEST_P(DirectorySuite, ErasedKeysAreGone) {
  put(*first_, "k", "v");
  EXPECT_EQ(await(*second_, second_->erase("k")).entries.size(), 1u);
  EXPECT_EQ(get(*first_, "k"), "(not found)");
  EXPECT_EQ(list(*first_, ""), Keys{});
  const DirectoryEvent again = await(*second_, second_->erase("k"));
  EXPECT_TRUE(again.status.ok());
  EXPECT_TRUE(again.entries.empty());
}

TEST_P(DirectorySuite, VersionsOnlyGrow) {
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    if (i == 5) await(*first_, first_->erase("k"));
    const std::uint64_t version = put(i % 2 == 0 ? *first_ : *second_, "k", "v");
    EXPECT_GT(version, last);
    last = version;
    EXPECT_EQ(await(*second_, second_->get("k")).entries.at(0).version, version);
  }
}

TEST_P(DirectorySuite, CreateOnlyGivesAKeyToOne) {
  put(*first_, "k", "first", {.create_only = true});
  EXPECT_EQ(put_code(*second_, "k", "second", {.create_only = true}), Code::kBusy);
  EXPECT_EQ(get(*second_, "k"), "first");
  await(*first_, first_->erase("k"));
  put(*second_, "k", "second", {.create_only = true});
  EXPECT_EQ(get(*first_, "k"), "second");
}

TEST_P(DirectorySuite, IfVersionMakesReadersDecideAnew) {
  const std::uint64_t old = put(*first_, "k", "1");
  const std::uint64_t now = put(*second_, "k", "2", {.if_version = old});
  EXPECT_EQ(put_code(*first_, "k", "3", {.if_version = old}), Code::kBusy);
  EXPECT_EQ(get(*first_, "k"), "2");
  put(*first_, "k", "3", {.if_version = now});
  EXPECT_EQ(put_code(*first_, "new", "1", {.if_version = 1}), Code::kBusy);
  put(*first_, "new", "1", {.if_version = 0});
  await(*first_, first_->erase("k"));
  EXPECT_EQ(put_code(*second_, "k", "4", {.if_version = now}), Code::kBusy);
}

// Whoever leaves takes away what it put, and not what a successor has put there since.
TEST_P(DirectorySuite, EraseIfVersionTakesOnlyThat) {
  const std::uint64_t old = put(*first_, "k", "mine");
  const std::uint64_t now = put(*second_, "k", "the successor's");
  const DirectoryEvent late = await(*first_, first_->erase("k", {.if_version = old}));
  EXPECT_EQ(late.status.code(), Code::kBusy) << late.status.to_string();
  EXPECT_NE(late.status.message().find(std::to_string(now)), std::string_view::npos);
  EXPECT_TRUE(late.entries.empty());
  EXPECT_EQ(get(*second_, "k"), "the successor's");
  EXPECT_EQ(await(*first_, first_->erase("k", {.if_version = 0})).status.code(), Code::kBusy);
  const DirectoryEvent right = await(*first_, first_->erase("k", {.if_version = now}));
  EXPECT_TRUE(right.status.ok()) << right.status.to_string();
  EXPECT_EQ(right.entries.size(), 1u);
  EXPECT_EQ(get(*second_, "k"), "(not found)");
  // What is gone needs no erasing, whichever version was meant.
  const DirectoryEvent again = await(*first_, first_->erase("k", {.if_version = now}));
  EXPECT_TRUE(again.status.ok()) << again.status.to_string();
  EXPECT_TRUE(again.entries.empty());
}

TEST_P(DirectorySuite, OfManyThatSwapOneWinsEachRound) {
  std::uint64_t version = put(*first_, "k", "0");
  for (int round = 1; round <= 10; ++round) {
    Directory& faster = round % 2 == 0 ? *first_ : *second_;
    Directory& slower = round % 2 == 0 ? *second_ : *first_;
    const std::uint64_t won = put(faster, "k", std::to_string(round), {.if_version = version});
    EXPECT_EQ(put_code(slower, "k", "lost", {.if_version = version}), Code::kBusy);
    EXPECT_EQ(await(slower, slower.erase("k", {.if_version = version})).status.code(), Code::kBusy);
    version = won;
  }
  EXPECT_EQ(get(*first_, "k"), "10");
}

TEST_P(DirectorySuite, ALeaseEndsUnlessRenewed) {
  const Duration lease = world_->lease();
  put(*first_, "stays", "v");
  const Instant from = world_->now();
  put(*first_, "goes", "v", {.lease = lease});
  put(*first_, "renewed", "v", {.lease = lease});
  world_->advance(lease * 3 / 4);
  const std::string late = get(*second_, "goes");
  // Where time is real, a busy machine may have let the lease pass.
  EXPECT_TRUE(late == "v" || world_->now() >= from + lease) << late;
  const Instant renewed = world_->now();
  put(*first_, "renewed", "v", {.lease = lease});
  world_->advance(lease / 2);
  for (int i = 0; i < world_->jobs_max() && get(*second_, "goes") == "v" && world_->lease() > kVirtualLease; ++i) {
    world_->advance(kStep);  // A server takes away what has expired when it comes to it.
  }
  EXPECT_EQ(get(*second_, "goes"), "(not found)");
  const Keys left = list(*second_, "");
  EXPECT_TRUE(left == (Keys{"renewed", "stays"}) || world_->now() >= renewed + lease);
  EXPECT_EQ(get(*second_, "stays"), "v");
  put(*second_, "goes", "again", {.create_only = true});
  EXPECT_EQ(get(*first_, "goes"), "again");
}

TEST_P(DirectorySuite, AWatchTellsWhatIsThereThenWhatChanges) {
  put(*first_, "a/1", "x");
  const Ticket watch = second_->watch("a/");
  Picture picture;
  await_picture(*second_, watch, picture, {{"a/1", "x"}});
  put(*first_, "a/2", "y");
  put(*first_, "b", "not watched");
  await_picture(*second_, watch, picture, {{"a/1", "x"}, {"a/2", "y"}});
  put(*first_, "a/1", "z");
  await(*first_, first_->erase("a/2"));
  await_picture(*second_, watch, picture, {{"a/1", "z"}});
  put(*second_, "a/3", "own");
  await_picture(*second_, watch, picture, {{"a/1", "z"}, {"a/3", "own"}});
}

TEST_P(DirectorySuite, AWatchTellsOfLeasesThatEnd) {
  const Ticket watch = second_->watch("");
  Picture picture;
  put(*first_, "k", "v", {.lease = world_->lease()});
  await_picture(*second_, watch, picture, {{"k", "v"}});
  world_->advance(world_->lease());
  await_picture(*second_, watch, picture, {});
}

TEST_P(DirectorySuite, AWatchOfAnEmptyPlaceAnswers) {
  const DirectoryEvent event = await(*first_, first_->watch("nothing/"));
  EXPECT_EQ(event.kind, DirectoryEvent::Kind::kAnswer);
  EXPECT_TRUE(event.status.ok());
  EXPECT_TRUE(event.entries.empty());
}

TEST_P(DirectorySuite, ACancelledTicketSaysNothing) {
  const Ticket watch = first_->watch("");
  await(*first_, watch);
  first_->cancel(watch);
  put(*first_, "k", "v");
  run_jobs(*first_);
  EXPECT_FALSE(first_->poll(watch));
  world_->hold();
  const Ticket before = first_->put("before", "v", {});  // Keeps a worker busy until the release.
  const Ticket never = first_->put("never", "v", {});
  first_->cancel(never);
  world_->release();
  EXPECT_TRUE(await(*first_, before).status.ok());
  run_jobs(*first_);
  EXPECT_EQ(get(*second_, "never"), "(not found)");
  EXPECT_FALSE(first_->poll(12345678));
}

TEST_P(DirectorySuite, RequestsRunInOrder) {
  std::vector<Ticket> tickets;
  for (int i = 0; i < 20; ++i) tickets.push_back(first_->put("k", std::to_string(i), {}));
  const Ticket got = first_->get("k");
  const Ticket listed = first_->list("");
  EXPECT_EQ(await(*first_, got).entries.at(0).value, "19");
  EXPECT_EQ(await(*first_, listed).entries.size(), 1u);
  for (const Ticket ticket : tickets) EXPECT_TRUE(first_->poll(ticket)->status.ok());
}

TEST_P(DirectorySuite, AFullQueueAnswersBusyAndEmpties) {
  std::vector<Ticket> tickets;
  std::size_t busy = 0;
  world_->hold();
  for (int i = 0; i < 1100; ++i) tickets.push_back(first_->put("k" + std::to_string(i), "v", {}));
  world_->release();
  for (const Ticket ticket : tickets) busy += await(*first_, ticket).status.code() == Code::kBusy ? 1 : 0;
  EXPECT_EQ(busy, 76u);
  EXPECT_EQ(list(*second_, "k").size(), 1024u);
}

TEST_P(DirectorySuite, ManyKeysComeAndGo) {
  const Ticket watch = second_->watch("");
  Picture picture;
  await_picture(*second_, watch, picture, {});
  for (int i = 0; i < 300; ++i) put(*first_, "agent-" + std::to_string(i), "card");
  EXPECT_EQ(list(*second_, "agent-").size(), 300u);
  for (int i = 0; i < 299; ++i) await(*first_, first_->erase("agent-" + std::to_string(i)));
  await_picture(*second_, watch, picture, {{"agent-299", "card"}});
}

}  // namespace hawser::conformance
