#include "runtime/user_messages.h"

#include <algorithm>
#include <utility>

#include "runtime/calls.h"
#include "runtime/message_operations.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {

using agent::inner::Need;

Status UserMessages::check_rank(std::string_view call, std::uint32_t rank) const {
  return runtime::check_rank(call, site_.name, rank, site_.roster->size());
}

Request UserMessages::send(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
                           const MessageOptions& options) const {
  return begin_send(make_send(bytes), to, tag, options);
}

Request UserMessages::send_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                                 const MessageOptions& options) const {
  Result<std::shared_ptr<Send>> made = make_send(parts);
  if (!made) return site_.requests->request(std::make_shared<Send>(), made.error());
  return begin_send(std::move(*made), to, tag, options);
}

Status UserMessages::prepare(Send& send, std::uint32_t to, std::uint64_t tag, const MessageOptions& options) const {
  if (Status bad = check_rank("send", to); !bad.ok()) return bad;
  send.to = site_.roster->peer(to);
  send.envelope.world = site_.world;
  send.envelope.tag = tag;
  send.priority = options.priority;
  return {};
}

Need UserMessages::start(Send& send, std::uint32_t to, Duration timeout, Instant now) const {
  if (!site_.aborted->ok()) return site_.requests->end_unbegun(send, *site_.aborted);
  if (const Status gone = site_.failures->why_gone(to); !gone.ok()) return site_.requests->end_unbegun(send, gone);
  Mailbox& mailbox = *site_.seat->mailbox;
  mailbox.start(send, site_.requests->deadline(timeout, now), now);
  mailbox.run_jobs(now);
  return send.final.load(std::memory_order_relaxed) ? Need::kNothing : Need::kTurn;
}

Request UserMessages::begin_send(std::shared_ptr<Send> operation, std::uint32_t to, std::uint64_t tag,
                                 const MessageOptions& options) const {
  if (Status bad = prepare(*operation, to, tag, options); !bad.ok()) return site_.requests->request(operation, bad);
  operation->self = operation;
  return site_.requests->begin(operation, "send",
                               [this, send = operation.get(), to, timeout = options.timeout](Instant now) {
                                 return start(*send, to, timeout, now);
                               });
}

Request UserMessages::receive(std::optional<std::span<std::byte>> into, std::uint32_t from,
                              std::optional<std::uint64_t> tag, const MessageOptions& options) const {
  return begin_receive(make_receive(into), from, tag, options);
}

Request UserMessages::receive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                                    std::optional<std::uint64_t> tag, const MessageOptions& options) const {
  Result<std::shared_ptr<Receive>> made = make_receive(parts);
  if (!made) return site_.requests->request(std::make_shared<Receive>(), made.error());
  return begin_receive(std::move(*made), from, tag, options);
}

Status UserMessages::prepare(Receive& receive, std::uint32_t from, std::optional<std::uint64_t> tag,
                             const MessageOptions& options) const {
  if (from != kAnySource) {
    if (Status bad = check_rank("receive", from); !bad.ok()) return bad;
  }
  receive.pattern = pattern_of(from, tag);
  receive.is_exact = options.exact;
  receive.buffers = site_.buffers;
  return {};
}

Need UserMessages::start(Receive& receive, std::uint32_t from, Duration timeout, Instant now) const {
  if (!site_.aborted->ok()) return site_.requests->end_unbegun(receive, *site_.aborted);
  start_receive(receive, from, site_.requests->deadline(timeout, now), now);
  if (receive.asked_id != 0) return Need::kTurn;  // Its sender is told that it may send.
  return receive.final.load(std::memory_order_relaxed) ? Need::kNothing : Need::kDriver;
}

Request UserMessages::begin_receive(std::shared_ptr<Receive> operation, std::uint32_t from,
                                    std::optional<std::uint64_t> tag, const MessageOptions& options) const {
  if (Status bad = prepare(*operation, from, tag, options); !bad.ok()) return site_.requests->request(operation, bad);
  operation->self = operation;
  return site_.requests->begin(operation, "receive",
                               [this, receive = operation.get(), from, timeout = options.timeout](Instant now) {
                                 return start(*receive, from, timeout, now);
                               });
}

