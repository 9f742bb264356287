// Plans, transfers and completion queues.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

/// One side of a plan, as a program may name it.
struct Side {
  std::vector<TableHandle> tables;
  bool is_one_table = false;  ///< It was not given in a list.
  std::vector<RangeHandle> local;
  std::vector<RemoteRangeHandle> remote;
};

/// Which side of which call an argument is.
struct Place {
  Operation operation;
  bool is_local;
};

/// Mostly the two sides were given in the order of another call.
[[noreturn]] void raise_misplaced(const Place& place, const std::string& is) {
  const bool is_write = place.operation == Operation::kWrite;
  const std::string call = is_write ? "plan_write" : "plan_read";
  const char* const argument = is_write == place.is_local ? "source" : "target";
  raise_invalid(
      call + ": " + argument + " must be " +
          (place.is_local ? "memory of this agent (a Region, Range or Table of it, an array, or a list of them)"
                          : "memory of the peer (a RemoteRange or a Table of it, or a list of them)") +
          ", and is " + is,
      is_write ? "write(peer, source, target): source is here, target is what Peer.range, .region or .table give"
               : "read(peer, source, target): source is what Peer.range, .region or .table give, target is here");
}

void add_table(const TableHandle& table, const Place& place, Side& side) {
  const bool is_local = table.region != nullptr;
  if (is_local != place.is_local) raise_misplaced(place, is_local ? "a Table of this agent" : "a Table of a peer");
  side.tables.push_back(table);
}

void add_part(const AgentHandle& agent, nb::handle from, const Place& place, Side& side) {
  const RangeHandle* range = nullptr;
  const RegionHandle* region = nullptr;
  const RemoteRangeHandle* remote = nullptr;
  const bool is_remote = nb::try_cast(from, remote) && remote != nullptr;
  if (is_remote == place.is_local || from.is_none() || nb::isinstance<PeerHandle>(from)) {
    raise_misplaced(place, kind_of(from));
  }
  if (is_remote) {
    side.remote.push_back(*remote);
  } else if (nb::try_cast(from, range) && range != nullptr) {
    side.local.push_back(*range);
  } else if (nb::try_cast(from, region) && region != nullptr) {
    side.local.push_back({region->state, region->state->region.range(0, region->state->region.size())});
  } else {
    side.local.push_back(range_of(agent, from));
  }
}

Side side_of(const AgentHandle& agent, nb::handle from, const Place& place) {
  Side side;
  const TableHandle* table = nullptr;
  side.is_one_table = nb::try_cast(from, table) && table != nullptr;
  if (side.is_one_table) add_table(*table, place, side);
  if (side.is_one_table) return side;
  if (!PyList_Check(from.ptr()) && !PyTuple_Check(from.ptr())) {
    add_part(agent, from, place, side);
    return side;
  }
  for (nb::handle part : nb::iter(from)) {
    if (nb::try_cast(part, table) && table != nullptr) {
      add_table(*table, place, side);
    } else {
      add_part(agent, part, place, side);
    }
  }
  if (!side.tables.empty() && side.local.size() + side.remote.size() > 0) {
    raise_invalid("a plan's side is a list of tables or a list of ranges, not of both");
  }
  return side;
}

std::vector<RangeTable> tables_of(const Side& side) {
  std::vector<RangeTable> tables;
  for (const TableHandle& handle : side.tables) tables.push_back(handle.table);
  return tables;
}

IndexArray index_of(nb::handle from, const TableHandle& table, const char* what) {
  if (!from.is_none()) return IndexArray(from, what);
  constexpr std::uint64_t kAllMax = 1u << 26;
  if (table.table.size() > kAllMax) raise_invalid(std::string(what) + " is missing, and the table is too long for all");
  return IndexArray(table.table.size());
}

void check_writable(const RegionRef& region) {
  if (!region || region->writable) return;
  raise(Status(Code::kDenied, "plan_read: region '" + std::string(region->region.name()) + "' is read-only memory")
            .with_advice("read into memory that can be written"));
}

struct Request {
  Operation operation;
  nb::handle local, remote, local_index, remote_index;
};

