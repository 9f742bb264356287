/* A plug-in that loads well and then breaks the contract in the way that its parameter `does` says. Its paths come up
   and carry nothing. */

#include <hawser/plugin.h>
#include <stdlib.h>
#include <string.h>

struct hawser_plugin_backend {
  char does[32];
  hawser_plugin_id incarnation; /* Its bytes are the address. */
};
struct hawser_plugin_path {
  struct hawser_plugin_path* next;
  hawser_plugin_id session;
  hawser_plugin_identity peer;
  char name[256];
  int to_tell; /* PATH_UP is due. */
  int is_down;
};
struct hawser_plugin_port {
  const char* does;
  struct hawser_plugin_path* paths;
};
struct hawser_plugin_binding {
  char nothing;
};

static const hawser_plugin_host* host;

static int does(const hawser_plugin_port* port, const char* what) { return strcmp(port->does, what) == 0; }
static void put(const hawser_plugin_sink* sink, const char* text) { sink->put(sink->to, text, strlen(text)); }

/* The backend. */

static uint32_t backend_open(hawser_plugin_agent* agent, const hawser_plugin_context* context,
                             hawser_plugin_backend** out, hawser_plugin_reason* reason) {
  (void)agent, (void)reason;
  hawser_plugin_backend* backend = calloc(1, sizeof(*backend));
  for (size_t i = 0; i < context->param_count; ++i) {
    const hawser_plugin_text value = context->params[i].value;
    memcpy(backend->does, value.data, value.size < sizeof(backend->does) ? value.size : sizeof(backend->does) - 1);
  }
  backend->incarnation = context->identity->incarnation;
  *out = backend;
  return HAWSER_PLUGIN_OK;
}
static void backend_close(hawser_plugin_backend* backend) { free(backend); }
static void traits(hawser_plugin_backend* backend, hawser_plugin_traits* out) {
  (void)backend;
  out->flags = HAWSER_PLUGIN_DIRECT;
}
static void address(hawser_plugin_backend* backend, const hawser_plugin_sink* out) {
  out->put(out->to, (const char*)&backend->incarnation, sizeof(backend->incarnation));
}
static void readable_address(hawser_plugin_backend* backend, const hawser_plugin_sink* out) {
  (void)backend, put(out, "nowhere");
}
static uint32_t reachable(hawser_plugin_backend* backend, hawser_plugin_text peer, hawser_plugin_reason* reason) {
  (void)reason;
  /* All others; the agent itself goes by loopback. */
  const int is_self = peer.size != sizeof(hawser_plugin_id) || !memcmp(peer.data, &backend->incarnation, peer.size);
  return is_self ? HAWSER_PLUGIN_UNSUPPORTED : HAWSER_PLUGIN_OK;
}
static uint32_t add_region(hawser_plugin_backend* backend, const hawser_plugin_region* region,
                           const hawser_plugin_sink* extra, hawser_plugin_reason* reason) {
  (void)backend, (void)region, (void)extra, (void)reason;
  return HAWSER_PLUGIN_OK;
}
static void remove_region(hawser_plugin_backend* backend, const hawser_plugin_region* region) {
  (void)backend, (void)region;
}
static uint32_t open_port(hawser_plugin_backend* backend, hawser_plugin_port** out, hawser_plugin_reason* reason) {
  (void)reason;
  hawser_plugin_port* port = calloc(1, sizeof(*port));
  port->does = backend->does;
  *out = port;
  return HAWSER_PLUGIN_OK;
}
static void nothing(hawser_plugin_backend* backend, const hawser_plugin_sink* out) { (void)backend, (void)out; }
static void disown(hawser_plugin_backend* backend) { (void)backend; }

/* The port. */

