// The C ABI: plans, transfers and completion queues.

#include <array>
#include <optional>

#include "api/c/objects.h"

namespace hawser::api {
namespace {

Result<Operation> operation_of(const char* call, int number) {
  if (number == HAWSER_WRITE) return Operation::kWrite;
  if (number == HAWSER_READ) return Operation::kRead;
  return invalid(call, "operation = " + std::to_string(number) + " is neither HAWSER_WRITE nor HAWSER_READ");
}

Status give_plan(const char* call, hawser_plan* out, Plan plan, const Peer& peer) {
  return give_handle(call, out, std::make_unique<PlanObject>(std::move(plan), peer));
}

struct RangePairs {
  std::vector<LocalRange> local;
  std::vector<RemoteRange> remote;
};

/// Neighbours are mostly of one region, which is looked up once.
Result<RangePairs> pairs_of(const char* call, const Peer& peer, const hawser_local_range* local,
                            const hawser_remote_range* remote, std::size_t count) {
  RangePairs pairs{.local = std::vector<LocalRange>(count), .remote = std::vector<RemoteRange>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && local[i].region.id == local[i - 1].region.id) {
      pairs.local[i] = {.region = pairs.local[i - 1].region, .offset = local[i].offset, .size = local[i].size};
    } else {
      HAWSER_TRY_ASSIGN(pairs.local[i], local_range(call, local[i]));
    }
    if (i > 0 && remote[i].region == remote[i - 1].region) {
      pairs.remote[i] = {.region = pairs.remote[i - 1].region, .offset = remote[i].offset, .size = remote[i].size};
    } else {
      HAWSER_TRY_ASSIGN(pairs.remote[i], remote_range(peer, remote[i]));
    }
  }
  return pairs;
}

/// SubmitOptions, and the values that it points to.
struct Submission {
  SubmitOptions options;
  SignalTarget signal;
  SignalWord after, done;
  std::optional<Handles::Ref<QueueObject>> queue;
  std::optional<Handles::Ref<TransferObject>> leader;
};

Status prepare(const char* call, const Peer& peer, const hawser_submit_options& given, Submission& its) {
  HAWSER_TRY(given.notify == nullptr ? not_null(call, nullptr, given.notify_size, "notify") : Status());
  HAWSER_TRY_ASSIGN(its.options.priority, priority_of(call, given.priority, Priority::kBulk));
  if (given.notify != nullptr) its.options.notify.emplace(static_cast<const char*>(given.notify), given.notify_size);
  if (given.deadline_ns < 0) return invalid(call, "deadline_ns is negative");
  its.options.deadline = Duration(given.deadline_ns);
  its.options.cookie = given.cookie;
  its.options.label = given.label;
  its.options.durable = given.durable != 0;
  if (given.queue.id != 0) {
    HAWSER_TRY_ASSIGN(auto queue, find<QueueObject>(call, given.queue));
    its.queue.emplace(std::move(queue));
    its.options.queue = &(*its.queue)->queue;
  }
  if (given.signal != nullptr) {
    HAWSER_TRY_ASSIGN(its.signal.word, remote_range(peer, *given.signal));
    its.signal.add = given.signal_add;
    its.options.signal = &its.signal;
  }
  if (given.after != nullptr) {
    HAWSER_TRY_ASSIGN(its.after.word, local_range(call, *given.after));
    its.after.value = given.after_value;
    its.options.after = &its.after;
  }
  if (given.after_transfer.id != 0) {
    HAWSER_TRY_ASSIGN(auto leader, find<TransferObject>(call, given.after_transfer));
    its.leader.emplace(std::move(leader));
    its.options.after_transfer = &(*its.leader)->transfer;
  }
  if (given.done != nullptr) {
    HAWSER_TRY_ASSIGN(its.done.word, local_range(call, *given.done));
    its.done.value = given.done_value;
    its.options.done = &its.done;
  }
  return {};
}

Status submit(const char* call, hawser_plan plan, const hawser_submit_options* options, hawser_transfer* out) {
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const auto its, find<PlanObject>(call, plan));
  Submission with;
  if (options != nullptr) {
    constexpr std::size_t kLeast = offsetof(hawser_submit_options, durable);  // As in version 1 of the C ABI.
    HAWSER_TRY_ASSIGN(const hawser_submit_options given, options_of(call, "hawser_submit_options", options, kLeast));
    HAWSER_TRY(prepare(call, its->peer, given, with));
  }
  // The handle is made first: a transfer that nobody could be told of must not begin.
  auto object = std::make_unique<TransferObject>(Transfer());
  TransferObject* const made = object.get();
  hawser_transfer handle{};
  HAWSER_TRY(give_handle(call, &handle, std::move(object)));
  Result<Transfer> sent = its->plan.submit(with.options);
  if (!sent) {
    (void)handles().release<TransferObject>(call, handle.id);
    return sent.error();
  }
  made->transfer = std::move(*sent);
  *out = handle;
  return {};
}