std::shared_ptr<PlanState> plan_tables(Agent& agent, const PeerHandle& peer, const Request& request, const Side& local,
                                       const Side& remote) {
  auto made = std::make_shared<PlanState>();
  const bool is_write = request.operation == Operation::kWrite;
  for (const TableHandle& table : local.tables) {
    if (table.region) made->regions.push_back(table.region);
    if (!is_write) check_writable(table.region);
  }
  const IndexArray ours =
      index_of(request.local_index, local.tables.front(), is_write ? "source_index" : "target_index");
  const IndexArray theirs =
      index_of(request.remote_index, remote.tables.front(), is_write ? "target_index" : "source_index");
  const std::vector<RangeTable> here = tables_of(local), there = tables_of(remote);
  made->plan = take(outside([&] {
    if (local.is_one_table && remote.is_one_table) {
      return is_write ? agent.plan_write(peer.peer, here.front(), ours.view(), there.front(), theirs.view())
                      : agent.plan_read(peer.peer, there.front(), theirs.view(), here.front(), ours.view());
    }
    return is_write ? agent.plan_write(peer.peer, here, ours.view(), there, theirs.view())
                    : agent.plan_read(peer.peer, there, theirs.view(), here, ours.view());
  }));
  return made;
}

std::shared_ptr<PlanState> plan_ranges(Agent& agent, const PeerHandle& peer, const Request& request, const Side& local,
                                       const Side& remote) {
  if (!request.local_index.is_none() || !request.remote_index.is_none()) {
    raise_invalid("a plan of ranges takes no index lists", "give tables on both sides");
  }
  auto made = std::make_shared<PlanState>();
  std::vector<LocalRange> ours;
  for (const RangeHandle& range : local.local) {
    if (request.operation == Operation::kRead) check_writable(range.region);
    if (made->regions.empty() || made->regions.back() != range.region) made->regions.push_back(range.region);
    ours.push_back(range.range);
  }
  std::vector<RemoteRange> theirs;
  for (const RemoteRangeHandle& range : remote.remote) theirs.push_back(range.range);
  made->plan = take(outside([&] {
    return request.operation == Operation::kWrite ? agent.plan_write(peer.peer, ours, theirs)
                                                  : agent.plan_read(peer.peer, theirs, ours);
  }));
  return made;
}

PlanHandle plan(const AgentHandle& self, const PeerHandle& peer, const Request& request) {
  Agent& agent = agent_of(self.state);
  const Side local = side_of(self, request.local, {request.operation, true});
  const Side remote = side_of(self, request.remote, {request.operation, false});
  if (local.tables.empty() != remote.tables.empty()) {
    raise_invalid("a plan has tables on both sides or ranges on both sides");
  }
  std::shared_ptr<PlanState> made = local.tables.empty() ? plan_ranges(agent, peer, request, local, remote)
                                                         : plan_tables(agent, peer, request, local, remote);
  made->agent = self.state;
  return {std::move(made)};
}

PlanHandle join(nb::handle plans) {
  auto made = std::make_shared<PlanState>();
  std::vector<Plan> all;
  for (nb::handle one : nb::iter(plans)) {
    const PlanHandle* plan = nullptr;
    if (!nb::try_cast(one, plan) || plan == nullptr) raise_invalid("Plan.join takes a list of plans");
    made->regions.insert(made->regions.end(), plan->state->regions.begin(), plan->state->regions.end());
    made->agent = plan->state->agent;
    all.push_back(plan->state->plan);
  }
  made->plan = take(outside([&] { return Plan::join(all); }));
  return {std::move(made)};
}

/// `(word, number)`, as signals are given.
template <typename Handle>
const Handle& word_of(nb::handle from, const char* what, std::uint64_t& number) {
  const Handle* word = nullptr;
  if (!PyTuple_Check(from.ptr()) || nb::len(from) != 2 || !nb::try_cast(from[0], word) || word == nullptr ||
      !nb::try_cast(from[1], number)) {
    raise_invalid(std::string("submit: ") + what + " must be (range of 8 bytes, number)" +
                  (std::string_view(what) == "after" ? " or a Transfer" : ""));
  }
  return *word;
}

struct Words {
  SignalTarget signal;
  SignalWord after, done;
};

/// A transfer to follow, or a word to wait for.
void set_after(nb::handle after, Words& words, SubmitOptions& options, std::vector<RegionRef>& held) {
  const TransferHandle* leader = nullptr;
  if (after.is_none()) return;
  if (nb::try_cast(after, leader) && leader != nullptr) {
    options.after_transfer = &leader->transfer;
    return;
  }
  const RangeHandle& word = word_of<RangeHandle>(after, "after", words.after.value);
  words.after.word = word.range;
  held.push_back(word.region);
  options.after = &words.after;
}

void set_words(nb::handle signal, nb::handle after, nb::handle done, Words& words, SubmitOptions& options,
               std::vector<RegionRef>& held) {
  if (!signal.is_none()) {
    words.signal.word = word_of<RemoteRangeHandle>(signal, "signal", words.signal.add).range;
    options.signal = &words.signal;
  }
  set_after(after, words, options, held);
  if (!done.is_none()) {
    const RangeHandle& word = word_of<RangeHandle>(done, "done", words.done.value);
    check_writable(word.region);
    words.done.word = word.range;
    held.push_back(word.region);
    options.done = &words.done;
  }
}

