// Calls between ranks: answers, errors, deadlines, cancellation, failure, bounds.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "with_quic.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
CallAnswer answer_of(const std::string& text) {
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

class CallTest : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<World> open(std::uint32_t size) {
    WorldOptions options;
    options.timeout = 30s;
    if (GetParam() != "any") options.agent.backends = {{.name = GetParam()}};
    Result<std::vector<World>> worlds = World::local(size, options);
    EXPECT_TRUE(worlds.has_value()) << worlds.error().to_string();
    return worlds ? std::move(*worlds) : std::vector<World>();
  }
  /// Answers with who called and what it was given.
  static void serve_echo(World& world, const HandlerOptions& options = {}) {
    const Status status = world.register_handler(
        "echo",
        [](const IncomingCall& call) -> Result<CallAnswer> {
          return answer_of(std::to_string(call.source) + ":" + text_of(call.arguments));
        },
        options);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  /// A handler that runs until it is let go, or nobody waits for it.
  struct Gate {
    std::atomic<int> entered{0}, saw_cancel{0};
    std::atomic<bool> open{false};
  };
  static void serve_gate(World& world, Gate& gate) {
    const Status status = world.register_handler("gate", [&gate](const IncomingCall& call) -> Result<CallAnswer> {
      ++gate.entered;
      EXPECT_TRUE(soon([&] { return gate.open || call.is_cancelled(); }));
      if (call.is_cancelled()) ++gate.saw_cancel;
      return CallAnswer();
    });
    ASSERT_TRUE(status.ok());
  }
  /// Within ten seconds.
  template <typename Condition>
  static bool soon(Condition condition) {
    for (int i = 0; i < 10'000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
    return condition();
  }
};

TEST_P(CallTest, AnyRankCallsAnyRankAndItself) {
  std::vector<World> worlds = open(3);
  for (World& world : worlds) serve_echo(world, {.runs_inline = world.rank() == 1});
  for (World& from : worlds) {
    for (std::uint32_t to = 0; to < 3; ++to) {
      const Result<CallAnswer> answer = from.call(to, "echo", bytes_of("x"));
      ASSERT_TRUE(answer.has_value()) << answer.error().to_string();
      EXPECT_EQ(text_of(*answer), std::to_string(from.rank()) + ":x");
    }
  }
}

// The world's own timeout is three times as long as `soon` waits.
TEST_P(CallTest, ACallWithinAHandlerEndsByTheDeadlineOfItsCaller) {
  std::vector<World> worlds = open(2);
  Gate gate;
  serve_gate(worlds[0], gate);
  std::atomic<int> code{-1};
  ASSERT_TRUE(worlds[1]
                  .register_handler("nested",
                                    [&](const IncomingCall&) -> Result<CallAnswer> {
                                      Result<CallAnswer> inner = worlds[1].call(0, "gate", {});
                                      code = inner ? 0 : static_cast<int>(inner.error().code());
                                      return inner;
                                    })
                  .ok());
  const Result<CallAnswer> answer = worlds[0].call(1, "nested", {}, {.timeout = 200ms});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), Code::kTimedOut);
  EXPECT_TRUE(soon([&] { return code != -1; })) << "it waits on, though nobody waits for it";
  EXPECT_EQ(code, static_cast<int>(Code::kTimedOut));
  gate.open = true;
  // What a thread of the library ran before does not end what it runs next.
  serve_echo(worlds[0]);
  ASSERT_TRUE(
      worlds[1]
          .register_handler("through", [&](const IncomingCall&) { return worlds[1].call(0, "echo", bytes_of("y")); })
          .ok());
  for (int i = 0; i < 8; ++i) {
    const Result<CallAnswer> through = worlds[0].call(1, "through", {});
    ASSERT_TRUE(through.has_value()) << through.error().to_string();
    EXPECT_EQ(text_of(*through), "1:y");
  }
}

TEST_P(CallTest, ArgumentsAndAnswersOfAllSizes) {
  std::vector<World> worlds = open(2);
  serve_echo(worlds[1]);
  for (const std::size_t size : {0U, 1U, 65'471U, 65'473U, 3'000'000U}) {
    const std::string arguments(size, 'a');
    const Result<CallAnswer> answer = worlds[0].call(1, "echo", bytes_of(arguments));
    ASSERT_TRUE(answer.has_value()) << answer.error().to_string();
    EXPECT_EQ(text_of(*answer), "0:" + arguments);
  }
}