hawser_transfer_info info_of(const Transfer& transfer) {
  hawser_transfer_info info{.done = transfer.done() ? 1u : 0u, .bytes = transfer.bytes()};
  if (info.done == 0) return info;
  const Status status = transfer.status();
  if (status.ok()) return info;
  info.code = static_cast<std::int32_t>(status.code());
  info.scope = static_cast<std::uint32_t>(status.scope());
  info.state = static_cast<std::uint32_t>(status.buffer());
  return info;
}

/// `take` fills a span of Completion and gives how many.
template <typename Take>
Status take_completions(const char* call, hawser_completion* out, std::size_t entry_size, std::size_t capacity,
                        std::size_t* taken, Take take) {
  HAWSER_TRY(not_null(call, out, capacity, "out"));
  HAWSER_TRY(not_null(call, taken, "taken"));
  if (entry_size < sizeof(hawser_completion)) {
    return invalid(call, "entry_size = " + std::to_string(entry_size) + " is less than " +
                             std::to_string(sizeof(hawser_completion)) + ": pass sizeof(hawser_completion)");
  }
  constexpr std::size_t kBatch = 64;
  std::array<Completion, kBatch> batch;
  std::size_t done = 0;
  while (done < capacity) {
    const std::size_t room = std::min(kBatch, capacity - done);
    const std::size_t got = take(std::span<Completion>(batch.data(), room), done == 0);
    for (std::size_t i = 0; i < got; ++i) {
      const hawser_completion entry{.size = sizeof(hawser_completion),
                                    .kind = static_cast<std::uint32_t>(batch[i].kind),
                                    .code = static_cast<std::int32_t>(batch[i].status.code()),
                                    .cookie = batch[i].cookie,
                                    .bytes = batch[i].bytes};
      std::memcpy(reinterpret_cast<char*>(out) + (done + i) * entry_size, &entry, sizeof entry);
    }
    done += got;
    if (got < room) break;
  }
  *taken = done;
  return {};
}

}  // namespace

Result<RemoteRange> remote_range(const Peer& peer, const hawser_remote_range& range) {
  HAWSER_TRY_ASSIGN(RemoteRange its, peer.region(range.region));
  its.offset = range.offset;
  its.size = range.size;
  return its;
}

}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_plan_tables(hawser_agent agent, int operation, hawser_peer peer, hawser_table local,
                       const uint32_t* local_index, hawser_table remote, const uint32_t* remote_index, size_t count,
                       hawser_plan* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, local_index, count, "local_index"));
    HAWSER_TRY(not_null(call, remote_index, count, "remote_index"));
    HAWSER_TRY_ASSIGN(const Operation what, operation_of(call, operation));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const auto whom, find<PeerObject>(call, peer));
    HAWSER_TRY_ASSIGN(const auto ours, find<TableObject>(call, local));
    HAWSER_TRY_ASSIGN(const auto theirs, find<TableObject>(call, remote));
    const std::span<const std::uint32_t> here(local_index, count), there(remote_index, count);
    HAWSER_TRY_ASSIGN(Plan plan, what == Operation::kWrite
                                     ? its->agent.plan_write(whom->peer, ours->table, here, theirs->table, there)
                                     : its->agent.plan_read(whom->peer, theirs->table, there, ours->table, here));
    return give_plan(call, out, std::move(plan), whom->peer);
  });
}

