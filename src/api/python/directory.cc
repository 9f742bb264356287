// Directories: where agents meet, and small values under keys.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <atomic>

#include "api/directory_wait.h"
#include "api/python/objects.h"
#include "directory/news.h"

namespace hawser::api::python {

DirectoryHandle::~DirectoryHandle() {
  // The last handle of an etcd ends its threads and says farewell.
  if (directory.use_count() != 1) return;
  outside([&] {
    directory.reset();
    return 0;
  });
}

namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

struct TicketHandle {
  TicketHandle(std::shared_ptr<Directory> its, Ticket its_ticket) : directory{std::move(its)}, ticket(its_ticket) {}
  TicketHandle(TicketHandle&& other) noexcept
      : directory(std::move(other.directory)), ticket(other.ticket.exchange(0)) {}
  ~TicketHandle() { cancel(); }
  void cancel() {
    if (directory.directory && ticket != 0) directory.directory->cancel(ticket.exchange(0));
  }
  DirectoryHandle directory;
  std::atomic<Ticket> ticket;  ///< 0: it was cancelled, or is answered.
};
struct WatchHandle : TicketHandle {
  WatchHandle(std::shared_ptr<Directory> its, std::string_view prefix) : TicketHandle(its, its->watch(prefix)) {}
};
/// A question of an event loop, which looks for the answer from time to time.
struct AskedHandle : TicketHandle {
  using TicketHandle::TicketHandle;
};

/// The next event, if it is there after one piece of the directory's work: may be called on any thread.
std::optional<DirectoryEvent> look(const TicketHandle& self) {
  if (self.ticket == 0) return std::nullopt;
  constexpr Duration kWork = std::chrono::milliseconds(50);
  const DirectoryHandle its(self.directory.directory);  // Another thread may drop the ticket meanwhile.
  const Ticket ticket = self.ticket;
  std::optional<DirectoryEvent> event = outside([&] {
    std::optional<DirectoryEvent> first = its.directory->poll(ticket);
    if (first || its.directory->runs_itself()) return first;
    const Instant now = Clock::steady().now();
    (void)its.directory->run_job(now, now + kWork);
    return its.directory->poll(ticket);
  });
  if (event) check(event->status);
  return event;
}

/// For an event loop: `fd` is readable when there may be something to look at.
struct NewsHandle {
  NewsFd news;
};
std::optional<NewsHandle> listen(const TicketHandle& self) {
  NewsFd news = news_of(*self.directory.directory);
  if (news.fd < 0) return std::nullopt;
  return NewsHandle{std::move(news)};
}

/// The next event of `ticket`; nothing when the time is over before, or `is_cancelled` says so.
template <typename IsCancelled>
std::optional<DirectoryEvent> await_event(Directory& directory, Ticket ticket, Duration patience,
                                          IsCancelled is_cancelled) {
  std::optional<DirectoryEvent> event;
  const std::optional<bool> over = wait_in_slices(patience, [&](Duration slice) {
    event = next_event(directory, ticket, Clock::steady().now() + slice);
    return event.has_value() || is_cancelled();
  });
  if (!over) throw nb::python_error();
  return event;
}

/// A request's ticket, forgotten when nobody took its answer.
class DirectoryRequest {
 public:
  DirectoryRequest(const DirectoryHandle& handle, Ticket ticket) : directory_(handle.directory), ticket_(ticket) {}
  ~DirectoryRequest() {
    if (!answered_) directory_->cancel(ticket_);
  }
  DirectoryRequest(const DirectoryRequest&) = delete;
  DirectoryRequest& operator=(const DirectoryRequest&) = delete;

  /// The entries of the answer, which must be good.
  std::vector<DirectoryEntry> answer(const char* call, nb::handle timeout) {
    std::optional<DirectoryEvent> event =
        await_event(*directory_, ticket_, duration_of(timeout, "timeout", kPatience), [] { return false; });
    if (!event) raise(Status(Code::kTimedOut, std::string(call) + ": the directory did not answer in time"));
    answered_ = true;
    check(event->status);
    return std::move(event->entries);
  }

