// nixlAgent.

#include "api/nixl_python/objects.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "api/nixl_python/config.h"

namespace hawser::api::nixl_python {
namespace {

using compat::NixlCode;
using compat::OptArgs;
using compat::XferOp;

/// A request and what it needs to be looked at.
struct Request {
  compat::TransferRequest request;
};

struct AgentObject {
  explicit AgentObject(compat::Agent its) : agent(std::move(its)) {}
  AgentObject(const AgentObject&) = delete;
  AgentObject& operator=(const AgentObject&) = delete;
  ~AgentObject() {
    // Requests and lists are this agent's too, and may be waited for.
    outside([&] {
      requests = {};
      lists = {};
      agent = compat::Agent();
      return 0;
    });
  }

  compat::Agent agent;
  Table<compat::Backend> backends;
  Table<compat::PreparedList> lists;
  Table<Request> requests;
};

NixlCode code_of(bool in_progress) { return in_progress ? NixlCode::kInProgress : NixlCode::kSuccess; }

nb::list names_of(const std::vector<compat::MemType>& types) {
  nb::list names;
  for (const compat::MemType type : types) names.append(nb::cast(type).attr("name"));
  return names;
}

nb::tuple params_of(const compat::PluginParams& from) {
  nb::dict params;
  for (const auto& [key, value] : from.params) params[str_of(key)] = str_of(value);
  return nb::make_tuple(params, names_of(from.mems));
}

OptArgs options(const AgentObject& self, nb::handle backends) {
  OptArgs opt;
  if (backends.is_none()) return opt;
  for (nb::handle one : nb::iter(backends)) {
    std::uint64_t handle = 0;
    if (!nb::try_cast(one, handle)) throw nb::type_error("backends must hold handles of backends");
    opt.backends.push_back(*self.backends.find(handle, "backend"));
  }
  return opt;
}

/// Clients give no message as an empty one.
void set_message(OptArgs& opt, nb::handle message) {
  const Text text(message, "notif_msg");
  if (!text.view().empty()) opt.notification.emplace(text.view());
}

void set_address(OptArgs& opt, const std::string& ip, int port, const std::string& label) {
  if (!ip.empty()) opt.ip_address = ip;
  if (port < 0 || port > std::numeric_limits<std::uint16_t>::max()) throw nb::value_error("port is not in 0..65535");
  opt.port = static_cast<std::uint16_t>(port);
  opt.metadata_label = label;
}

/// "NIXL_INIT_AGENT", too, is this agent's own side.
Text side_of(nb::handle name) {
  const Text text(name, "agent_name");
  return text.view() == "NIXL_INIT_AGENT" ? Text() : text;
}

void open(AgentObject* self, nb::handle name, const Config& config) {
  const Text its(name, "the agent's name");
  if (config.listen_port < 0 || config.listen_port > std::numeric_limits<std::uint16_t>::max()) {
    throw nb::value_error("listenPort is not in 0..65535");
  }
  compat::AgentConfig with;
  with.progress_thread = config.progress_thread;
  with.listen_thread = config.listen_thread;
  with.listen_port = static_cast<std::uint16_t>(config.listen_port);
  with.capture_telemetry = config.telemetry;
  compat::Agent agent = take(outside([&] { return compat::Agent::open(its, with); }));
  new (self) AgentObject(std::move(agent));
}

std::uint64_t create_backend(AgentObject& self, nb::handle type, nb::dict params) {
  Params its;
  for (auto [key, value] : params) its[std::string(Text(key, "a key").view())] = Text(value, "a value").view();
  const Text plugin(type, "the plugin");
  compat::Backend made = take(outside([&] { return self.agent.create_backend(plugin, its); }));
  return self.backends.add(std::make_shared<compat::Backend>(std::move(made)));
}

NixlCode register_memory(AgentObject& self, const RegList& list, nb::handle backends) {
  const OptArgs opt = options(self, backends);
  const Reading reading(list);
  compat::RegistrationHandle made = take(outside([&] { return self.agent.register_memory(list.list, &opt); }));
  made.detach();
  return NixlCode::kSuccess;
}

NixlCode deregister_memory(AgentObject& self, const RegList& list, nb::handle backends) {
  const OptArgs opt = options(self, backends);
  const Reading reading(list);
  check(outside([&] { return self.agent.deregister_memory(list.list, &opt); }));
  return NixlCode::kSuccess;
}

nb::list query_memory(AgentObject& self, const RegList& list, std::uint64_t backend) {
  const OptArgs opt{.backends = {*self.backends.find(backend, "backend")}};
  const Reading reading(list);
  const compat::QueryResponses all = take(outside([&] { return self.agent.query_mem(list.list, &opt); }));
  nb::list answers;
  for (const std::optional<Params>& one : all) {
    if (!one) {
      answers.append(nb::none());
      continue;
    }
    nb::dict its;
    for (const auto& [key, value] : *one) its[str_of(key)] = str_of(value);
    answers.append(its);
  }
  return answers;
}

std::uint64_t keep_list(AgentObject& self, Result<compat::PreparedList> made) {
  return self.lists.add(std::make_shared<compat::PreparedList>(take(std::move(made))));
}

std::uint64_t prepare(AgentObject& self, nb::handle name, const XferList& list, nb::handle backends) {
  const OptArgs opt = options(self, backends);
  const Text side = side_of(name);
  const Reading reading(list);
  return keep_list(self, outside([&] { return self.agent.prepare_xfer_dlist(side, list.list, &opt); }));
}

std::uint64_t prepare_rows(AgentObject& self, nb::handle name, compat::MemType type, nb::handle array,
                           nb::handle backends) {
  static_assert(sizeof(compat::StridedDesc) == 5 * sizeof(std::uint64_t));
  const OptArgs opt = options(self, backends);
  const Text side = side_of(name);
  nb::object owner;
  const std::span<const std::uint64_t> numbers = rows_of(array, 5, owner);
  const std::span<const compat::StridedDesc> rows{reinterpret_cast<const compat::StridedDesc*>(numbers.data()),
                                                  numbers.size() / 5};
  return keep_list(self, outside([&] { return self.agent.prepare_xfer_dlist(side, type, rows, &opt); }));
}

std::uint64_t keep_request(AgentObject& self, Result<compat::TransferRequest> made) {
  return self.requests.add(std::make_shared<Request>(Request{take(std::move(made))}));
}

std::uint64_t make_request(AgentObject& self, XferOp op, std::uint64_t local, nb::handle local_indices,
                           std::uint64_t remote, nb::handle remote_indices, nb::handle message, nb::handle backends,
                           bool skip_desc_merge) {
  const std::shared_ptr<compat::PreparedList> ours = self.lists.find(local, "prepared list");
  const std::shared_ptr<compat::PreparedList> theirs = self.lists.find(remote, "prepared list");
  OptArgs opt = options(self, backends);
  opt.skip_desc_merge = skip_desc_merge;
  set_message(opt, message);
  const Indices our_index(local_indices, "local_indices"), their_index(remote_indices, "remote_indices");
  return keep_request(self, outside([&] {
                        return self.agent.make_xfer_req(op, *ours, our_index.view(), *theirs, their_index.view(), &opt);
                      }));
}

std::uint64_t create_request(AgentObject& self, XferOp op, const XferList& local, const XferList& remote,
                             nb::handle name, nb::handle message, nb::handle backends) {
  OptArgs opt = options(self, backends);
  set_message(opt, message);
  const Text peer(name, "remote_agent");
  const Reading reading_local(local), reading_remote(remote);
  return keep_request(self,
                      outside([&] { return self.agent.create_xfer_req(op, local.list, remote.list, peer, &opt); }));
}

NixlCode post(AgentObject& self, std::uint64_t handle, nb::handle message) {
  const std::shared_ptr<Request> its = self.requests.find(handle, "request");
  OptArgs opt;
  set_message(opt, message);
  // Without a message the request's own stays.
  const OptArgs* const with = opt.notification ? &opt : nullptr;
  return code_of(take(outside([&] { return self.agent.post_xfer_req(its->request, with); })));
}

bool is_busy(AgentObject& self, std::uint64_t handle) {
  const std::shared_ptr<Request> its = self.requests.find(handle, "request");
  // Polling does not pass the lock around.
  if (const std::optional<bool> busy = self.agent.in_progress_at_once(its->request)) return *busy;
  return take(outside([&] { return self.agent.in_progress(its->request); }));
}

compat::XferTelemetry telemetry(AgentObject& self, std::uint64_t handle) {
  const std::shared_ptr<Request> its = self.requests.find(handle, "request");
  const auto times = take(outside([&] { return self.agent.get_xfer_telemetry(its->request); }));
  if (!times) raise(NixlCode::kNotPosted, "get_xfer_telemetry: the transfer is not complete yet");
  return *times;
}

nb::tuple estimate(AgentObject& self, std::uint64_t handle) {
  const std::shared_ptr<Request> its = self.requests.find(handle, "request");
  const compat::CostEstimate cost = take(outside([&] { return self.agent.estimate_xfer_cost(its->request); }));
  const auto us = [](Duration time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); };
  return nb::make_tuple(us(cost.duration), us(cost.margin), static_cast<int>(cost.method));
}

/// The handle's number of the backend that carries it.
std::uint64_t query_backend(AgentObject& self, std::uint64_t handle) {
  const std::shared_ptr<Request> its = self.requests.find(handle, "request");
  compat::Backend backend = take(self.agent.query_xfer_backend(its->request));
  const std::optional<std::uint64_t> known =
      self.backends.find_if([&](const compat::Backend& one) { return one.name() == backend.name(); });
  return known ? *known : self.backends.add(std::make_shared<compat::Backend>(std::move(backend)));
}

NixlCode release_request(AgentObject& self, std::uint64_t handle) {
  const std::shared_ptr<Request> its = self.requests.find(handle, "request");
  // A request that cannot be ended in time keeps its handle, and may be released again.
  check(outside([&] { return its->request.release(); }));
  self.requests.remove(handle);
  return NixlCode::kSuccess;
}

NixlCode release_list(AgentObject& self, std::uint64_t handle) {
  (void)self.lists.find(handle, "prepared list");
  self.lists.remove(handle);
  return NixlCode::kSuccess;
}

/// Adds what came to `into`, which is given back.
nb::dict get_notifications(AgentObject& self, nb::dict into, nb::handle backends) {
  const OptArgs opt = options(self, backends);
  if (!self.agent.may_have_notifications()) return into;
  compat::NotificationMap all;
  check(outside([&] { return self.agent.get_notifications(all, opt.backends.empty() ? nullptr : &opt); }));
  for (const auto& [name, messages] : all) {
    const nb::str key = str_of(name);
    if (!into.contains(key)) into[key] = nb::list();
    nb::object list = into[key];
    for (const std::string& message : messages) list.attr("append")(bytes_of(message));
  }
  return into;
}

NixlCode send_notification(AgentObject& self, nb::handle name, nb::handle message, nb::handle backends) {
  const OptArgs opt = options(self, backends);
  const Text peer(name, "remote_agent"), text(message, "msg");
  check(outside([&] { return self.agent.send_notification(peer, text, &opt); }));
  return NixlCode::kSuccess;
}

nb::bytes partial_metadata(AgentObject& self, const RegList& list, bool connection, nb::handle backends) {
  OptArgs opt = options(self, backends);
  opt.include_connection = connection;
  const Reading reading(list);
  return bytes_of(take(outside([&] { return self.agent.get_local_partial_md(list.list, &opt); })));
}

std::uint64_t prepare_view(AgentObject& self, nb::handle list, nb::handle) {
  std::vector<compat::ViewDesc> all;
  XferList* ours = nullptr;
  RemoteList* theirs = nullptr;
  const std::string name(self.agent.name());
  if (nb::try_cast(list, ours) && ours != nullptr) {
    for (const compat::Desc& desc : ours->list) all.push_back({desc, name});
    check(self.agent.prep_mem_view(ours->list.type(), all));
  } else if (nb::try_cast(list, theirs) && theirs != nullptr) {
    for (const auto& [desc, agent] : theirs->all) all.push_back({desc, agent});
    check(self.agent.prep_mem_view(theirs->type, all));
  } else {
    throw nb::type_error("dlist must be a nixlXferDList or a nixlRemoteDList");
  }
  return 0;  // Never: there are no views.
}

NixlCode check_remote(AgentObject& self, nb::handle name, const XferList& list) {
  const Text peer(name, "the agent's name");
  const Reading reading(list);
  const compat::XferDescList* const its = list.list.empty() ? nullptr : &list.list;
  const bool known = outside([&] { return self.agent.check_remote_metadata(peer, its); });
  return known ? NixlCode::kSuccess : NixlCode::kNotFound;
}

using AgentClass = nb::class_<AgentObject>;

void bind_backends(AgentClass& type) {
  type.def("__init__", &open, nb::arg("name"), nb::arg("config"));
  type.def("getAvailPlugins", [](AgentObject& self) {
    nb::list names;
    for (const std::string& name : self.agent.get_available_plugins()) names.append(str_of(name));
    return names;
  });
  type.def(
      "getPluginParams",
      [](AgentObject& self, nb::handle name) {
        return params_of(take(self.agent.get_plugin_params(Text(name, "the plugin"))));
      },
      nb::arg("type"), "(parameters, memory types)");
  type.def(
      "getBackendParams",
      [](AgentObject& self, std::uint64_t backend) {
        return params_of(take(self.agent.get_backend_params(*self.backends.find(backend, "backend"))));
      },
      nb::arg("backend"), "(parameters, memory types)");
  type.def("createBackend", &create_backend, nb::arg("type"), nb::arg("params"));
  type.def("registerMem", &register_memory, nb::arg("descs"), nb::arg("backends") = nb::none());
  type.def("deregisterMem", &deregister_memory, nb::arg("descs"), nb::arg("backends") = nb::none());
  type.def("queryMem", &query_memory, nb::arg("descs"), nb::arg("backend"));
  type.def(
      "makeConnection",
      [](AgentObject& self, nb::handle name, nb::handle backends) {
        const OptArgs opt = options(self, backends);
        const Text peer(name, "remote_agent");
        check(outside([&] { return self.agent.make_connection(peer, &opt); }));
        return NixlCode::kSuccess;
      },
      nb::arg("remote_agent"), nb::arg("backends") = nb::none());
}

void bind_transfers(AgentClass& type) {
  type.def("prepXferDlist", &prepare, nb::arg("agent_name"), nb::arg("descs"), nb::arg("backend") = nb::none());
  type.def("prepXferDlist", &prepare_rows, nb::arg("agent_name"), nb::arg("mem_type"), nb::arg("descs"),
           nb::arg("backend") = nb::none());
  type.def(
      "prepXferDlist",
      [](AgentObject& self, const XferList& list, nb::handle backends) {
        return prepare(self, nb::str(""), list, backends);
      },
      nb::arg("descs"), nb::arg("backend") = nb::none());
  type.def("makeXferReq", &make_request, nb::arg("operation"), nb::arg("local_side"), nb::arg("local_indices"),
           nb::arg("remote_side"), nb::arg("remote_indices"), nb::arg("notif_msg") = "",
           nb::arg("backend") = nb::none(), nb::arg("skip_desc_merg") = false);
  type.def("createXferReq", &create_request, nb::arg("operation"), nb::arg("local_descs"), nb::arg("remote_descs"),
           nb::arg("remote_agent"), nb::arg("notif_msg") = "", nb::arg("backend") = nb::none());
  type.def("postXferReq", &post, nb::arg("reqh"), nb::arg("notif_msg") = "");
  type.def(
      "getXferStatus", [](AgentObject& self, std::uint64_t handle) { return code_of(is_busy(self, handle)); },
      nb::arg("reqh"));
  type.def("_isXferBusy", &is_busy, nb::arg("reqh"), "getXferStatus as a yes or no, which is what pollers want.");
  type.def("getXferTelemetry", &telemetry, nb::arg("reqh"));
  type.def("estimateXferCost", &estimate, nb::arg("req_handle"), "(microseconds, margin, method)");
  type.def("queryXferBackend", &query_backend, nb::arg("reqh"));
  type.def("releaseXferReq", &release_request, nb::arg("reqh"));
  type.def("releasedDlistH", &release_list, nb::arg("handle"));
  type.def("getNotifs", &get_notifications, nb::arg("notif_map"), nb::arg("backends") = nb::none());
  type.def("genNotif", &send_notification, nb::arg("remote_agent"), nb::arg("msg"), nb::arg("backends") = nb::none());
  type.def("prepMemView", &prepare_view, nb::arg("dlist"), nb::arg("backends") = nb::none());
  type.def(
      "releaseMemView",
      [](AgentObject&, nb::args, nb::kwargs) {
        raise(NixlCode::kNotSupported, "memory views need a backend of a GPU, and there is none");
      },
      nb::arg("args"), nb::arg("kwargs"));
}

void bind_metadata(AgentClass& type) {
  type.def("getLocalMD",
           [](AgentObject& self) { return bytes_of(take(outside([&] { return self.agent.get_local_md(); }))); });
  type.def("getLocalPartialMD", &partial_metadata, nb::arg("descs"), nb::arg("inc_conn_info") = false,
           nb::arg("backends") = nb::none());
  type.def(
      "loadRemoteMD",
      [](AgentObject& self, nb::handle bytes) {
        const Text its(bytes, "the metadata");
        return bytes_of(take(outside([&] { return self.agent.load_remote_md(its); })));
      },
      nb::arg("metadata"), "The name of the agent that made it, as bytes.");
  type.def(
      "invalidateRemoteMD",
      [](AgentObject& self, nb::handle name) {
        const Text peer(name, "the agent's name");
        const Status status = outside([&] { return self.agent.invalidate_remote_md(peer); });
        return status.ok() ? NixlCode::kSuccess : compat::code_of(status);
      },
      nb::arg("remote_agent"), "As NIXL's it raises nothing: it tells.");
  type.def("checkRemoteMD", &check_remote, nb::arg("remote_agent"), nb::arg("descs"));
  type.def(
      "sendLocalMD",
      [](AgentObject& self, const std::string& ip, int port) {
        OptArgs opt;
        set_address(opt, ip, port, "");
        check(outside([&] { return self.agent.send_local_md(&opt); }));
      },
      nb::arg("ip_addr") = "", nb::arg("port") = 0);
  type.def(
      "sendLocalPartialMD",
      [](AgentObject& self, const RegList& list, bool connection, nb::handle backends, const std::string& ip, int port,
         const std::string& label) {
        OptArgs opt = options(self, backends);
        opt.include_connection = connection;
        set_address(opt, ip, port, label);
        const Reading reading(list);
        check(outside([&] { return self.agent.send_local_partial_md(list.list, &opt); }));
      },
      nb::arg("descs"), nb::arg("inc_conn_info") = false, nb::arg("backends") = nb::none(), nb::arg("ip_addr") = "",
      nb::arg("port") = 0, nb::arg("label") = "");
  type.def(
      "fetchRemoteMD",
      [](AgentObject& self, nb::handle name, const std::string& ip, int port, const std::string& label) {
        OptArgs opt;
        set_address(opt, ip, port, label);
        const Text peer(name, "remote_agent");
        check(outside([&] { return self.agent.fetch_remote_md(peer, &opt); }));
      },
      nb::arg("remote_agent"), nb::arg("ip_addr") = "", nb::arg("port") = 0, nb::arg("label") = "");
  type.def(
      "invalidateLocalMD",
      [](AgentObject& self, const std::string& ip, int port) {
        OptArgs opt;
        set_address(opt, ip, port, "");
        check(outside([&] { return self.agent.invalidate_local_md(&opt); }));
      },
      nb::arg("ip_addr") = "", nb::arg("port") = 0);
}

}  // namespace

void bind_agent(nb::module_& module) {
  using compat::XferTelemetry;
  nb::class_<XferTelemetry>(module, "nixlXferTelemetry")
      .def(nb::init<>())
      .def_rw("startTime", &XferTelemetry::start_time_us)
      .def_rw("postDuration", &XferTelemetry::post_duration_us)
      .def_rw("xferDuration", &XferTelemetry::xfer_duration_us)
      .def_rw("totalBytes", &XferTelemetry::total_bytes)
      .def_rw("descCount", &XferTelemetry::desc_count);
  AgentClass type(module, "nixlAgent", nb::is_weak_referenceable(), "An agent, as NIXL's; nixl._api wraps it.");
  bind_backends(type);
  bind_transfers(type);
  bind_metadata(type);
}

}  // namespace hawser::api::nixl_python
