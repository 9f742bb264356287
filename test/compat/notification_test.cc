// Notifications of any length: alone, after data, from several threads, and what goes wrong half-way.

#include <hawser/compat/agent.h>

#include <cstdio>
#include <thread>

#include "agents.h"
#include "base/inside.h"
#include "compat/core.h"
#include "compat/parts.h"

namespace hawser::compat {
namespace {

class CompatNotification : public testing::TestWithParam<const char*> {
 protected:
  AgentConfig way(ConfigSources::Texts more = {}) const {
    more.emplace("HAWSER_BACKENDS", GetParam());
    return quiet(std::move(more));
  }
};

std::string text_of(std::size_t size, unsigned seed = 1) {
  std::string text(size, '\0');
  for (char& byte : text) byte = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
  return text;
}

/// Lengths at which something changes in how they travel.
std::vector<std::string> texts() {
  const std::string magic(kPartMagic);
  return {"",
          "short",
          magic,
          magic + "like a part",
          magic + text_of(kPlainMax - magic.size()),
          magic + text_of(kPlainMax - magic.size() + 1),
          text_of(64 * 1024),
          text_of(64 * 1024 + 1),
          text_of(1 << 20),
          text_of(kNotificationMax)};
}

/// The next of what `from` sent, in order.
std::string take(Side& at, NotificationMap& map, std::string_view from = "one") {
  const auto waits = [&] { return map.contains(from) && !map.find(from)->second.empty(); };
  const bool came = eventually([&] { return waits() || !at.agent.get_notifications(map).ok() || waits(); });
  if (!came || !waits()) return "nothing came";
  std::vector<std::string>& all = map.find(from)->second;
  std::string text = std::move(all.front());
  all.erase(all.begin());
  return text;
}

TEST_P(CompatNotification, OfAnyLengthAloneAndAfterData) {
  Side one("one", 1 << 20, way()), two("two", 1 << 20, way());
  one.knows(two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(16), two.blocks(16), "two").value();
  NotificationMap map;
  char mark = 1;
  for (const std::string& text : texts()) {
    const Status sent = one.agent.send_notification("two", text);
    ASSERT_TRUE(sent.ok()) << text.size() << ": " << sent.to_string();
    EXPECT_TRUE(take(two, map) == text) << text.size();
    std::fill(one.memory.begin(), one.memory.end(), ++mark);
    OptArgs opt;
    opt.notification = text;
    const Status status = one.run(request, &opt);
    ASSERT_TRUE(status.ok()) << text.size() << ": " << status.to_string();
    EXPECT_TRUE(take(two, map) == text) << text.size();
    EXPECT_EQ(std::count(two.memory.begin(), two.memory.end(), mark), 1 << 20) << "told of before it was there";
  }
  const Status self = one.agent.send_notification("one", text_of(1 << 20));
  EXPECT_TRUE(self.ok()) << self.to_string();
  EXPECT_TRUE(take(one, map) == text_of(1 << 20));
}

TEST_P(CompatNotification, LongerThanTheLongestIsRefusedWithItsNumber) {
  Side one("one", 4096, way()), two("two", 4096, way());
  one.knows(two);
  OptArgs opt;
  opt.notification = text_of(kNotificationMax + 1);
  const auto refused = [](const Status& status) {
    return code_of(status) == NixlCode::kNotSupported && status.to_string().find("8388609") != std::string::npos;
  };
  EXPECT_TRUE(refused(one.agent.send_notification("two", *opt.notification)));
  EXPECT_TRUE(refused(one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two", &opt).status()));
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  EXPECT_TRUE(refused(one.agent.post_xfer_req(request, &opt).status()));
  EXPECT_TRUE(one.run(request).ok());
}

TEST_P(CompatNotification, AreWholeAndInOrderFromManyThreads) {
  constexpr unsigned kThreads = 4, kEach = 6;
  Side one("one", 1 << 16, way()), two("two", 1 << 16, way());
  one.knows(two);
  const auto text = [](unsigned thread, unsigned turn) {
    const std::size_t size = turn % 2 == 0 ? 20 : 70'000 + 50'000 * turn;
    return std::string(1, static_cast<char>(thread)) + std::string(1, static_cast<char>(turn)) +
           text_of(size, thread * 100 + turn);
  };
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
      for (unsigned turn = 0; turn < kEach; ++turn) {
        if (thread % 2 == 0) {
          const Status sent = one.agent.send_notification("two", text(thread, turn));
          ASSERT_TRUE(sent.ok()) << sent.to_string();
          continue;
        }
        OptArgs opt;
        opt.notification = text(thread, turn);
        const Status status = one.run(request, &opt);
        ASSERT_TRUE(status.ok()) << status.to_string();
      }
    });
  }
  std::vector<unsigned> next(kThreads, 0);
  NotificationMap map;
  for (unsigned i = 0; i < kThreads * kEach; ++i) {
    const std::string got = take(two, map);
    ASSERT_GE(got.size(), 2u);
    const auto thread = static_cast<unsigned>(got[0]);
    ASSERT_LT(thread, kThreads) << got.substr(0, 20);
    EXPECT_TRUE(got == text(thread, next[thread])) << "thread " << thread << ", turn " << next[thread];
    ++next[thread];
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(CompatNotification, MoreThanMayBeUnderWayAtOnceWhoeverIsLookedAt) {
  constexpr std::size_t kCount = 24;
  Side one("one", 1 << 16, way()), two("two", 1 << 16, way());
  one.knows(two);
  std::vector<TransferRequest> requests;
  for (unsigned i = 0; i < kCount; ++i) {
    OptArgs opt;
    opt.notification = text_of(1 << 20, i);
    requests.push_back(one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two", &opt).value());
    const Result<bool> posted = one.agent.post_xfer_req(requests.back());
    ASSERT_TRUE(posted) << posted.error().to_string();
  }
  // The last one first: it may wait for the room of those before it.
  std::size_t came = 0;
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    Result<bool> busy = true;
    ASSERT_TRUE(eventually([&] {
      NotificationMap map;
      EXPECT_TRUE(two.agent.get_notifications(map).ok());
      for (const std::string& text : map["one"]) came += text.size() == 1 << 20 ? 1 : 0;
      busy = one.agent.in_progress(*request);
      return !busy || !*busy;
    }));
    ASSERT_TRUE(busy) << busy.error().to_string();
  }
  NotificationMap map;
  for (; came < kCount; ++came) EXPECT_EQ(take(two, map).size(), 1u << 20);
}

TEST_P(CompatNotification, APostThatNobodyLooksAtTellsItsPeer) {
  Side one("one", 1 << 16, way()), two("two", 1 << 16, way());
  one.knows(two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  OptArgs opt;
  opt.notification = text_of(kNotificationMax);
  ASSERT_TRUE(one.agent.post_xfer_req(request, &opt));
  NotificationMap map;
  EXPECT_TRUE(take(two, map) == *opt.notification);
}

/// The inbox of the target takes two parts; what is behind them waits until it reads.
class CompatSmallInbox : public CompatNotification {
 protected:
  AgentConfig small() const { return way({{"HAWSER_LIMITS_NOTIFICATION_BYTES", "131200"}}); }
};

TEST_P(CompatSmallInbox, ALongOneGoesThroughASmallInboxThatIsRead) {
  Side one("one", 1 << 16, way()), two("two", 1 << 16, small());
  one.knows(two);
  const std::string text = text_of(3 << 20);
  std::thread sender([&] {
    const Status sent = one.agent.send_notification("two", text);
    EXPECT_TRUE(sent.ok()) << sent.to_string();
  });
  NotificationMap map;
  EXPECT_TRUE(take(two, map) == text);
  sender.join();
}

TEST_P(CompatSmallInbox, APostThatNobodyLooksAtGoesOnWhenRoomComes) {
  Side one("one", 1 << 16, way()), two("two", 1 << 16, small());
  one.knows(two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  OptArgs opt;
  opt.notification = text_of(1 << 20);
  const Result<bool> busy = one.agent.post_xfer_req(request, &opt);
  ASSERT_TRUE(busy) << busy.error().to_string();
  EXPECT_TRUE(*busy) << "two parts fit";
  NotificationMap map;
  EXPECT_TRUE(take(two, map) == *opt.notification);
}

TEST_P(CompatSmallInbox, WhatIsReleasedHalfSentIsNeverDelivered) {
  Side one("one", 1 << 16, way()), two("two", 1 << 16, small());
  one.knows(two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  OptArgs opt;
  opt.notification = text_of(1 << 20);
  const Result<bool> busy = one.agent.post_xfer_req(request, &opt);
  ASSERT_TRUE(busy) << busy.error().to_string();
  EXPECT_TRUE(*busy);
  EXPECT_TRUE(request.release().ok());
  // Nor one for which nobody made room in time.
  EXPECT_EQ(code_of(one.agent.send_notification("two", text_of(1 << 20))), NixlCode::kBackend);
  std::thread sender([&] {  // There was no room for two seconds, so it may be told so at once, until there is.
    EXPECT_TRUE(eventually([&] { return one.agent.send_notification("two", text_of(300'000, 5)).ok(); }));
  });
  NotificationMap map;
  EXPECT_TRUE(take(two, map) == text_of(300'000, 5));
  sender.join();
  EXPECT_TRUE(map.find("one")->second.empty());
}

TEST_P(CompatSmallInbox, APostThatWaitsForTheDeadFailsAndStaysSo) {
  Side one("one", 1 << 16, way());
  auto two = std::make_unique<Side>("two", 1 << 16, small());
  one.knows(*two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two->blocks(1), "two").value();
  OptArgs opt;
  opt.notification = text_of(1 << 20);
  const Result<bool> posted = one.agent.post_xfer_req(request, &opt);
  ASSERT_TRUE(posted && *posted);
  EXPECT_EQ(code_of(one.agent.post_xfer_req(request).error()), NixlCode::kRepostActive);
  two.reset();
  ASSERT_TRUE(eventually([&] { return !one.agent.in_progress(request); }));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(code_of(one.agent.in_progress(request).error()), NixlCode::kRemoteDisconnect);
  }
  EXPECT_TRUE(request.release().ok());
}

TEST_P(CompatSmallInbox, WhatAPeerLeavesHalfSentIsDroppedAndTold) {
  Log log;
  AgentConfig config = small();
  config.log = log.sink();
  Side two("two", 1 << 16, config);
  NotificationMap map;
  for (std::uint64_t life = 1; life <= 2; ++life) {
    auto one = std::make_unique<Side>("one", 1 << 16, way());
    one->knows(two);
    auto request = one->agent.create_xfer_req(XferOp::kWrite, one->blocks(1), two.blocks(1), "two").value();
    OptArgs opt;
    opt.notification = text_of(1 << 20);
    Result<bool> busy = one->agent.post_xfer_req(request, &opt);
    ASSERT_TRUE(busy && *busy);
    // Two parts are there, and there is no room for more.
    ASSERT_TRUE(eventually([&] {
      EXPECT_TRUE(one->agent.in_progress(request));
      return core_of(two.agent)->agent().counters().total.notifications_received == 2 * life;
    }));
    EXPECT_TRUE(one->agent.close().ok());
    request = TransferRequest();
    one.reset();
    ASSERT_TRUE(eventually([&] {
      EXPECT_TRUE(two.agent.get_notifications(map).ok());
      return log.count("agent 'one' is gone: what came of 1 long") == life || !map.empty();
    })) << log.text();
    EXPECT_TRUE(map.empty()) << "half of it was delivered";
  }
}

/// A target with a thread, whose client never asks for notifications.
class TrialsUnread : public CompatNotification {
 protected:
  static constexpr std::uint64_t kShare = 8u << 20;
  static constexpr std::uint64_t kCost = 64 + 13;
  AgentConfig driven(ConfigSources::Texts more = {}) const {
    AgentConfig config = way(std::move(more));
    config.progress_thread = true;
    return config;
  }
  static OptArgs numbered(int i) {
    char text[14];
    std::snprintf(text, sizeof text, "unread-%06d", i);
    OptArgs opt;
    opt.notification = text;
    return opt;
  }
};

// Before, the 1,025th stayed in progress for ever.
TEST_P(TrialsUnread, FillTheShareThenEndBusyAndComplete) {
  constexpr int kMany = 100'000, kAtOnce = 100;
  Side one("one", 4096, driven()), two("two", 4096, driven({{"HAWSER_LIMITS_NOTIFICATION_BYTES", "8MiB"}}));
  one.knows(two);
  const auto held = [&] { return core_of(two.agent)->agent().counters().notification_bytes_gauge; };
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  int sent = 0;
  const auto run_next = [&] {
    const OptArgs opt = numbered(sent);
    std::fill(one.memory.begin(), one.memory.end(), static_cast<char>(sent));
    const Status status = one.run(request, &opt);
    sent += status.ok() ? 1 : 0;
    return status;
  };
  std::vector<TransferRequest> many;
  for (int i = 0; i < kAtOnce; ++i) {
    many.push_back(one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value());
  }
  while (sent + kAtOnce <= static_cast<int>(kShare / kCost)) {
    for (TransferRequest& each : many) {
      const OptArgs opt = numbered(sent++);
      ASSERT_TRUE(one.agent.post_xfer_req(each, &opt));
    }
    for (TransferRequest& each : many) {
      Result<bool> busy = true;
      ASSERT_TRUE(eventually([&] { return !(busy = one.agent.in_progress(each)) || !*busy; })) << sent;
      ASSERT_TRUE(busy) << busy.error().to_string();
    }
  }
  EXPECT_GE(sent, kMany);
  EXPECT_TRUE(eventually([&] { return held() == static_cast<std::uint64_t>(sent) * kCost; })) << held();
  Status full;
  while (full.ok() && sent < 2 * kMany) full = run_next();
  EXPECT_EQ(sent, static_cast<int>(kShare / kCost));
  EXPECT_EQ(full.code(), Code::kBusy) << full.to_string();
  EXPECT_EQ(full.buffer(), BufferState::kComplete);
  EXPECT_EQ(code_of(full), NixlCode::kBackend);
  EXPECT_EQ(std::count(two.memory.begin(), two.memory.end(), static_cast<char>(sent)), 4096) << "it said complete";
  EXPECT_LE(held(), kShare);
  // Each call for itself waited for two seconds.
  const Instant begin = Clock::steady().now();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(code_of(one.agent.send_notification("two", *numbered(0).notification)), NixlCode::kBackend);
  EXPECT_LT(Clock::steady().now() - begin, std::chrono::seconds(2));
  NotificationMap map;
  ASSERT_TRUE(eventually(
      [&] { return !two.agent.get_notifications(map).ok() || map["one"].size() == static_cast<std::size_t>(sent); }));
  std::ranges::sort(map["one"]);  // Between requests there is no order.
  for (int i = 0; i < sent; ++i) ASSERT_EQ(map["one"][i], *numbered(i).notification);
  map.clear();
  EXPECT_EQ(held(), 0u);
  const Status again = run_next();
  ASSERT_TRUE(again.ok()) << again.to_string();
  EXPECT_EQ(take(two, map), *numbered(sent - 1).notification);
  EXPECT_TRUE(one.agent.send_notification("two", "x").ok());
  EXPECT_EQ(take(two, map), "x");
}

/// Nobody tells of these bytes, so they are looked at while they come.
[[gnu::no_sanitize_thread]] bool is_full_of(const std::vector<char>& memory, char wanted) {
  for (const char byte : memory) {
    if (byte != wanted) return false;
  }
  return true;
}

// A post that was told to wait ends well when there is room in time.
TEST_P(TrialsUnread, APostWithoutRoomMovesItsDataAndTellsLater) {
  Side one("one", 4096, driven()), two("two", 4096, driven({{"HAWSER_LIMITS_NOTIFICATION_BYTES", "131200"}}));
  one.knows(two);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(one.agent.send_notification("two", std::string(kMessageMax, 'x')).ok());
  std::fill(one.memory.begin(), one.memory.end(), 'd');
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  const OptArgs opt = numbered(7);
  const Result<bool> busy = one.agent.post_xfer_req(request, &opt);
  ASSERT_TRUE(busy && *busy);
  EXPECT_TRUE(eventually([&] { return is_full_of(two.memory, 'd'); }));
  EXPECT_EQ(code_of(one.agent.post_xfer_req(request, &opt).error()), NixlCode::kRepostActive);
  NotificationMap map;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(take(two, map).size(), kMessageMax);
  Result<bool> state = true;
  EXPECT_TRUE(eventually([&] { return !(state = one.agent.in_progress(request)) || !*state; }));
  EXPECT_TRUE(state) << state.error().to_string();
  EXPECT_EQ(take(two, map), *opt.notification);
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param).find("tcp") == std::string::npos ? "shm" : "tcp";
}
INSTANTIATE_TEST_SUITE_P(Ways, CompatNotification, testing::Values("shm", "loopback,tcp"), name_of);
INSTANTIATE_TEST_SUITE_P(Ways, TrialsUnread, testing::Values("shm", "loopback,tcp"), name_of);
INSTANTIATE_TEST_SUITE_P(Ways, CompatSmallInbox, testing::Values("shm", "loopback,tcp"), name_of);

}  // namespace
}  // namespace hawser::compat