int hawser_plan_ranges(hawser_agent agent, int operation, hawser_peer peer, const hawser_local_range* local,
                       const hawser_remote_range* remote, size_t count, hawser_plan* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, local, count, "local"));
    HAWSER_TRY(not_null(call, remote, count, "remote"));
    HAWSER_TRY_ASSIGN(const Operation what, operation_of(call, operation));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const auto whom, find<PeerObject>(call, peer));
    HAWSER_TRY_ASSIGN(const RangePairs pairs, pairs_of(call, whom->peer, local, remote, count));
    HAWSER_TRY_ASSIGN(Plan plan, what == Operation::kWrite
                                     ? its->agent.plan_write(whom->peer, pairs.local, pairs.remote)
                                     : its->agent.plan_read(whom->peer, pairs.remote, pairs.local));
    return give_plan(call, out, std::move(plan), whom->peer);
  });
}

int hawser_plan_info_get(hawser_plan plan, hawser_plan_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PlanObject>(call, plan));
    return give(call, "hawser_plan_info", out,
                hawser_plan_info{.operation = static_cast<std::uint32_t>(its->plan.operation()),
                                 .bytes = its->plan.bytes(),
                                 .range_count = its->plan.range_count(),
                                 .piece_count = its->plan.piece_count()});
  });
}

int hawser_plan_submit(hawser_plan plan, const hawser_submit_options* options, hawser_transfer* out) {
  return run(__func__, [&](const char* call) -> Status { return submit(call, plan, options, out); });
}

int hawser_plan_join(const hawser_plan* plans, size_t count, hawser_plan* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, plans, count, "plans"));
    std::vector<Plan> all;
    Peer peer;
    for (std::size_t i = 0; i < count; ++i) {
      HAWSER_TRY_ASSIGN(const auto its, find<PlanObject>(call, plans[i]));
      all.push_back(its->plan);
      peer = its->peer;
    }
    HAWSER_TRY_ASSIGN(Plan joined, Plan::join(all));
    return give_plan(call, out, std::move(joined), peer);
  });
}

int hawser_plan_release(hawser_plan plan) { return release<PlanObject>(__func__, plan); }

int hawser_transfer_info_get(hawser_transfer transfer, hawser_transfer_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<TransferObject>(call, transfer));
    return give(call, "hawser_transfer_info", out, info_of(its->transfer));
  });
}

int hawser_transfer_wait(hawser_transfer transfer, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<TransferObject>(call, transfer));
    return its->transfer.wait(timeout_of(timeout_ns));
  });
}

int hawser_transfer_cancel(hawser_transfer transfer) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<TransferObject>(call, transfer));
    its->transfer.cancel();
    return {};
  });
}

int hawser_transfer_release(hawser_transfer transfer) { return release<TransferObject>(__func__, transfer); }

int hawser_queue_open(hawser_agent agent, size_t capacity, hawser_queue* out) {
  return run(__func__, [&](const char* call) -> Status {
    constexpr std::size_t kCapacity = 4096;
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(CompletionQueue queue, its->agent.make_queue(capacity == 0 ? kCapacity : capacity));
    return give_handle(call, out, std::make_unique<QueueObject>(std::move(queue)));
  });
}

int hawser_queue_poll(hawser_queue queue, hawser_completion* out, size_t entry_size, size_t capacity, size_t* taken) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<QueueObject>(call, queue));
    return take_completions(call, out, entry_size, capacity, taken,
                            [&](std::span<Completion> room, bool) { return its->queue.poll(room); });
  });
}

int hawser_queue_wait(hawser_queue queue, int64_t timeout_ns, hawser_completion* out, size_t entry_size,
                      size_t capacity, size_t* taken) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<QueueObject>(call, queue));
    return take_completions(call, out, entry_size, capacity, taken, [&](std::span<Completion> room, bool first) {
      return first ? its->queue.wait(room, timeout_of(timeout_ns)) : its->queue.poll(room);
    });
  });
}

int hawser_queue_event_fd(hawser_queue queue, int* fd) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, fd, "fd"));
    HAWSER_TRY_ASSIGN(const auto its, find<QueueObject>(call, queue));
    const int its_fd = its->queue.event_fd();
    if (its_fd < 0) return Status(Code::kFailed, std::string(call) + ": there is no descriptor to be had");
    *fd = its_fd;
    return {};
  });
}

int hawser_queue_capacity(hawser_queue queue, size_t* capacity) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, capacity, "capacity"));
    HAWSER_TRY_ASSIGN(const auto its, find<QueueObject>(call, queue));
    *capacity = its->queue.capacity();
    return {};
  });
}

int hawser_queue_release(hawser_queue queue) { return release<QueueObject>(__func__, queue); }