static void release_path(hawser_plugin_port* port, hawser_plugin_path* path) {
  hawser_plugin_path** at = &port->paths;
  while (*at != path) at = &(*at)->next;
  *at = path->next;
  free(path);
}
static void port_close(hawser_plugin_port* port) {
  while (port->paths) release_path(port, port->paths);
  free(port);
}
static uint32_t open_path(hawser_plugin_port* port, const hawser_plugin_path_target* target, int64_t now_ns,
                          hawser_plugin_path** out, hawser_plugin_reason* reason) {
  (void)now_ns, (void)reason;
  hawser_plugin_path* path = calloc(1, sizeof(*path));
  host->random(&path->session, sizeof(path->session));
  memcpy(path->name, target->peer.data, target->peer.size < 255 ? target->peer.size : 255);
  path->peer.name.data = path->name;
  path->peer.name.size = strlen(path->name);
  path->peer.incarnation = target->incarnation;
  path->peer.version_min = path->peer.version_max = 1;
  path->to_tell = 1;
  path->next = port->paths;
  port->paths = path;
  *out = path;
  return HAWSER_PLUGIN_OK;
}
static size_t turn(hawser_plugin_port* port, int64_t now_ns, const hawser_plugin_budget* budget) {
  (void)now_ns, (void)budget;
  return does(port, "spin") ? SIZE_MAX : 0;
}
static void fill(hawser_plugin_port* port, hawser_plugin_event* out) {
  hawser_plugin_path* path = port->paths;
  out->path = path;
  out->session = path->session;
  if (path->to_tell) {
    path->to_tell = 0;
    out->kind = HAWSER_PLUGIN_PATH_UP;
    out->peer = &path->peer;
    return;
  }
  out->kind = HAWSER_PLUGIN_MESSAGE;
  out->bytes.data = "garbage";
  out->bytes.size = 7;
  if (does(port, "end what never began")) out->kind = HAWSER_PLUGIN_CHUNK_DONE, out->cookie = 1;
  if (does(port, "be wild")) out->path = (hawser_plugin_path*)port;
  if (does(port, "go down")) out->kind = HAWSER_PLUGIN_PATH_DOWN, out->code = 4711;
}
static size_t poll(hawser_plugin_port* port, hawser_plugin_event* out, size_t capacity) {
  if (does(port, "count wrongly")) return capacity + 1000;
  if (!port->paths || does(port, "never come up")) return 0;
  if (port->paths->to_tell) return fill(port, out), 1;
  if (does(port, "flood")) {
    for (size_t i = 0; i < capacity; ++i) fill(port, &out[i]);
    return capacity;
  }
  if (does(port, "go down")) {
    if (port->paths->is_down) return 0;
    port->paths->is_down = 1;
    return fill(port, out), 1;
  }
  return does(port, "end what never began") || does(port, "be wild") ? (fill(port, out), 1) : 0;
}
static int64_t next_deadline(hawser_plugin_port* port) { return does(port, "be due") ? INT64_MIN : INT64_MAX; }
static int wait_fd(hawser_plugin_port* port) { return does(port, "wait for nothing") ? 1 << 30 : -1; }
static int prepare_sleep(hawser_plugin_port* port) { return does(port, "never sleep") ? 0 : 1; }
static int region_quiet(hawser_plugin_port* port, uint32_t index, uint32_t generation,
                        const hawser_plugin_sink* holder) {
  (void)index, (void)generation;
  if (!does(port, "hold regions")) return 1;
  put(holder, "somebody");
  return 0;
}
static void begin_close(hawser_plugin_port* port, int64_t now_ns) { (void)port, (void)now_ns; }
static int idle(hawser_plugin_port* port) { return does(port, "never end") ? 0 : 1; }

/* The paths. */

static uint32_t state(hawser_plugin_path* path) { return path->to_tell ? HAWSER_PLUGIN_CONNECTING : HAWSER_PLUGIN_UP; }
static uint32_t bind(hawser_plugin_path* path, const hawser_plugin_remote_region* region, hawser_plugin_binding** out,
                     hawser_plugin_reason* reason) {
  static hawser_plugin_binding binding;
  (void)path, (void)region, (void)reason;
  *out = &binding;
  return HAWSER_PLUGIN_OK;
}
static void unbind(hawser_plugin_path* path, uint32_t index, uint32_t generation) {
  (void)path, (void)index, (void)generation;
}
static hawser_plugin_submitted submit(hawser_plugin_path* path, const hawser_plugin_chunk* chunks, size_t count,
                                      int64_t now_ns) {
  hawser_plugin_submitted all = {(uint32_t)count, 0};
  (void)path, (void)chunks, (void)now_ns;
  return all; /* They never end. */
}
static int send(hawser_plugin_path* path, uint32_t priority, hawser_plugin_text head, hawser_plugin_text body) {
  (void)path, (void)priority, (void)head, (void)body;
  return 1;
}
static void cancel(hawser_plugin_path* path, uint64_t transfer) { (void)path, (void)transfer; }
static void counters(hawser_plugin_path* path, hawser_plugin_counters* out) { (void)path, (void)out; }
static void describe(hawser_plugin_path* path, const hawser_plugin_sink* out) { (void)path, put(out, "hostile"); }

static const hawser_plugin_backend_api kBackendApi = {sizeof(hawser_plugin_backend_api),
                                                      backend_open,
                                                      backend_close,
                                                      traits,
                                                      address,
                                                      readable_address,
                                                      reachable,
                                                      add_region,
                                                      remove_region,
                                                      open_port,
                                                      nothing,
                                                      nothing,
                                                      disown};
static const hawser_plugin_port_api kPortApi = {sizeof(hawser_plugin_port_api),
                                                port_close,
                                                open_path,
                                                release_path,
                                                turn,
                                                poll,
                                                next_deadline,
                                                wait_fd,
                                                prepare_sleep,
                                                region_quiet,
                                                begin_close,
                                                idle};
static const hawser_plugin_path_api kPathApi = {
    sizeof(hawser_plugin_path_api), state, bind, unbind, submit, send, cancel, counters, describe};

uint32_t hawser_plugin_v0(const hawser_plugin_host* its_host, hawser_plugin_table* out) {
  if (its_host->abi != HAWSER_PLUGIN_ABI || out->size < sizeof(*out)) return HAWSER_PLUGIN_UNSUPPORTED;
  host = its_host;
  out->size = sizeof(*out);
  out->abi = HAWSER_PLUGIN_ABI;
  out->default_rank = 0;
  out->name.data = "hostile";
  out->name.size = 7;
  out->backend = &kBackendApi;
  out->port = &kPortApi;
  out->path = &kPathApi;
  return HAWSER_PLUGIN_OK;
}