TEST_P(CallTest, ErrorsComeBackWithCodeAndText) {
  std::vector<World> worlds = open(2);
  ASSERT_TRUE(
      worlds[1]
          .register_handler(
              "deny", [](const IncomingCall&) -> Result<CallAnswer> { return Status(Code::kDenied, "not today"); })
          .ok());
  ASSERT_TRUE(
      worlds[1]
          .register_handler(
              "throw", [](const IncomingCall&) -> Result<CallAnswer> { throw std::runtime_error("broken inside"); })
          .ok());
  const auto error_of = [&](const char* name) { return worlds[0].call(1, name, {}).error(); };
  EXPECT_EQ(error_of("deny").code(), Code::kDenied);
  EXPECT_NE(error_of("deny").to_string().find("handler 'deny' of rank 1: not today"), std::string::npos);
  EXPECT_EQ(error_of("throw").code(), Code::kFailed);
  EXPECT_NE(error_of("throw").to_string().find("broken inside"), std::string::npos);
  EXPECT_EQ(error_of("nothing").code(), Code::kNotFound);
  EXPECT_EQ(worlds[0].call(2, "deny", {}).error().code(), Code::kInvalid);
  const auto nothing = [](const IncomingCall&) -> Result<CallAnswer> { return CallAnswer(); };
  EXPECT_EQ(worlds[1].register_handler("deny", nothing).code(), Code::kInvalid);
  EXPECT_EQ(worlds[1].register_handler("", nothing).code(), Code::kInvalid);
  EXPECT_TRUE(worlds[1].register_handler(std::string(255, 'n'), nothing).ok());
  EXPECT_EQ(worlds[1].register_handler(std::string(256, 'n'), nothing).code(), Code::kInvalid);
  EXPECT_EQ(worlds[1].register_handler("empty", {}).code(), Code::kInvalid);
}

TEST_P(CallTest, ADeadlineEndsTheCallAndTellsTheHandler) {
  Gate gate;
  std::vector<World> worlds = open(2);
  serve_gate(worlds[1], gate);
  serve_echo(worlds[1]);
  const Result<CallAnswer> late = worlds[0].call(1, "gate", {}, {.timeout = 50ms});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), Code::kTimedOut);
  EXPECT_NE(late.error().to_string().find("handler 'gate' of rank 1"), std::string::npos) << late.error().to_string();
  EXPECT_TRUE(soon([&] { return gate.saw_cancel == 1; }));
  EXPECT_TRUE(worlds[0].call(1, "echo", {}).has_value());
}

TEST_P(CallTest, ACallWithoutTimeIsNotSent) {
  std::atomic<int> runs = 0;
  std::vector<World> worlds = open(2);
  const auto count = [&](const IncomingCall&) -> Result<CallAnswer> { return ++runs, CallAnswer(); };
  ASSERT_TRUE(worlds[1].register_handler("count", count).ok());
  ASSERT_TRUE(worlds[0].register_handler("count", count).ok());
  for (const std::uint32_t to : {0u, 1u}) {
    for (const Duration timeout : {Duration(1), Duration(1us) - Duration(1)}) {
      const Result<CallAnswer> none = worlds[0].call(to, "count", {}, {.timeout = timeout});
      ASSERT_FALSE(none.has_value());
      EXPECT_EQ(none.error().code(), Code::kTimedOut);
      EXPECT_NE(none.error().to_string().find("was not sent"), std::string::npos) << none.error().to_string();
    }
    EXPECT_TRUE(worlds[0].call(to, "count", {}).has_value());
  }
  EXPECT_EQ(runs, 2);
}

TEST_P(CallTest, ACallThatIsCancelledOrDroppedTellsTheHandler) {
  Gate gate;
  std::vector<World> worlds = open(2);
  serve_gate(worlds[1], gate);
  Request call = worlds[0].icall(1, "gate", {});
  ASSERT_TRUE(soon([&] { return gate.entered == 1; }));
  call.cancel();
  EXPECT_EQ(call.status().code(), Code::kCancelled);
  EXPECT_TRUE(soon([&] { return gate.saw_cancel == 1; }));
  {
    const Request dropped = worlds[0].icall(1, "gate", {});
    ASSERT_TRUE(soon([&] { return gate.entered == 2; }));
  }
  EXPECT_TRUE(soon([&] { return gate.saw_cancel == 2; }));
}