TransferHandle submit_with(const PlanHandle& self, SubmitOptions& options, const QueueHandle* queue) {
  AgentState& agent = *self.state->agent;
  // Held while the lock is given up: another thread may take the loop's queue away.
  const std::shared_ptr<CompletionQueue> reports = queue != nullptr ? queue->queue : agent.loop_queue;
  options.queue = reports.get();
  const bool for_loop = queue == nullptr && reports != nullptr;
  if (for_loop) options.cookie = ++agent.next_ticket;
  const std::uint64_t ticket = for_loop ? options.cookie : 0;
  Result<Transfer> sent = outside([&]() -> Result<Transfer> {
    Result<Transfer> one = self.state->plan.submit(options);
    if (one || !for_loop || one.error().code() != Code::kBusy) return one;
    options.queue = nullptr;  // Nobody empties the loop's queue now: who awaits this one looks for itself.
    return self.state->plan.submit(options);
  });
  TransferHandle made(self.state, take(std::move(sent)));
  made.ticket = options.queue != nullptr ? ticket : 0;
  return made;
}

/// Most calls name no options, and looking for them would be half of what this costs.
TransferHandle submit_plainly(const PlanHandle& self) {
  (void)agent_of(self.state->agent);
  SubmitOptions options;
  return submit_with(self, options, nullptr);
}

Duration deadline_of(nb::handle from, const char* call) {
  const Duration deadline = duration_of(from, "deadline", Duration::zero());
  if (deadline != Duration::zero()) return deadline;
  raise_invalid(std::string(call) + ": the deadline is zero", "None is the default one");
}

TransferHandle submit(const PlanHandle& self, nb::handle notify, nb::handle deadline, const std::string& priority,
                      const QueueHandle* queue, Whole<std::uint64_t, "submit: cookie"> cookie,
                      Whole<std::uint64_t, "submit: label"> label, nb::handle signal, nb::handle after, nb::handle done,
                      bool durable) {
  (void)agent_of(self.state->agent);
  SubmitOptions options{
      .priority = priority_of("submit", priority), .cookie = cookie, .label = label, .durable = durable};
  std::optional<Bytes> text;
  if (!notify.is_none()) options.notify = text.emplace(notify, "notify").view;
  if (!deadline.is_none()) options.deadline = deadline_of(deadline, "submit");
  Words words;
  std::vector<RegionRef> held;
  set_words(signal, after, done, words, options, held);
  TransferHandle made = submit_with(self, options, queue);
  made.words = std::move(held);
  if (options.after_transfer != nullptr) made.leader = nb::borrow(after);
  return made;
}

void wait(TransferHandle& self, nb::handle timeout) {
  const Duration patience = duration_of(timeout, "timeout", Duration::max());  // A wrong one is told in any case.
  if (!self.transfer.done()) {
    (void)agent_of(self.plan->agent);
    // The library itself looks for a while before it sleeps.
    const std::optional<bool> over = wait_in_slices(patience, [&](Duration slice) {
      (void)self.transfer.wait(slice);
      return self.transfer.done();
    });
    if (!over) throw nb::python_error();
    if (!*over) raise(Status(Code::kTimedOut, "Transfer.wait: not final yet; the transfer goes on"));
  }
  check(self.transfer.status());
}

/// Starts it and waits in one: the interpreter is left once, and what nobody asks for is not made.
void run_with(const PlanHandle& self, const SubmitOptions& options) {
  (void)agent_of(self.state->agent);
  constexpr Duration kFirstLook = std::chrono::milliseconds(1);  // Most end within it. The rest waits for Ctrl-C, too.
  Result<Transfer> sent = outside([&] {
    Result<Transfer> one = self.state->plan.submit(options);
    if (one) (void)one->wait(kFirstLook);
    return one;
  });
  if (sent && sent->done() && sent->status().ok()) return;
  TransferHandle transfer(self.state, take(std::move(sent)));
  wait(transfer, nb::none());
}

void run_plainly(const PlanHandle& self) { run_with(self, {}); }

void run(const PlanHandle& self, nb::handle deadline) {
  SubmitOptions options;
  if (!deadline.is_none()) options.deadline = deadline_of(deadline, "run");
  run_with(self, options);
}

nb::str status(const TransferHandle& self) {
  if (!self.transfer.done()) return text_of("in_flight");
  const Status its = self.transfer.status();
  return text_of(its.ok() ? "ok" : name_of(to_string(its.code())));
}