 private:
  const std::shared_ptr<Directory> directory_;
  const Ticket ticket_;
  bool answered_ = false;
};

Ticket begin_put(const DirectoryHandle& self, const std::string& key, nb::handle value, nb::handle lease,
                 bool create_only, MaybeWhole<std::uint64_t, "if_version"> if_version, bool tied) {
  const Bytes bytes(value, "put: the value");
  const PutOptions options{.lease = duration_of(lease, "lease", Duration::zero()),
                           .create_only = create_only,
                           .if_version = if_version,
                           .tied = tied};
  return self.directory->put(key, bytes.view, options);
}

std::uint64_t put(const DirectoryHandle& self, const std::string& key, nb::handle value, nb::handle lease,
                  bool create_only, MaybeWhole<std::uint64_t, "if_version"> if_version, bool tied, nb::handle timeout) {
  DirectoryRequest request(self, begin_put(self, key, value, lease, create_only, if_version, tied));
  const std::vector<DirectoryEntry> entries = request.answer("put", timeout);
  return entries.empty() ? 0 : entries.front().version;
}

DirectoryEntry get(const DirectoryHandle& self, const std::string& key, nb::handle timeout) {
  DirectoryRequest request(self, self.directory->get(key));
  std::vector<DirectoryEntry> entries = request.answer("get", timeout);
  if (entries.empty()) raise(Status(Code::kNotFound, "get: no key '" + key + "'"));
  return std::move(entries.front());
}

nb::list list_of(std::vector<DirectoryEntry> entries) {
  nb::list all;
  for (DirectoryEntry& entry : entries) all.append(nb::cast(std::move(entry)));
  return all;
}

nb::list list(const DirectoryHandle& self, const std::string& prefix, nb::handle timeout) {
  DirectoryRequest request(self, self.directory->list(prefix));
  return list_of(request.answer("list", timeout));
}

bool erase(const DirectoryHandle& self, const std::string& key, MaybeWhole<std::uint64_t, "if_version"> if_version,
           nb::handle timeout) {
  DirectoryRequest request(self, self.directory->erase(key, {.if_version = if_version}));
  return !request.answer("erase", timeout).empty();
}

std::optional<DirectoryEvent> wait(WatchHandle& self, nb::handle timeout) {
  const Ticket ticket = self.ticket;
  if (ticket == 0) raise_invalid("Watch.wait: the watch was cancelled");
  std::optional<DirectoryEvent> event =
      await_event(*self.directory.directory, ticket, duration_of(timeout, "timeout", Duration::max()),
                  [&] { return self.ticket == 0; });
  if (event) check(event->status);
  return event;
}

DirectoryEvent next(WatchHandle& self) {
  if (self.ticket == 0) throw nb::stop_iteration();
  std::optional<DirectoryEvent> event = wait(self, nb::none());
  if (!event) throw nb::stop_iteration();  // It was cancelled, or the interpreter is leaving.
  return *std::move(event);
}

const char* text_of_kind(const DirectoryEvent& event) {
  switch (event.kind) {
    case DirectoryEvent::Kind::kAnswer:
      return "all";
    case DirectoryEvent::Kind::kChanged:
      return "changed";
    case DirectoryEvent::Kind::kErased:
      return "erased";
  }
  return "unknown";
}

std::vector<std::string> endpoints_of(nb::handle from) {
  std::vector<std::string> all;
  if (!PyUnicode_Check(from.ptr())) {
    for (nb::handle one : nb::iter(from)) all.emplace_back(Bytes(one, "etcd_directory: an endpoint").view);
    return all;
  }
  const Bytes owner(from, "etcd_directory: endpoints");
  std::string_view text = owner.view;
  for (;;) {
    const std::size_t comma = text.find(',');
    all.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

DirectoryHandle open_etcd(nb::handle endpoints, const std::string& prefix, const std::string& user,
                          const std::string& password, const std::string& ca, const std::string& cert,
                          const std::string& key, const std::string& identity, nb::handle lease, nb::handle timeout) {
  EtcdOptions options{
      .prefix = prefix, .user = user, .password = password, .ca = ca, .cert = cert, .key = key, .identity = identity};
  if (!endpoints.is_none()) options.endpoints = endpoints_of(endpoints);
  options.lease = duration_of(lease, "lease", options.lease);
  options.timeout = duration_of(timeout, "timeout", options.timeout);
  return DirectoryHandle{take(outside([&] { return etcd(std::move(options)); }))};
}

void bind_values(nb::module_& module) {
  nb::class_<DirectoryEntry>(module, "DirectoryEntry", "A key with its value.")
      .def_prop_ro("key", [](const DirectoryEntry& self) { return text_of(self.key); })
      .def_prop_ro("value", [](const DirectoryEntry& self) { return nb::bytes(self.value.data(), self.value.size()); })
      .def_prop_ro(
          "version", [](const DirectoryEntry& self) { return self.version; }, "Of one key it only grows.");
  nb::class_<DirectoryEvent>(module, "DirectoryEvent", "What a watch tells.")
      .def_prop_ro("kind", &text_of_kind, "all: what is there, in place of what was told before; changed; erased.")
      .def_prop_ro("entries", [](const DirectoryEvent& self) { return list_of(self.entries); });
  nb::class_<WatchHandle>(module, "Watch", "Tells what is under a prefix, then what changes there.")
      .def("wait", &wait, nb::arg("timeout") = nb::none(),
           "The next event, or None when the time is over before, or the watch is cancelled.")
      .def(
          "cancel", [](WatchHandle& self) { self.cancel(); }, "Nothing more is told.")
      .def("_look", [](const WatchHandle& self) { return look(self); })
      .def("_listen", [](const WatchHandle& self) { return listen(self); })
      .def_prop_ro("_cancelled", [](const WatchHandle& self) { return self.ticket == 0; })
      .def_prop_ro("_runs_itself", [](const WatchHandle& self) { return self.directory.directory->runs_itself(); })
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &next)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](WatchHandle& self, nb::args) { self.cancel(); }, nb::arg("exc_info"));
}

