// The backend and the tables of mailslot: how a plug-in looks to its host.

#include <hawser/plugin.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "port.h"

namespace {

std::atomic<const hawser_plugin_host*> host{nullptr};  // The same at each call of hawser_plugin_v0.

constexpr std::uint32_t kQueueDefault = 64;
#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // "Clang 17.0.6 ..."
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

std::string text_of(hawser_plugin_text text) { return std::string(text.data, text.size); }
void put(const hawser_plugin_sink* sink, const std::string& text) { sink->put(sink->to, text.data(), text.size()); }

/// Addresses of one process begin alike. A forked child is another process.
std::string prefix_of_this_process() {
  static const hawser_plugin_id nonce = [] {
    hawser_plugin_id drawn{};
    host.load()->random(&drawn, sizeof(drawn));
    return drawn;
  }();
  char text[80];
  std::snprintf(text, sizeof(text), "mailslot:%ld:%016llx%016llx:", static_cast<long>(::getpid()),
                static_cast<unsigned long long>(nonce.hi), static_cast<unsigned long long>(nonce.lo));
  return text;
}

std::string address_of(const hawser_plugin_id& incarnation) {
  char text[40];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(incarnation.hi),
                static_cast<unsigned long long>(incarnation.lo));
  return prefix_of_this_process() + text;
}

std::uint32_t fail(std::uint32_t code, hawser_plugin_reason* reason, const std::string& message) {
  mailslot::set_reason(reason, HAWSER_PLUGIN_SCOPE_REQUEST, message);
  return code;
}

/// No exception may cross the border: here one becomes a code. Functions that cannot fail are noexcept, so running out
/// of memory in them ends the process.
template <typename Call>
std::uint32_t guarded(hawser_plugin_reason* reason, Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    mailslot::set_reason(reason, HAWSER_PLUGIN_SCOPE_REQUEST, error.what());
    return HAWSER_PLUGIN_FAILED;
  }
}

}  // namespace

struct hawser_plugin_backend {
  std::string address;
  std::shared_ptr<mailslot::Station> station;
  std::uint32_t queue = kQueueDefault;
  std::vector<std::string> warnings;
};