nb::list take_completions(std::span<const Completion> batch) {
  nb::list all;
  for (const Completion& one : batch) {
    all.append(nb::make_tuple(static_cast<int>(one.kind), one.cookie, one.bytes, error_object(one.status)));
  }
  return all;
}

constexpr std::size_t kBatch = 256;

nb::list poll_queue(const QueueHandle& self) {
  std::array<Completion, kBatch> batch;
  return take_completions({batch.data(), self.queue->poll(batch)});
}

nb::list wait_queue(const QueueHandle& self, nb::handle timeout) {
  if (self.pid != ::getpid()) raise_invalid("CompletionQueue.wait: this process is a fork of the agent's");
  std::array<Completion, kBatch> batch;
  std::size_t got = 0;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        got = self.queue->wait(batch, slice);
        return got > 0;
      });
  if (!over) throw nb::python_error();
  return take_completions({batch.data(), got});
}

}  // namespace

PlanHandle plan_write(const AgentHandle& self, const PeerHandle& peer, nb::handle source, nb::handle target,
                      nb::handle source_index, nb::handle target_index) {
  return plan(self, peer, {Operation::kWrite, source, target, source_index, target_index});
}

PlanHandle plan_read(const AgentHandle& self, const PeerHandle& peer, nb::handle source, nb::handle target,
                     nb::handle source_index, nb::handle target_index) {
  return plan(self, peer, {Operation::kRead, target, source, target_index, source_index});
}

void bind_transfers(nb::module_& module) {
  nb::class_<PlanHandle>(module, "Plan", "A validated, prepared transfer, submitted as often as wanted.")
      .def("submit", &submit_plainly, nb::sig("def submit(self) -> Transfer"), "Starts one transfer.")
      .def("submit", &submit, nb::kw_only(), nb::arg("notify") = nb::none(), nb::arg("deadline") = nb::none(),
           nb::arg("priority") = "bulk", nb::arg("queue") = nb::none(), nb::arg("cookie") = 0, nb::arg("label") = 0,
           nb::arg("signal") = nb::none(), nb::arg("after") = nb::none(), nb::arg("done") = nb::none(),
           nb::arg("durable") = false, "Starts one transfer.")
      .def("run", &run_plainly, nb::sig("def run(self) -> None"), "Starts one transfer and waits until it is final.")
      .def("run", &run, nb::kw_only(), nb::arg("deadline") = nb::none(),
           "Starts one transfer and waits until it is final.")
      .def_static("join", &join, nb::arg("plans"),
                  "One plan of several of one peer and operation, in their order: one transfer, one notification.")
      .def_prop_ro(
          "operation",
          [](const PlanHandle& self) { return self.state->plan.operation() == Operation::kWrite ? "write" : "read"; })
      .def_prop_ro("bytes", [](const PlanHandle& self) { return self.state->plan.bytes(); })
      .def_prop_ro("range_count", [](const PlanHandle& self) { return self.state->plan.range_count(); })
      .def_prop_ro("piece_count", [](const PlanHandle& self) { return self.state->plan.piece_count(); });

  nb::class_<TransferHandle>(module, "Transfer", nb::is_weak_referenceable(),
                             "One submission in flight. Dropping it cancels it.")
      .def_prop_ro(
          "done", [](const TransferHandle& self) { return self.transfer.done(); }, "Final? Only looks.")
      .def_prop_ro("status", &status, "in_flight, ok, or the name of what went wrong.")
      .def_prop_ro(
          "error", [](const TransferHandle& self) { return error_object(self.transfer.status()); },
          "The exception that wait would raise, or None.")
      .def_prop_ro(
          "bytes", [](const TransferHandle& self) { return self.transfer.bytes(); }, "Moved so far.")
      .def_prop_ro("agent", [](const TransferHandle& self) { return wrapper_of(self.plan->agent); })
      .def_prop_ro("_ticket", [](const TransferHandle& self) { return self.ticket; })
      .def("wait", &wait, nb::arg("timeout") = nb::none(),
           "Waits until it is final; raises what it ended with, or TimedOutError when the time is over before.")
      .def("cancel", [](TransferHandle& self) {
        (void)agent_of(self.plan->agent);
        outside([&] {
          self.transfer.cancel();
          return 0;
        });
      });

  nb::class_<QueueHandle>(module, "CompletionQueue", "Where finished transfers and other news are reported.")
      .def("poll", &poll_queue, "Entries (kind, cookie, bytes, error) without waiting.")
      .def("wait", &wait_queue, nb::arg("timeout") = nb::none())
      .def("event_fd", [](const QueueHandle& self) { return self.queue->event_fd(); })
      .def_prop_ro("capacity", [](const QueueHandle& self) { return self.queue->capacity(); });
}

}  // namespace hawser::api::python