TEST_P(CallTest, ArgumentsAreFreeOnceTheCallHasEnded) {
  std::vector<World> worlds = open(2);
  serve_echo(worlds[1]);
  for (int i = 0; i < 20; ++i) {
    const std::string arguments(2'000'000, static_cast<char>('a' + i));
    Request call = worlds[0].icall(1, "echo", bytes_of(arguments));
    if (i % 2 == 0) call.cancel();
  }
  EXPECT_TRUE(worlds[0].call(1, "echo", {}).has_value());
}

TEST_P(CallTest, HandlersRunAtOnceAndCallOthers) {
  std::atomic<int> inside{0};
  std::vector<World> worlds = open(3);
  serve_echo(worlds[2]);
  ASSERT_TRUE(worlds[1]
                  .register_handler("pass on",
                                    [&](const IncomingCall& call) -> Result<CallAnswer> {
                                      ++inside;
                                      EXPECT_TRUE(soon([&] { return inside >= 2 || call.is_cancelled(); }));
                                      return worlds[1].call(2, "echo", call.arguments);
                                    })
                  .ok());
  Request first = worlds[0].icall(1, "pass on", bytes_of("a")), second = worlds[0].icall(1, "pass on", bytes_of("b"));
  ASSERT_TRUE(first.wait(20s).ok()) << first.status().to_string();
  ASSERT_TRUE(second.wait(20s).ok());
  EXPECT_EQ(text_of(first.bytes()), "1:a");
  EXPECT_EQ(text_of(second.bytes()), "1:b");
}

TEST_P(CallTest, MoreThanMayWaitAreAnsweredAllTheSame) {
  std::vector<World> worlds = open(2);
  serve_echo(worlds[1]);
  std::vector<Request> calls;
  constexpr int kCount = 3000;  // Beyond kJobsMax.
  const std::string arguments(100, 'a');
  for (int i = 0; i < kCount; ++i) calls.push_back(worlds[0].icall(1, "echo", bytes_of(arguments)));
  for (Request& call : calls) ASSERT_TRUE(call.wait(30s).ok()) << call.status().to_string();
}

TEST_P(CallTest, CallsToARankThatFailsEnd) {
  Gate gate, other;
  std::vector<World> worlds = open(3);
  serve_gate(worlds[1], gate);
  serve_gate(worlds[2], other);
  serve_echo(worlds[2]);
  Request call = worlds[0].icall(1, "gate", {});
  Request from_it = worlds[1].icall(2, "gate", {});
  ASSERT_TRUE(soon([&] { return gate.entered == 1 && other.entered == 1; }));
  ASSERT_TRUE(worlds[1].close(10s).ok());
  EXPECT_EQ(gate.saw_cancel, 1);  // Closing waited for it.
  EXPECT_EQ(from_it.status().code(), Code::kCancelled);
  EXPECT_EQ(call.wait(20s).code(), Code::kDisconnected) << call.status().to_string();
  EXPECT_TRUE(soon([&] { return other.saw_cancel == 1; }));  // Its caller is gone.
  EXPECT_EQ(worlds[0].call(1, "gate", {}).error().code(), Code::kDisconnected);
  EXPECT_TRUE(worlds[0].call(2, "echo", {}).has_value());  // Others go on.
}

TEST_P(CallTest, AGroupHasHandlersOfItsOwn) {
  std::vector<World> worlds = open(2);
  serve_echo(worlds[1]);
  World a = worlds[0].duplicate().value(), b = worlds[1].duplicate().value();
  EXPECT_EQ(a.call(1, "echo", {}).error().code(), Code::kNotFound);
  serve_echo(b);
  EXPECT_TRUE(a.call(1, "echo", {}).has_value());
  ASSERT_TRUE(b.close(10s).ok());
  EXPECT_EQ(a.call(1, "echo", {}, {.timeout = 100ms}).error().code(), Code::kTimedOut);
  EXPECT_TRUE(worlds[0].call(1, "echo", {}).has_value());
}

