// Agents, and what they hear.

#include <hawser/config.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "agent/peer_names.h"
#include "api/python/objects.h"
#include "base/inside.h"

namespace hawser::api::python {

AgentState::~AgentState() {
  const nb::error_scope raised;  // Objects that go with the function may run Python code.
  if (segments) segments->forget();
  if (forked()) return;
  outside([&] {
    constexpr Duration kPatience = std::chrono::milliseconds(200);
    (void)agent.close(kPatience);
    if (driver) (void)driver->driver.detach(agent);  // It may go on with others.
    agent = Agent();
    driver.reset();
    return 0;
  });
}

AgentHandle::~AgentHandle() {
  if (is_wrapper && state) state->wrapper = nullptr;
}

nb::object wrapper_of(const AgentRef& state) {
  if (state->wrapper != nullptr) return nb::borrow(state->wrapper);
  nb::object made = nb::cast(AgentHandle(state));
  nb::inst_ptr<AgentHandle>(made)->is_wrapper = true;
  state->wrapper = made.ptr();
  return made;
}

Agent& agent_of(const AgentRef& state) {
  if (state->forked()) {
    raise(Status(Code::kInvalid, "agent '" + state->name + "' was opened by process " + std::to_string(state->pid) +
                                     ", this is its fork " + std::to_string(::getpid()))
              .with_advice("open an agent in this process"));
  }
  return state->agent;
}

namespace {

using Texts = ConfigSources::Texts;

struct NotificationHandle {
  PeerHandle peer;
  std::string data;
};
struct MessageHandle {
  PeerHandle peer;
  std::uint32_t channel;
  std::string data;
};
struct EventHandle {
  PeerEvent::Kind kind;
  PeerHandle peer;
  Status cause;
  std::vector<Acknowledged> acknowledged;
};

std::string text_of_value(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(nb::handle(Py_True)) ? "true" : "false";
  return std::string(Bytes(nb::str(value), "a setting").view);
}

std::string joined(nb::handle values) {
  if (PyUnicode_Check(values.ptr())) return text_of_value(values);
  std::string all;
  for (nb::handle value : nb::iter(values)) all += (all.empty() ? "" : ",") + text_of_value(value);
  return all;
}

nb::dict dict_of(nb::handle from, const char* what) {
  if (!PyDict_Check(from.ptr())) raise_invalid(std::string("Agent: ") + what + " is no dict");
  return nb::borrow<nb::dict>(from);
}

std::string key_of(nb::handle key) { return std::string(Bytes(key, "a setting's name").view); }

Texts settings_of(nb::handle backends, nb::handle settings) {
  Texts texts;
  if (!settings.is_none()) {
    for (auto [key, value] : dict_of(settings, "settings")) {
      const bool is_list = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
      texts[key_of(key)] = is_list ? joined(value) : text_of_value(value);
    }
  }
  if (!backends.is_none()) texts["backends"] = joined(backends);
  if (!PyDict_Check(backends.ptr())) return texts;
  for (auto [name, params] : nb::borrow<nb::dict>(backends)) {
    if (params.is_none()) continue;
    for (auto [key, value] : dict_of(params, "a backend's parameters")) {
      texts["backend." + key_of(name) + "." + key_of(key)] = text_of_value(value);
    }
  }
  return texts;
}

/// What the caller wrote is meant for us, so an error. A variable may be meant for others.
void tell_warnings(const LoadedConfig& config) {
  if (!config.unknown_override.empty()) raise_invalid("Agent: settings: " + config.unknown_override);
  for (const std::string& warning : config.warnings) {
    if (PyErr_WarnEx(PyExc_RuntimeWarning, ("hawser: " + warning).c_str(), 1) != 0) throw nb::python_error();
  }
}

/// Arguments that are none. Many of them are settings, which people give as arguments at first.
void refuse(const nb::kwargs& unknown) {
  for (auto [key, value] : unknown) {
    const std::string name = key_of(key);
    throw nb::type_error(("Agent() has no argument '" + name +
                          "'. Options of docs/config.md go into settings: settings={'" + name + "': ...}")
                             .c_str());
  }
}

/// A Directory; null for None, and for a text, which becomes the setting.
const DirectoryHandle* directory_of(nb::handle from, Texts& settings) {
  const DirectoryHandle* directory = nullptr;
  if (PyUnicode_Check(from.ptr())) {
    settings["directory"] = text_of_value(from);
  } else if (!from.is_none() && !nb::try_cast(from, directory)) {
    raise_invalid("Agent: directory is neither a Directory nor a text",
                  "give file_directory(PATH) or another, or a text such as file:/path");
  }
  return directory;
}

AgentRef open(const std::optional<std::string>& name, nb::handle backends, nb::handle directory, nb::handle settings,
              nb::handle config_file, bool environment, nb::handle driver, nb::handle spin, nb::handle segments) {
  ConfigSources sources;
  if (environment) sources = ConfigSources::from_process();
  const std::string file = path_of(config_file, "Agent", "config_file is no path", "give a str or a pathlib.Path");
  if (!file.empty()) sources.file = file;
  sources.overrides = settings_of(backends, settings);
  const DirectoryHandle* const shared = directory_of(directory, sources.overrides);
  const LoadedConfig config = take(outside([&] { return load_config(sources); }));
  tell_warnings(config);
  AgentOptions options = config.options;
  if (name) options.name = *name;
  if (shared != nullptr) options.directory = shared->directory;
  const std::shared_ptr<SegmentTeller> teller = segments_of(segments);
  if (teller) options.segments = [teller] { return teller->ask(); };
  DriverRef its_driver = driver_of(driver, spin);
  options.driven = its_driver != nullptr;
  const bool has_directory = options.directory != nullptr;
  struct Opened {
    std::optional<Agent> agent;
    Status status;
  };
  Opened opened = outside([&]() -> Opened {
    Result<Agent> agent = Agent::open(std::move(options));
    if (!agent) return {.agent = {}, .status = agent.error()};
    const Status attached = its_driver ? its_driver->driver.attach(*agent) : Status();
    return {.agent = std::move(*agent), .status = attached};
  });
  if (!opened.status.ok() && teller) teller->forget();
  check(opened.status);
  auto state = std::make_shared<AgentState>(std::move(its_driver), std::move(*opened.agent));
  state->segments = teller;
  state->has_directory = has_directory;
  return state;
}

nb::object bytes_object(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::list backends(const AgentHandle& self) {
  nb::list all;
  Agent& agent = agent_of(self.state);
  for (const BackendReport& report : outside([&] { return agent.backends(); })) {
    nb::dict params;
    for (const auto& [key, value] : report.params) params[text_of(key)] = text_of(value);
    nb::list warnings;
    for (const std::string& warning : report.warnings) warnings.append(text_of(warning));
    nb::dict one;
    one["name"] = text_of(report.name);
    one["open"] = report.open;
    one["cause"] = error_object(report.cause);
    one["params"] = params;
    one["warnings"] = warnings;
    one["address"] = text_of(report.address);
    all.append(one);
  }
  return all;
}

nb::object card(const AgentHandle& self, nb::handle since, nb::handle regions) {
  Agent& agent = agent_of(self.state);
  if (!since.is_none()) {
    std::uint64_t revision = 0;
    if (!nb::try_cast(since, revision)) raise_invalid("card: since is no revision");
    return bytes_object(take(outside([&] { return agent.card_delta(revision); })));
  }
  if (regions.is_none()) return bytes_object(take(outside([&] { return agent.card(); })));
  std::vector<std::uint32_t> indices;
  for (nb::handle region : nb::iter(regions)) {
    const RegionHandle* handle = nullptr;
    if (!nb::try_cast(region, handle) || handle == nullptr) raise_invalid("card: regions holds something else");
    indices.push_back(handle->state->region.index());
  }
  return bytes_object(take(outside([&] { return agent.partial_card(indices); })));
}

PeerHandle add_peer(const AgentHandle& self, nb::handle card) {
  Agent& agent = agent_of(self.state);
  const Bytes bytes(card, "add_peer: the card");
  return {self.state, take(outside([&] { return agent.add_peer(bytes.view); }))};
}

PeerHandle find_peer(const AgentHandle& self, const std::string& name, nb::handle timeout,
                     const std::vector<std::string>& regions) {
  Agent& agent = agent_of(self.state);
  constexpr Duration kPatience = std::chrono::seconds(5);
  // Each try begins anew, so the next one has longer: else whoever answers slowly is never found. Ctrl-C waits for one.
  constexpr Duration kTryMax = std::chrono::seconds(2);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  // A card may still come into the directory. A peer that is named by its address answers or does not.
  const bool may_appear = self.state->has_directory && !agent::is_address(name);
  const std::vector<std::string_view> names(regions.begin(), regions.end());
  const Instant start = Clock::steady().now();
  Duration longest = std::chrono::milliseconds(50);
  Result<Peer> found = Status(Code::kTimedOut, "find_peer: '" + name + "' was not found in time");
  const auto may_come = [&](const Status& why) {
    const bool is_final = why.code() == Code::kInvalid || why.code() == Code::kCorrupt || why.code() == Code::kDenied ||
                          why.code() == Code::kUnsupported;
    return why.code() == Code::kTimedOut || (may_appear && !is_final);
  };
  const std::optional<bool> over = wait_in_slices(patience, [&](Duration) {
    const Duration left = patience - (Clock::steady().now() - start);
    const Duration slice = std::clamp<Duration>(left, std::chrono::milliseconds(1), longest);
    longest = std::min(2 * longest, kTryMax);
    found = agent.find_peer(name, slice);
    if (!found) return !may_come(found.error());
    const Status missing = found->await_regions(names, slice);
    if (missing.ok()) return true;
    found = missing;
    return missing.code() != Code::kNotFound && !may_come(missing);
  });
  if (!over) throw nb::python_error();
  return {self.state, take(std::move(found))};
}

std::optional<NotificationHandle> take_notification(const AgentHandle& self) {
  std::optional<Notification> one = agent_of(self.state).take_notification();
  if (!one) return std::nullopt;
  return NotificationHandle{{self.state, std::move(one->peer)}, std::move(one->text)};
}

nb::list take_notifications(const AgentHandle& self, Whole<std::size_t, "take_notifications: limit"> limit) {
  nb::list all;
  Agent& agent = agent_of(self.state);
  std::array<Notification, 64> batch;
  while (nb::len(all) < limit) {
    const bool is_first = nb::len(all) == 0;  // Mostly there is none; who looks for one keeps the lock.
    const std::size_t room = is_first ? 1 : std::min(batch.size(), limit.value - nb::len(all));
    const auto take_some = [&] { return agent.take_notifications({batch.data(), room}); };
    const std::size_t got = is_first ? take_some() : outside(take_some);
    for (std::size_t i = 0; i < got; ++i) {
      all.append(nb::cast(NotificationHandle{{self.state, std::move(batch[i].peer)}, std::move(batch[i].text)}));
    }
    if (got < room) break;
  }
  return all;
}

std::optional<MessageHandle> take_message(const AgentHandle& self,
                                          Whole<std::uint32_t, "take_message: channel"> channel) {
  std::optional<Message> one = agent_of(self.state).take_message(channel);
  if (!one) return std::nullopt;
  return MessageHandle{{self.state, std::move(one->peer)}, one->channel, std::move(one->bytes)};
}

std::optional<EventHandle> take_event(const AgentHandle& self) {
  std::optional<PeerEvent> one = agent_of(self.state).take_event();
  if (!one) return std::nullopt;
  return EventHandle{
      one->kind, {self.state, std::move(one->peer)}, std::move(one->cause), std::move(one->acknowledged)};
}

bool wait(const AgentHandle& self, nb::handle timeout) {
  Agent& agent = agent_of(self.state);
  const Duration patience = duration_of(timeout, "timeout", Duration::max());
  const std::optional<bool> over = wait_in_slices(patience, [&](Duration slice) { return agent.wait(slice); });
  if (!over) throw nb::python_error();
  return *over;
}

void wait_signal(const AgentHandle& self, const RangeHandle& word,
                 Whole<std::uint64_t, "wait_signal: at_least"> at_least, nb::handle timeout) {
  Agent& agent = agent_of(self.state);
  Status status;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        status = agent.wait_signal(word.range, at_least, slice);
        return status.code() != Code::kTimedOut;
      });
  if (!over) throw nb::python_error();
  check(status);
}

void close_agent(const AgentHandle& self, nb::handle timeout) {
  constexpr Duration kPatience = std::chrono::seconds(5);
  Agent& agent = agent_of(self.state);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  self.state->loop_queue.reset();
  const Status status = outside([&] { return agent.close(patience); });
  self.state->closed = true;
  if (self.state->segments && status.ok()) self.state->segments->forget();
  if (self.state->wrapper != nullptr) {
    const Calling guard;
    nb::module_::import_("hawser._aio").attr("close_link")(nb::borrow(self.state->wrapper));
  }
  check(status);
}

int event_fd(const AgentHandle& self) {
  const int fd = agent_of(self.state).event_fd();
  if (fd < 0) raise(Status(Code::kFailed, "event_fd: there is no descriptor to be had"));
  return fd;
}

void bind_news(nb::module_& module) {
  nb::class_<NotificationHandle>(module, "Notification", "Short bytes from a peer, once, after its transfer's bytes.")
      .def_prop_ro("peer", [](const NotificationHandle& self) { return self.peer; })
      .def_prop_ro("data", [](const NotificationHandle& self) { return nb::bytes(self.data.data(), self.data.size()); })
      .def_prop_ro("text", [](const NotificationHandle& self) { return text_of(self.data); });
  nb::class_<MessageHandle>(module, "Message", "Bytes from a peer, in order per channel.")
      .def_prop_ro("peer", [](const MessageHandle& self) { return self.peer; })
      .def_prop_ro("channel", [](const MessageHandle& self) { return self.channel; })
      .def_prop_ro("data", [](const MessageHandle& self) { return nb::bytes(self.data.data(), self.data.size()); });
  nb::class_<EventHandle>(module, "PeerEvent",
                          "What happened to a peer: up, suspect, down or card_changed; or to this agent: displaced.")
      .def_prop_ro("kind", [](const EventHandle& self) { return text_of(agent::name_of(self.kind)); })
      .def_prop_ro("peer", [](const EventHandle& self) { return self.peer; })
      .def_prop_ro("cause", [](const EventHandle& self) { return error_object(self.cause); })
      .def_prop_ro(
          "acknowledged", [](const EventHandle& self) { return numbers_by_channel(self.acknowledged); },
          "Of `down`: by channel the number of the last message that the peer's agent is known to have taken, with all "
          "before it; 0: none. Later ones may be lost.");
}

using AgentClass = nb::class_<AgentHandle>;

void bind_peers_and_plans(AgentClass& agent) {
  agent.def("card", &card, nb::arg("since") = nb::none(), nb::arg("regions") = nb::none(),
            "All that peers must know, as bytes; what changed since a revision; or some regions only.");
  agent.def_prop_ro("card_revision", [](const AgentHandle& self) { return agent_of(self.state).card_revision(); });
  agent.def_prop_ro(
      "ticket", [](const AgentHandle& self) { return text_of(agent_of(self.state).ticket()); },
      "The text that a peer writes behind this agent's address to find it on another host: name@host:port#TICKET. Its "
      "holder may connect, as with the card: treat it as a password. Empty with security none.");
  agent.def("add_peer", &add_peer, nb::arg("card"), "Learns of a peer, or updates it.");
  agent.def("find_peer", &find_peer, nb::arg("name"), nb::arg("timeout") = nb::none(), nb::kw_only(),
            nb::arg("regions") = std::vector<std::string>(),
            "By name in the directory, or name@host:port. Waits, too, until the peer has these regions.");
  agent.def("peers", [](const AgentHandle& self) {
    nb::list all;
    for (Peer& peer : agent_of(self.state).peers()) all.append(nb::cast(PeerHandle{self.state, std::move(peer)}));
    return all;
  });
  agent.def(
      "invalidate",
      [](const AgentHandle& self, const PeerHandle& peer) {
        Agent& its = agent_of(self.state);
        check(outside([&] { return its.invalidate(peer.peer); }));
      },
      nb::arg("peer"), "Forgets a peer: transfers to it end, its plans fail.");
  agent.def(
      "end",
      [](const AgentHandle& self, Whole<std::uint64_t, "end: label"> label) {
        Agent& its = agent_of(self.state);
        return take(outside([&] { return its.end(label); }));
      },
      nb::arg("label"), "Cancels all transfers with this label; gives how many there were.");
  agent.def("self", [](const AgentHandle& self) { return PeerHandle{self.state, agent_of(self.state).self()}; });
  agent.def(
      "plan_write", &plan_write, nb::arg("peer"), nb::arg("source").none(), nb::arg("target").none(),
      nb::arg("source_index") = nb::none(), nb::arg("target_index") = nb::none(),
      "From this agent's memory to the peer's: tables with their blocks' numbers, lists of tables (the same blocks of "
      "each pair of them), ranges, or lists of ranges.");
  agent.def("plan_read", &plan_read, nb::arg("peer"), nb::arg("source").none(), nb::arg("target").none(),
            nb::arg("source_index") = nb::none(), nb::arg("target_index") = nb::none(),
            "From the peer's memory to this agent's.");
  agent.def(
      "explain",
      [](const AgentHandle& self, const PlanHandle& plan) {
        Agent& its = agent_of(self.state);
        const std::string text = outside([&] { return its.explain(plan.state->plan); });
        return text_of(text);
      },
      nb::arg("plan"), "Which paths a plan takes, what it should cost, and why each other path was refused.");
}

void bind_inbox(AgentClass& agent) {
  agent.def("take_notification", &take_notification, "The oldest notification, or None.");
  agent.def("take_notifications", &take_notifications, nb::arg("limit") = 1024);
  agent.def("take_event", &take_event, "The oldest news of a peer, or None.");
  agent.def(
      "open_channel",
      [](const AgentHandle& self, Whole<std::uint32_t, "open_channel: channel"> channel,
         Whole<std::uint32_t, "open_channel: credit"> credit, const std::string& priority) {
        Agent& its = agent_of(self.state);
        const Priority its_class = priority_of("open_channel", priority);
        check(outside([&] { return its.open_channel(channel, credit, its_class); }));
      },
      nb::arg("channel"), nb::arg("credit") = 64, nb::arg("priority") = "realtime",
      "Lets peers send on a channel (16 or above). Messages of a more urgent class (critical, realtime, bulk) do not\n"
      "wait for those of others.");
  agent.def("take_message", &take_message, nb::arg("channel"), "The oldest message of a channel, or None.");
  agent.def(
      "read_signal",
      [](const AgentHandle& self, const RangeHandle& word) {
        return take(agent_of(self.state).read_signal(word.range));
      },
      nb::arg("word"));
  agent.def("wait_signal", &wait_signal, nb::arg("word"), nb::arg("at_least"), nb::arg("timeout") = nb::none());
  agent.def("poll", [](const AgentHandle& self) {
    Agent& its = agent_of(self.state);
    return outside([&] { return its.poll(); });
  });
  agent.def("wait", &wait, nb::arg("timeout") = nb::none(), "Makes progress until something happened. True: it did.");
  agent.def("event_fd", &event_fd);
  agent.def(
      "make_queue",
      [](const AgentHandle& self, Whole<std::size_t, "make_queue: capacity"> capacity) {
        auto queue = std::make_shared<CompletionQueue>(take(agent_of(self.state).make_queue(capacity)));
        return QueueHandle{.queue = std::move(queue)};
      },
      nb::arg("capacity") = 4096);
  agent.def(
      "_set_loop_queue",
      [](const AgentHandle& self, const QueueHandle* queue, std::uint64_t first_ticket) {
        self.state->loop_queue = queue != nullptr ? queue->queue : nullptr;
        self.state->next_ticket = first_ticket;
      },
      nb::arg("queue").none(), nb::arg("first_ticket"));
}

}  // namespace

