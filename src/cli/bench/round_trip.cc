#include "cli/bench/round_trip.h"

#include "cli/bench/sampler.h"

namespace hawser::cli::bench {

Result<Ping> make_ping(Stage& stage) {
  Ping ping;
  HAWSER_TRY_ASSIGN(ping.source, stage.agent().allocate({.name = "ping", .size = 4096}));
  HAWSER_TRY(stage.remote_memory("ping", 4096, MemoryKind::kAllocated).status());
  const LocalRange from = ping.source.range(0, 8);
  const RemoteRange to = stage.peer().range("ping", 0, 8);
  HAWSER_TRY_ASSIGN(ping.plan, stage.agent().plan_write(stage.peer(), {&from, 1}, {&to, 1}));
  return ping;
}

Status notify_round_trip(Agent& agent, const Plan& plan, Notification& room, const SubmitOptions& options) {
  const Result<Transfer> sent = plan.submit(options);
  if (!sent) return sent.error();
  HAWSER_TRY(await_notification(agent, room));
  return sent->done() ? sent->status() : finish(agent, *sent);
}

Result<double> notify_round_trips(Stage& stage, const Plan& plan, Duration budget,
                                  std::vector<std::uint64_t>& singles) {
  const SubmitOptions options{.notify = "ping", .priority = Priority::kCritical};
  Notification room;
  return stage.measure({{"mode", "echo"}}, [&]() -> Result<double> {
    return sample_ns(budget, 1, &singles, [&] { return notify_round_trip(stage.agent(), plan, room, options); });
  });
}

Result<double> message_round_trips(Stage& stage, Duration budget, std::vector<std::uint64_t>& singles) {
  Notification room;
  return stage.measure({{"mode", "echo"}}, [&]() -> Result<double> {
    return sample_ns(budget, 1, &singles, [&]() -> Status {
      HAWSER_TRY(stage.peer().notify("8 bytes."));
      return await_notification(stage.agent(), room);
    });
  });
}

}  // namespace hawser::cli::bench