TEST_P(CallTest, AHandlerMayCloseItsWorld) {
  std::atomic<bool> closed{false};
  std::vector<World> worlds = open(2);
  ASSERT_TRUE(worlds[1]
                  .register_handler("close",
                                    [&](const IncomingCall&) -> Result<CallAnswer> {
                                      EXPECT_TRUE(worlds[1].close(10s).ok());
                                      closed = true;
                                      return CallAnswer();
                                    })
                  .ok());
  EXPECT_EQ(worlds[0].call(1, "close", {}).error().code(), Code::kDisconnected);
  EXPECT_TRUE(soon([&] { return closed.load(); }));
}

TEST_P(CallTest, AHandlerThatDoesNotEndIsToldOfByClose) {
  std::atomic<bool> open_it{false}, entered{false};  // They outlive the worlds, and so the handler.
  std::vector<World> worlds = open(2);
  ASSERT_TRUE(worlds[1]
                  .register_handler("deaf",
                                    [&](const IncomingCall&) -> Result<CallAnswer> {
                                      entered = true;
                                      EXPECT_TRUE(soon([&] { return open_it.load(); }));
                                      return CallAnswer();
                                    })
                  .ok());
  World group = worlds[1].duplicate().value();
  Request call = worlds[0].icall(1, "deaf", {});
  ASSERT_TRUE(soon([&] { return entered.load(); }));
  const Status status = worlds[1].close(100ms);
  EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
  EXPECT_NE(status.to_string().find("handler"), std::string::npos);
  open_it = true;
}

INSTANTIATE_TEST_SUITE_P(Over, CallTest, testing::ValuesIn(with_quic<std::string>({"any", "shm", "tcp"}, "quic")),
                         [](const auto& it) { return it.param; });

// It runs in the middle of what each of them would wait for.
TEST(Calls, AnInlineHandlerMayCallNothingOfItsWorld) {
  std::vector<World> worlds = World::local(2).value();
  std::vector<Status> told;
  std::atomic<bool> has_told{
      false};  // ThreadSanitizer does not see the order that the answer brings over shared memory.
  const auto handler = [&](const IncomingCall&) -> Result<CallAnswer> {
    World& world = worlds[1];
    std::byte byte{};
    Request request = world.ibarrier();
    told = {world.barrier(),  world.send({&byte, 1}, 0, 0), world.call(0, "none", {}).error(),
            request.status(), world.split(0).error(),       world.close(10ms)};
    has_told = true;
    return CallAnswer{};
  };
  ASSERT_TRUE(worlds[1].register_handler("calls", handler, {.runs_inline = true}).ok());
  EXPECT_TRUE(worlds[0].call(1, "calls", {}, {.timeout = 20s}));
  ASSERT_TRUE(has_told);
  EXPECT_EQ(told.size(), 6u);
  for (const Status& status : told) {
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
    EXPECT_NE(status.to_string().find("inline handler"), std::string::npos) << status.to_string();
  }
  EXPECT_TRUE(worlds[1].close(20s).ok());
}

// What stands beside its world takes the same lock.
TEST(Calls, AnInlineHandlerIsRefusedByPeersAndRegionsOfItsWorld) {
  std::vector<World> worlds = World::local(2).value();
  Region kept = worlds[1].allocate({.name = "kept", .size = 4096}).value();
  std::optional<Region> dropped = worlds[1].allocate({.name = "dropped", .size = 4096}).value();
  std::vector<Status> told;
  std::atomic<bool> is_over{false};
  bool is_direct = false;
  const auto handler = [&](const IncomingCall&) -> Result<CallAnswer> {
    Peer caller = worlds[1].peer(0);
    told = {caller.notify("x"),
            caller.send(20, {}).error(),
            caller.send(20, {}, 20s).error(),
            caller.connect(20s),
            caller.reconnect(),
            caller.await_regions(std::span<const std::string_view>(), 20s),
            kept.close(20s),
            kept.grant(0, 8, Rights::kRead, 1s).error()};
    is_direct = worlds[1].has_direct_peer(0);
    (void)caller.acknowledged();
    dropped.reset();
    is_over = true;
    return CallAnswer{};
  };
  ASSERT_TRUE(worlds[1].register_handler("asks", handler, {.runs_inline = true}).ok());
  EXPECT_TRUE(worlds[0].call(1, "asks", {}, {.timeout = 20s}));
  ASSERT_TRUE(is_over);
  EXPECT_TRUE(is_direct);
  EXPECT_EQ(told.size(), 8u);
  for (const Status& status : told) {
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
    EXPECT_NE(status.to_string().find("inline handler"), std::string::npos) << status.to_string();
  }
  EXPECT_TRUE(kept.close(20s).ok());
  EXPECT_TRUE(worlds[1].close(20s).ok());
}