std::vector<Request> UserMessages::batch(std::span<const OutgoingMessage> sends,
                                         std::span<const AwaitedMessage> receives,
                                         const MessageOptions& options) const {
  struct Outgoing {
    std::shared_ptr<Send> send;
    std::uint32_t to = 0;
  };
  struct Awaited {
    std::shared_ptr<Receive> receive;
    std::uint32_t from = 0;
  };
  std::vector<std::shared_ptr<Operation>> all;
  std::vector<Outgoing> outgoing;
  std::vector<Awaited> awaited;
  const auto admit = [&all](const auto& operation, const Status& bad) {
    all.push_back(operation);
    if (bad.ok()) operation->self = operation;
    if (!bad.ok()) Requests::refuse(*operation, bad);
    return bad.ok();
  };
  for (const OutgoingMessage& each : sends) {
    std::shared_ptr<Send> made = make_send(each.bytes);
    if (admit(made, prepare(*made, each.to, each.tag, options))) outgoing.push_back({std::move(made), each.to});
  }
  for (const AwaitedMessage& each : receives) {
    std::shared_ptr<Receive> made = make_receive(each.any_size ? std::nullopt : std::optional(each.into));
    if (admit(made, prepare(*made, each.from, each.tag, options))) awaited.push_back({std::move(made), each.from});
  }
  // Receives first: what comes meanwhile goes to its place at once.
  const auto begin = [this, outgoing, awaited, timeout = options.timeout](Instant now) {
    Need need = Need::kNothing;
    for (const Awaited& each : awaited) need = std::max(need, start(*each.receive, each.from, timeout, now));
    for (const Outgoing& each : outgoing) need = std::max(need, start(*each.send, each.to, timeout, now));
    return need;
  };
  return site_.requests->begin_several(all, "batch", begin);
}

/// Under the lane. What came before its sender failed may still be received.
void UserMessages::start_receive(Receive& receive, std::uint32_t from, Instant deadline, Instant now) const {
  Mailbox& mailbox = *site_.seat->mailbox;
  const bool is_here = mailbox.probe(receive.pattern) != nullptr;
  const RankFates& fates = site_.failures->fates();
  Status lost = from == kAnySource ? fates.unacknowledged() : fates.failure(from);
  if (from != kAnySource && lost.ok()) lost = site_.failures->why_gone(from);
  mailbox.start(receive, deadline, now);
  if (!is_here && !lost.ok()) mailbox.stop(receive, lost, now);
  mailbox.run_jobs(now);
}

Pattern UserMessages::pattern_of(std::uint32_t from, std::optional<std::uint64_t> tag) const {
  const void* const source = from == kAnySource ? nullptr : source_of(site_.roster->peer(from));
  return {.world = site_.world, .source = source, .members = &site_.roster->sources(), .tag = tag};
}

std::optional<Received> UserMessages::probe(std::uint32_t from, std::optional<std::uint64_t> tag,
                                            Duration timeout) const {
  if (from != kAnySource && from >= site_.roster->size()) return std::nullopt;
  const Pattern pattern = pattern_of(from, tag);
  const Agent& agent = site_.seat->agent;
  Mailbox& mailbox = *site_.seat->mailbox;
  const Instant until = agent::inner::now(agent) + timeout;
  for (;;) {
    const std::uint64_t seen = mailbox.kept_so_far();
    std::optional<Received> found;
    const Status status = site_.requests->in_lane("probe", [&](Instant) {
      const Arrived* const arrived = mailbox.probe(pattern);
      if (arrived == nullptr) return;
      found = {.source = site_.roster->rank_of(arrived->from).value_or(kAnySource),
               .tag = arrived->envelope.tag,
               .bytes = arrived->envelope.bytes};
    });
    if (found || !status.ok() || runs_inline_for(site_.seat)) return found;
    if (!agent::inner::wait_until(
            agent, [&] { return mailbox.kept_so_far() != seen; }, until))
      return std::nullopt;
  }
}

Received UserMessages::received(const Receive& receive) const {
  return {.source = site_.roster->rank_of(receive.from).value_or(kAnySource),
          .tag = receive.got.tag,
          .bytes = receive.received};
}

}  // namespace hawser::runtime
