// Atomic operations on words of a peer.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

struct Reporting {
  nb::handle deadline;
  const QueueHandle* queue;
  std::uint64_t cookie;
};

/// `ask(agent, word, options)` starts the operation. Where a loop listens it reports there, as transfers do.
template <typename Ask>
AtomicHandle start_atomic(const AgentHandle& self, const RemoteRangeHandle& word, const char* call,
                          const Reporting& how, Ask ask) {
  AgentState& agent = *self.state;
  Agent& its = agent_of(self.state);
  AtomicOptions options{.cookie = how.cookie};
  if (!how.deadline.is_none()) {
    options.deadline = duration_of(how.deadline, "deadline", Duration::zero());
    if (options.deadline == Duration::zero()) {
      raise_invalid(std::string(call) + ": the deadline is zero", "None is the default one");
    }
  }
  // Held while the lock is given up: another thread may take the loop's queue away.
  const std::shared_ptr<CompletionQueue> reports = how.queue != nullptr ? how.queue->queue : agent.loop_queue;
  options.queue = reports.get();
  const bool for_loop = how.queue == nullptr && reports != nullptr;
  if (for_loop) options.cookie = ++agent.next_ticket;
  Result<AtomicOp> started = outside([&]() -> Result<AtomicOp> {
    Result<AtomicOp> one = ask(its, word.range, options);
    if (one || !for_loop || one.error().code() != Code::kBusy) return one;
    options.queue = nullptr;  // Nobody empties the loop's queue now: who awaits this one looks for itself.
    return ask(its, word.range, options);
  });
  AtomicHandle made(self.state, take(std::move(started)));
  made.ticket = for_loop && options.queue != nullptr ? options.cookie : 0;
  return made;
}

AtomicHandle start_fetch_add(const AgentHandle& self, const RemoteRangeHandle& word,
                             Whole<std::uint64_t, "fetch_add: add"> add, nb::handle deadline, const QueueHandle* queue,
                             Whole<std::uint64_t, "fetch_add: cookie"> cookie) {
  return start_atomic(self, word, "fetch_add", {deadline, queue, cookie},
                      [&](const Agent& agent, const RemoteRange& range, const AtomicOptions& options) {
                        return fetch_add(agent, range, add, options);
                      });
}

AtomicHandle start_compare_swap(const AgentHandle& self, const RemoteRangeHandle& word,
                                Whole<std::uint64_t, "compare_swap: expected"> expected,
                                Whole<std::uint64_t, "compare_swap: desired"> desired, nb::handle deadline,
                                const QueueHandle* queue, Whole<std::uint64_t, "compare_swap: cookie"> cookie) {
  return start_atomic(self, word, "compare_swap", {deadline, queue, cookie},
                      [&](const Agent& agent, const RemoteRange& range, const AtomicOptions& options) {
                        return compare_swap(agent, range, expected, desired, options);
                      });
}

std::uint64_t wait_for_found(AtomicHandle& self, nb::handle timeout) {
  const Duration patience = duration_of(timeout, "timeout", Duration::max());  // A wrong one is told in any case.
  if (!self.op.done()) {
    (void)agent_of(self.agent);
    const std::optional<bool> over = wait_in_slices(patience, [&](Duration slice) {
      (void)self.op.wait(slice);
      return self.op.done();
    });
    if (!over) throw nb::python_error();
    if (!*over) raise(Status(Code::kTimedOut, "AtomicOp.wait: not final yet; the operation goes on"));
  }
  check(self.op.status());
  return self.op.found();
}

nb::str status(const AtomicHandle& self) {
  if (!self.op.done()) return text_of("in_flight");
  const Status its = self.op.status();
  return text_of(its.ok() ? "ok" : name_of(to_string(its.code())));
}

void cancel(AtomicHandle& self) {
  (void)agent_of(self.agent);
  outside([&] {
    self.op.cancel();
    return 0;
  });
}

}  // namespace

void bind_atomics(nb::module_& module, nb::class_<AgentHandle>& agent) {
  nb::class_<AtomicHandle>(module, "AtomicOp", nb::is_weak_referenceable(),
                           "One atomic operation in flight. Dropping it cancels it.")
      .def_prop_ro(
          "done", [](const AtomicHandle& self) { return self.op.done(); }, "Final? Only looks.")
      .def_prop_ro("status", &status, "in_flight, ok, or the name of what went wrong.")
      .def_prop_ro(
          "error", [](const AtomicHandle& self) { return error_object(self.op.status()); },
          "The exception that wait would raise, or None.")
      .def_prop_ro(
          "found", [](const AtomicHandle& self) { return self.op.found(); },
          "What the word held before, once it ended well; else 0.")
      .def_prop_ro("agent", [](const AtomicHandle& self) { return wrapper_of(self.agent); })
      .def_prop_ro("_ticket", [](const AtomicHandle& self) { return self.ticket; })
      .def("wait", &wait_for_found, nb::arg("timeout") = nb::none(),
           "What the word held before. Raises what it ended with, or TimedOutError when the time is over before.")
      .def("cancel", &cancel, "It ends now; whether it was done is not known then.");
  agent.def("fetch_add", &start_fetch_add, nb::arg("word"), nb::arg("add"), nb::kw_only(),
            nb::arg("deadline") = nb::none(), nb::arg("queue") = nb::none(), nb::arg("cookie") = 0,
            "Adds to 8 bytes of a peer, once, and finds what they held.");
  agent.def("compare_swap", &start_compare_swap, nb::arg("word"), nb::arg("expected"), nb::arg("desired"),
            nb::kw_only(), nb::arg("deadline") = nb::none(), nb::arg("queue") = nb::none(), nb::arg("cookie") = 0,
            "Stores `desired` in 8 bytes of a peer where they hold `expected`, and finds what they held.");
}

}  // namespace hawser::api::python