void bind_agents(nb::module_& module) {
  bind_news(module);
  AgentClass agent(module, "Agent", nb::dynamic_attr(), nb::is_weak_referenceable(),
                   "One named endpoint: it owns regions, backends and what it knows of its peers.");
  // In here, as calls of the class do not pass by an `__init__` that Python code puts into its place.
  const nb::object agents = nb::module_::import_("weakref").attr("WeakSet")();
  module.attr("_agents") = agents;
  agent.def(
      "__init__",
      [agents](AgentHandle* self, const std::optional<std::string>& name, nb::handle backends, nb::handle directory,
               nb::handle settings, nb::handle config_file, bool environment, nb::handle driver, nb::handle spin,
               nb::handle segments, const nb::kwargs& unknown) {
        refuse(unknown);
        new (self)
            AgentHandle(open(name, backends, directory, settings, config_file, environment, driver, spin, segments));
        self->is_wrapper = true;
        const nb::object wrapper = nb::find(*self);
        self->state->wrapper = wrapper.ptr();
        agents.attr("add")(wrapper);
      },
      nb::arg("name") = nb::none(), nb::kw_only(), nb::arg("backends") = nb::none(), nb::arg("directory") = nb::none(),
      nb::arg("settings") = nb::none(), nb::arg("config_file") = "", nb::arg("environment") = true,
      nb::arg("driver") = true, nb::arg("spin") = nb::none(), nb::arg("segments") = nb::none(), nb::arg("unknown"),
      nb::sig("def __init__(self, name: str | None = None, *, backends: object | None = None, "
              "directory: object | None = None, settings: object | None = None, config_file: object = '', "
              "environment: bool = True, driver: object = True, spin: object | None = None, "
              "segments: object | None = None) -> None"));
  agent.def_prop_ro("name", [](const AgentHandle& self) { return text_of(self.state->name); });
  agent.def_prop_ro("incarnation",
                    [](const AgentHandle& self) { return text_of(to_string(agent_of(self.state).incarnation())); });
  agent.def_prop_ro("driven", [](const AgentHandle& self) { return self.state->driver != nullptr; });
  agent.def_prop_ro("closed", [](const AgentHandle& self) { return self.state->closed; });
  agent.def("close", &close_agent, nb::arg("timeout") = nb::none(),
            "Ends all transfers, tells peers, closes regions and backends.");
  agent.def("__enter__", [](nb::handle self) { return nb::borrow(self); });
  agent.def(
      "__exit__", [](const AgentHandle& self, nb::args) { close_agent(self, nb::none()); }, nb::arg("exc_info"));
  agent.def("add_region", &add_region, nb::arg("memory"), nb::arg("name") = "", nb::arg("rights") = nb::none(),
            nb::kw_only(), nb::arg("listed") = true,
            "Registers memory: anything with the buffer protocol (numpy, bytearray, mmap) or with DLPack (torch).");
  agent.def("allocate", &allocate, nb::arg("size"), nb::arg("name") = "", nb::arg("rights") = "read_write",
            nb::arg("huge_pages") = "auto", nb::kw_only(), nb::arg("listed") = true,
            "Memory that peers of this host map: transfers are one copy.");
  agent.def("add_file", &add_file, nb::arg("file"), nb::arg("name") = "", nb::kw_only(), nb::arg("size") = 0,
            nb::arg("rights") = "read_write", nb::arg("create") = false, nb::arg("direct") = "auto",
            nb::arg("listed") = true,
            "A file as a region, by path, descriptor or open file: the far side of plans with self(), and of peers.");
  agent.def("import_grant", &import_grant, nb::arg("data"),
            "The part of a peer's memory that a grant gives, by whichever known peer made it.");
  agent.def("range_of", &range_of, nb::arg("memory"), "The part of a region that an array or tensor lies in.");
  agent.def("backends", &backends);
  agent.def(
      "add_backend",
      [](const AgentHandle& self, const std::string& name, nb::dict params) {
        BackendSpec spec{.name = name};
        for (auto [key, value] : params) spec.params[key_of(key)] = text_of_value(value);
        Agent& its = agent_of(self.state);
        check(outside([&] { return its.add_backend(spec); }));
      },
      nb::arg("name"), nb::arg("params") = nb::dict());
  agent.def(
      "has_backend",
      [](const AgentHandle& self, const std::string& name) { return agent_of(self.state).has_backend(name); },
      nb::arg("name"));
  agent.def(
      "require_backend",
      [](const AgentHandle& self, const std::string& name) { check(agent_of(self.state).require_backend(name)); },
      nb::arg("name"));
  agent.def("_counters_json", [](const AgentHandle& self) {
    Agent& its = agent_of(self.state);
    return text_of(outside([&] { return to_json(its.counters()); }));
  });
  bind_peers_and_plans(agent);
  bind_inbox(agent);
  bind_atomics(module, agent);
}

}  // namespace hawser::api::python