// Nothing of these waits there.
TEST(Calls, AnInlineHandlerMayLookAtItsWorldAndCancel) {
  std::vector<World> worlds = World::local(2).value();
  std::byte byte{};
  Request receive = worlds[1].ireceive({&byte, 1}, 0, 7);
  std::optional<Request> dropped = worlds[1].ireceive({&byte, 1}, 0, 8);
  std::atomic<std::size_t> ranks_failed{7};
  std::atomic<bool> is_over{false};
  const auto handler = [&](const IncomingCall&) -> Result<CallAnswer> {
    const World& world = worlds[1];
    ranks_failed = world.failed().size() + worlds[1].acknowledge().size() + world.failures(0, 20s).size() +
                   world.last_number() + (world.probe(0, 9, 20s) ? 1 : 0);
    receive.cancel();
    dropped.reset();
    is_over = true;
    return CallAnswer{};
  };
  ASSERT_TRUE(worlds[1].register_handler("looks", handler, {.runs_inline = true}).ok());
  EXPECT_TRUE(worlds[0].call(1, "looks", {}, {.timeout = 20s}));
  ASSERT_TRUE(is_over);
  EXPECT_EQ(ranks_failed, 0u);
  EXPECT_EQ(receive.wait(20s).code(), Code::kCancelled);
  ASSERT_TRUE(worlds[0].send({&byte, 1}, 1, 8).ok());  // Nobody takes it.
  EXPECT_TRUE(worlds[1].probe(0, 8, 20s));
}

TEST(Calls, AnInlineHandlerMayRevokeItsWorld) {
  std::vector<World> worlds = World::local(2).value();
  const auto handler = [&](const IncomingCall&) -> Result<CallAnswer> {
    worlds[1].revoke(Status(Code::kCancelled, "enough"));
    return CallAnswer{};
  };
  ASSERT_TRUE(worlds[1].register_handler("revokes", handler, {.runs_inline = true}).ok());
  Request barrier = worlds[0].ibarrier();
  EXPECT_TRUE(worlds[0].call(1, "revokes", {}, {.timeout = 20s}));
  const Status ended = barrier.wait(20s);
  EXPECT_NE(ended.to_string().find("enough"), std::string::npos) << ended.to_string();
}

// It ends by another thread then, and its agent with it.
TEST(Calls, AnInlineHandlerMayDropTheLastHandleOfItsWorld) {
  for (const bool is_group : {false, true}) {
    std::vector<World> worlds = World::local(2).value();
    const std::vector<std::uint32_t> both = {0, 1};
    std::vector<World> groups;
    if (is_group) {
      for (World& world : worlds) groups.push_back(world.group(both).value());
    }
    std::vector<World>& used = is_group ? groups : worlds;
    auto last = std::make_shared<World>(std::move(used[1]));
    std::atomic<bool> is_dropped{false};
    const auto handler = [&last, &is_dropped](const IncomingCall&) -> Result<CallAnswer> {
      last.reset();
      is_dropped = true;
      return CallAnswer{};
    };
    ASSERT_TRUE(last->register_handler("drops", handler, {.runs_inline = true}).ok());
    (void)used[0].call(1, "drops", {}, {.timeout = 20s});
    EXPECT_TRUE(is_dropped);
    if (is_group) {
      Request barrier = worlds[1].ibarrier();
      EXPECT_TRUE(worlds[0].barrier({.timeout = 20s}).ok());
      EXPECT_TRUE(barrier.wait(20s).ok());
    } else {
      EXPECT_EQ(used[0].barrier({.timeout = 20s}).code(), Code::kDisconnected);
    }
  }
}

}  // namespace
}  // namespace hawser