namespace {

std::uint32_t read_params(hawser_plugin_backend& backend, const hawser_plugin_context& context,
                          hawser_plugin_reason* reason) {
  for (std::size_t i = 0; i < context.param_count; ++i) {
    const std::string key = text_of(context.params[i].key), value = text_of(context.params[i].value);
    if (key != "queue") {
      backend.warnings.push_back("mailslot has no parameter '" + key + "'");
      continue;
    }
    char* end = nullptr;
    const unsigned long queue = std::strtoul(value.c_str(), &end, 10);
    if (*end != '\0' || queue < 1 || queue > 4096) {
      return fail(HAWSER_PLUGIN_INVALID, reason, "mailslot: queue = '" + value + "' is not a number from 1 to 4096");
    }
    backend.queue = static_cast<std::uint32_t>(queue);
  }
  return HAWSER_PLUGIN_OK;
}

std::uint32_t open_backend(hawser_plugin_agent* agent, const hawser_plugin_context* context,
                           hawser_plugin_backend** out, hawser_plugin_reason* reason) noexcept {
  return guarded(reason, [&]() -> std::uint32_t {
    auto backend = std::make_unique<hawser_plugin_backend>();
    if (const std::uint32_t code = read_params(*backend, *context, reason); code != HAWSER_PLUGIN_OK) return code;
    auto station = std::make_shared<mailslot::Station>();
    station->agent = agent;
    station->name = text_of(context->identity->name);
    station->identity = *context->identity;
    station->identity.name = {station->name.data(), station->name.size()};
    station->bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (station->bell < 0) return fail(HAWSER_PLUGIN_FAILED, reason, "mailslot: eventfd: no more descriptors");
    backend->address = address_of(context->identity->incarnation);
    backend->station = std::move(station);
    *out = backend.release();
    return HAWSER_PLUGIN_OK;
  });
}

void traits(hawser_plugin_backend*, hawser_plugin_traits* out) noexcept {
  out->flags = HAWSER_PLUGIN_SAME_HOST_ONLY | HAWSER_PLUGIN_DIRECT;
  out->chunk_pieces_max = 1024;
  out->inline_bytes_max = hawser_plugin_port::kAtOnceMax;
  out->quiesce_max_ns = 1'000'000;  // One turn.
  out->latency_ns = 200;
  out->bytes_per_ns = 8;
  out->piece_ns = 20;
}

std::uint32_t reachable(hawser_plugin_backend* backend, hawser_plugin_text address,
                        hawser_plugin_reason* reason) noexcept {
  return guarded(reason, [&]() -> std::uint32_t {
    const std::string prefix = prefix_of_this_process(), peer = text_of(address);
    if (peer == backend->address) {
      return fail(HAWSER_PLUGIN_UNSUPPORTED, reason, "mailslot does not lead to the agent itself");
    }
    if (peer.compare(0, prefix.size(), prefix) == 0) return HAWSER_PLUGIN_OK;
    return fail(HAWSER_PLUGIN_UNSUPPORTED, reason, "mailslot reaches agents of its own process only");
  });
}

std::uint32_t open_port(hawser_plugin_backend* backend, hawser_plugin_port** out,
                        hawser_plugin_reason* reason) noexcept {
  return guarded(reason, [&]() -> std::uint32_t {
    auto port = std::make_unique<hawser_plugin_port>(*host.load(), backend->address, backend->station, backend->queue);
    backend->station->open();
    mailslot::Office::of_this_process().enter(backend->address, backend->station);
    *out = port.release();
    return HAWSER_PLUGIN_OK;
  });
}

void close_port(hawser_plugin_port* port) noexcept {
  port->close();
  delete port;
}

std::uint32_t open_path(hawser_plugin_port* port, const hawser_plugin_path_target* target, std::int64_t,
                        hawser_plugin_path** out, hawser_plugin_reason* reason) noexcept {
  return guarded(reason, [&]() -> std::uint32_t {
    *out = port->open_path(*target);
    return HAWSER_PLUGIN_OK;
  });
}

int region_quiet(hawser_plugin_port* port, std::uint32_t, std::uint32_t, const hawser_plugin_sink* holder) noexcept {
  // The region is closed: who takes the lock from now on will not touch it.
  const std::unique_lock<std::mutex> lock(port->station->memory, std::try_to_lock);
  if (!lock) put(holder, "a copy by an agent of this process");
  return lock ? 1 : 0;
}

std::uint32_t bind(hawser_plugin_path* path, const hawser_plugin_remote_region* region, hawser_plugin_binding** out,
                   hawser_plugin_reason* reason) noexcept {
  return guarded(reason, [&] { return path->port->bind(*path, *region, out, reason); });
}

const hawser_plugin_backend_api kBackendApi = {
    sizeof(hawser_plugin_backend_api),
    open_backend,
    [](hawser_plugin_backend* backend) noexcept { delete backend; },
    traits,
    [](hawser_plugin_backend* backend, const hawser_plugin_sink* out) noexcept { put(out, backend->address); },
    [](hawser_plugin_backend*, const hawser_plugin_sink* out) noexcept {
      put(out, "process " + std::to_string(::getpid()) + " (built by " + kCompiler + ")");
    },
    reachable,
    [](hawser_plugin_backend*, const hawser_plugin_region*, const hawser_plugin_sink*,
       hawser_plugin_reason*) noexcept -> std::uint32_t { return HAWSER_PLUGIN_OK; },
    [](hawser_plugin_backend*, const hawser_plugin_region*) noexcept {},
    open_port,
    [](hawser_plugin_backend* backend, const hawser_plugin_sink* out) noexcept {
      put(out, "queue");
      put(out, std::to_string(backend->queue));
    },
    [](hawser_plugin_backend* backend, const hawser_plugin_sink* out) noexcept {
      for (const std::string& warning : backend->warnings) put(out, warning);
    },
    [](hawser_plugin_backend* backend) noexcept { ::close(backend->station->bell); },
};

const hawser_plugin_port_api kPortApi = {
    sizeof(hawser_plugin_port_api),
    close_port,
    open_path,
    [](hawser_plugin_port* port, hawser_plugin_path* path) noexcept { port->release_path(path); },
    [](hawser_plugin_port* port, std::int64_t, const hawser_plugin_budget* budget) noexcept {
      return port->turn(*budget);
    },
    [](hawser_plugin_port* port, hawser_plugin_event* out, std::size_t capacity) noexcept {
      return port->poll(out, capacity);
    },
    [](hawser_plugin_port*) noexcept { return INT64_MAX; },
    [](hawser_plugin_port* port) noexcept { return port->station->bell; },
    [](hawser_plugin_port* port) noexcept { return port->prepare_sleep() ? 1 : 0; },
    region_quiet,
    [](hawser_plugin_port* port, std::int64_t) noexcept { port->close(); },
    [](hawser_plugin_port* port) noexcept { return port->idle() ? 1 : 0; },
};

const hawser_plugin_path_api kPathApi = {
    sizeof(hawser_plugin_path_api),
    [](hawser_plugin_path* path) noexcept { return path->state; },
    bind,
    [](hawser_plugin_path* path, std::uint32_t index, std::uint32_t generation) noexcept {
      path->bindings.erase({index, generation});
    },
    [](hawser_plugin_path* path, const hawser_plugin_chunk* chunks, std::size_t count, std::int64_t) noexcept {
      return path->port->submit(*path, chunks, count);
    },
    [](hawser_plugin_path* path, std::uint32_t, hawser_plugin_text head, hawser_plugin_text body) noexcept {
      return path->port->send(*path, head, body) ? 1 : 0;
    },
    [](hawser_plugin_path* path, std::uint64_t transfer) noexcept { path->port->cancel(*path, transfer); },
    [](hawser_plugin_path* path, hawser_plugin_counters* out) noexcept { *out = path->counters; },
    [](hawser_plugin_path* path, const hawser_plugin_sink* out) noexcept {
      put(out, path->peer ? "to " + path->peer->name + " in this process" : std::string("to nobody"));
    },
};

}  // namespace

std::uint32_t hawser_plugin_v0(const hawser_plugin_host* its_host, hawser_plugin_table* out) {
  if (its_host->abi != HAWSER_PLUGIN_ABI || out->size < sizeof(*out)) return HAWSER_PLUGIN_UNSUPPORTED;
  host = its_host;
  out->size = sizeof(*out);
  out->abi = HAWSER_PLUGIN_ABI;
  out->default_rank = 0;  // An example must not take over where nobody named it.
  out->name = {"mailslot", 8};
  out->backend = &kBackendApi;
  out->port = &kPortApi;
  out->path = &kPathApi;
  return HAWSER_PLUGIN_OK;
}