/// What `await` is made of, in _aio.py.
void bind_asked(nb::module_& module, nb::class_<DirectoryHandle>& directory) {
  nb::class_<NewsHandle>(module, "_DirectoryNews", "A descriptor that is readable when a directory may have news.")
      .def_prop_ro("fd", [](const NewsHandle& self) { return self.news.fd; });
  nb::class_<AskedHandle>(module, "_DirectoryRequest", "One request in flight. Dropping it cancels it.")
      .def("_look", [](const AskedHandle& self) { return look(self); })
      .def("_listen", [](const AskedHandle& self) { return listen(self); })
      .def("_cancel", [](AskedHandle& self) { self.cancel(); })
      .def_prop_ro("_runs_itself", [](const AskedHandle& self) { return self.directory.directory->runs_itself(); });
  directory
      .def(
          "_ask_put",
          [](const DirectoryHandle& self, const std::string& key, nb::handle value, nb::handle lease, bool create_only,
             MaybeWhole<std::uint64_t, "if_version"> if_version, bool tied) {
            return AskedHandle(self.directory, begin_put(self, key, value, lease, create_only, if_version, tied));
          },
          nb::arg("key"), nb::arg("value"), nb::arg("lease").none(), nb::arg("create_only"),
          nb::arg("if_version").none(), nb::arg("tied"))
      .def(
          "_ask_get",
          [](const DirectoryHandle& self, const std::string& key) {
            return AskedHandle(self.directory, self.directory->get(key));
          },
          nb::arg("key"))
      .def(
          "_ask_list",
          [](const DirectoryHandle& self, const std::string& prefix) {
            return AskedHandle(self.directory, self.directory->list(prefix));
          },
          nb::arg("prefix"))
      .def(
          "_ask_erase",
          [](const DirectoryHandle& self, const std::string& key, MaybeWhole<std::uint64_t, "if_version"> if_version) {
            return AskedHandle(self.directory, self.directory->erase(key, {.if_version = if_version}));
          },
          nb::arg("key"), nb::arg("if_version").none());
}

void bind_openers(nb::module_& module) {
  module.def(
      "inproc_directory", [](const std::string& name) { return DirectoryHandle{inproc_directory(name)}; },
      nb::arg("name") = "default", "Agents of this process find each other by it.");
  module.def(
      "file_directory",
      [](nb::handle path) {
        const std::string folder =
            path_of(path, "file_directory", "the folder is no path", "give a str or a pathlib.Path");
        return DirectoryHandle{take(outside([&] { return file_directory(folder); }))};
      },
      nb::arg("path"), "A folder shared by processes of one host or of a shared file system.");
  module.def("etcd_directory", &open_etcd, nb::arg("endpoints") = nb::none(), nb::kw_only(), nb::arg("prefix") = "",
             nb::arg("user") = "", nb::arg("password") = "", nb::arg("ca") = "", nb::arg("cert") = "",
             nb::arg("key") = "", nb::arg("identity") = "", nb::arg("lease") = nb::none(),
             nb::arg("timeout") = nb::none(),
             "An etcd, by the client addresses of its members: a list, or a text with commas.");
}

}  // namespace

void bind_directories(nb::module_& module) {
  bind_values(module);
  nb::class_<DirectoryHandle> directory(module, "Directory",
                                        "Where agents publish their cards and find peers; small values under keys.");
  directory.def_prop_ro("kind", [](const DirectoryHandle& self) { return text_of(self.directory->kind()); })
      .def("put", &put, nb::arg("key"), nb::arg("value"), nb::kw_only(), nb::arg("lease") = nb::none(),
           nb::arg("create_only") = false, nb::arg("if_version") = nb::none(), nb::arg("tied") = false,
           nb::arg("timeout") = nb::none(), "Gives the new version.")
      .def("get", &get, nb::arg("key"), nb::arg("timeout") = nb::none(), "NotFoundError when it is not there.")
      .def("list", &list, nb::arg("prefix") = "", nb::arg("timeout") = nb::none(), "All under a prefix, by key.")
      .def("erase", &erase, nb::arg("key"), nb::arg("if_version") = nb::none(), nb::arg("timeout") = nb::none(),
           "Whether it was there. BusyError when it is there in another version than if_version.")
      .def(
          "watch",
          [](const DirectoryHandle& self, const std::string& prefix) { return WatchHandle(self.directory, prefix); },
          nb::arg("prefix") = "", "The keys that are there, then the changes.")
      .def(
          "warnings",
          [](const DirectoryHandle& self) {
            nb::list all;
            for (const std::string& warning : self.directory->warnings()) all.append(text_of(warning));
            return all;
          },
          "What was found broken and passed over.");
  bind_asked(module, directory);
  bind_openers(module);
}

}  // namespace hawser::api::python
