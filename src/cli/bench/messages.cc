#include "cli/bench/messages.h"

#include <deque>

#include "cli/bench/message_channel.h"
#include "cli/bench/pace.h"
#include "cli/bench/until_room.h"
#include "cli/interrupt.h"

namespace hawser::cli::bench {
namespace {

constexpr std::int64_t kMessagePatience = 10'000'000'000;
constexpr Duration kMessageLook = std::chrono::milliseconds(10);

Result<double> send_messages(Stage& stage, const Load& load, Duration budget) {
  Pace pace(load.shape().bytes(), budget);
  const std::span<const std::byte> bytes = load.local();
  std::int64_t last = now_ns();
  while (pace.goes_on()) {
    const Status status = stage.peer().send(kBenchChannel, bytes).error();
    if (status.ok()) {
      pace.count();
      last = now_ns();
    } else if (status.code() != Code::kBusy || now_ns() - last > kMessagePatience) {
      return status;
    }
    stage.agent().poll();
  }
  return pace.gb_per_s();
}

void let_others_work(Agent& agent, Turns turns) {
  if (turns == Turns::kSleeping) {
    agent.wait(kMessageLook);
  } else {
    agent.poll();
  }
}

/// As await_notification, but the processor is left to others.
Status sleep_until_notified(Agent& agent, Notification& room) {
  const std::int64_t deadline = now_ns() + kMessagePatience;
  while (agent.take_notifications({&room, 1}) == 0) {
    agent.wait(kMessageLook);
    HAWSER_TRY(interrupt_status());
    if (now_ns() > deadline) return Status(Code::kTimedOut, "no notification came from the second process");
  }
  return Status();
}

// The child takes every notification, and answers the last one: by then it has seen all of them.
Result<double> write_messages(Stage& stage, Load& load, std::size_t window, Duration budget, Turns turns) {
  Pace pace(load.shape().bytes(), budget);
  std::deque<Transfer> in_flight;
  const auto end_one = [&]() -> Status {
    if (turns == Turns::kSleeping) {
      HAWSER_TRY(in_flight.front().wait(Duration(kMessagePatience)));
    } else {
      HAWSER_TRY(finish(stage.agent(), in_flight.front()));
    }
    in_flight.pop_front();
    pace.count();
    return Status();
  };
  const auto begin_one = [&](std::string_view text) -> Status {
    // The child's inbox may be full where it is slower than these writes.
    HAWSER_TRY_ASSIGN(Transfer transfer,
                      until_room(
                          Duration(kMessagePatience), [&] { return load.plan(0).submit({.notify = text}); },
                          [&] { let_others_work(stage.agent(), turns); }));
    in_flight.push_back(std::move(transfer));
    return Status();
  };
  while (pace.goes_on()) {
    while (in_flight.size() >= window) HAWSER_TRY(end_one());
    HAWSER_TRY(begin_one("message"));
  }
  HAWSER_TRY(begin_one(kLastMessage));
  while (!in_flight.empty()) HAWSER_TRY(end_one());
  Notification room;
  HAWSER_TRY(turns == Turns::kSleeping ? sleep_until_notified(stage.agent(), room)
                                       : await_notification(stage.agent(), room));
  return pace.gb_per_s();
}

}  // namespace

Result<double> measure_messages(Stage& stage, Load& load, std::size_t window, Duration budget, Turns turns) {
  if (load.shape().bytes() <= kMessageMax) {
    return stage.measure({{"mode", "messages"}}, [&] { return send_messages(stage, load, budget); });
  }
  return stage.measure({{"mode", "heed"}}, [&] { return write_messages(stage, load, window, budget, turns); });
}

}  // namespace hawser::cli::bench
