/* The NIXL face misused: every function that takes a handle or a pointer is called once for each of them with what is
   not there, of another kind, made up or destroyed, all else as it should be. It answers "invalid parameter" each time,
   and what it was given stays as it was. */

#include <string.h>

#include "nixl_capi.h"
#include "nixl_checks.h"

enum { kArgsMax = 8, kFunctions = 103 };

/* What stands in a function's place `i`, by a letter: a handle of a kind, q optional arguments and X a list that may be
   left out, v where something is stored or read from, z a text. */
#define EACH_FUNCTION(F)                                                                              \
  F(create_configured_agent, "zvv", p[0], p[1], p[2])                                                 \
  F(create_agent, "zv", p[0], p[1])                                                                   \
  F(destroy_agent, "a", p[0])                                                                         \
  F(get_local_md, "avv", p[0], p[1], p[2])                                                            \
  F(get_local_partial_md, "arvvq", p[0], p[1], p[2], p[3], p[4])                                      \
  F(load_remote_md, "avv", p[0], p[1], 1, p[2])                                                       \
  F(invalidate_remote_md, "az", p[0], p[1])                                                           \
  F(invalidate_local_md, "aq", p[0], p[1])                                                            \
  F(check_remote_md, "azX", p[0], p[1], p[2])                                                         \
  F(send_local_md, "aq", p[0], p[1])                                                                  \
  F(send_local_partial_md, "arq", p[0], p[1], p[2])                                                   \
  F(fetch_remote_md, "azq", p[0], p[1], p[2])                                                         \
  F(get_available_plugins, "av", p[0], p[1])                                                          \
  F(destroy_string_list, "s", p[0])                                                                   \
  F(string_list_size, "sv", p[0], p[1])                                                               \
  F(string_list_get, "sv", p[0], 0, p[1])                                                             \
  F(get_plugin_params, "azvv", p[0], p[1], p[2], p[3])                                                \
  F(destroy_mem_list, "l", p[0])                                                                      \
  F(destroy_params, "p", p[0])                                                                        \
  F(create_backend, "azpv", p[0], p[1], p[2], p[3])                                                   \
  F(destroy_backend, "b", p[0])                                                                       \
  F(get_backend_params, "abvv", p[0], p[1], p[2], p[3])                                               \
  F(create_opt_args, "v", p[0])                                                                       \
  F(destroy_opt_args, "o", p[0])                                                                      \
  F(opt_args_add_backend, "ob", p[0], p[1])                                                           \
  F(opt_args_set_notif_msg, "ov", p[0], p[1], 1)                                                      \
  F(opt_args_get_notif_msg, "ovv", p[0], p[1], p[2])                                                  \
  F(opt_args_set_custom_param, "ov", p[0], p[1], 1)                                                   \
  F(opt_args_get_custom_param, "ovv", p[0], p[1], p[2])                                               \
  F(opt_args_set_has_notif, "o", p[0], true)                                                          \
  F(opt_args_get_has_notif, "ov", p[0], p[1])                                                         \
  F(opt_args_set_skip_desc_merge, "o", p[0], true)                                                    \
  F(opt_args_get_skip_desc_merge, "ov", p[0], p[1])                                                   \
  F(opt_args_set_ip_addr, "oz", p[0], p[1])                                                           \
  F(opt_args_set_port, "o", p[0], 1)                                                                  \
  F(create_params, "v", p[0])                                                                         \
  F(params_add, "pzz", p[0], p[1], p[2])                                                              \
  F(params_is_empty, "pv", p[0], p[1])                                                                \
  F(params_create_iterator, "pv", p[0], p[1])                                                         \
  F(params_iterator_next, "ivvv", p[0], p[1], p[2], p[3])                                             \
  F(params_destroy_iterator, "i", p[0])                                                               \
  F(mem_list_is_empty, "lv", p[0], p[1])                                                              \
  F(mem_list_size, "lv", p[0], p[1])                                                                  \
  F(mem_list_get, "lv", p[0], 0, p[1])                                                                \
  F(mem_type_to_string, "v", NIXL_CAPI_MEM_DRAM, p[0])                                                \
  F(register_mem, "arq", p[0], p[1], p[2])                                                            \
  F(deregister_mem, "arq", p[0], p[1], p[2])                                                          \
  F(agent_make_connection, "azq", p[0], p[1], p[2])                                                   \
  F(prep_xfer_dlist, "azxvq", p[0], p[1], p[2], p[3], p[4])                                           \
  F(release_xfer_dlist_handle, "ah", p[0], p[1])                                                      \
  F(make_xfer_req, "ahvhvvq", p[0], NIXL_CAPI_XFER_OP_READ, p[1], p[2], 1, p[3], p[4], 1, p[5], p[6]) \
  F(get_notifs, "anq", p[0], p[1], p[2])                                                              \
  F(create_notif_map, "v", p[0])                                                                      \
  F(destroy_notif_map, "n", p[0])                                                                     \
  F(gen_notif, "azvq", p[0], p[1], p[2], 1, p[3])                                                     \
  F(create_xfer_req, "axxzvq", p[0], NIXL_CAPI_XFER_OP_READ, p[1], p[2], p[3], p[4], p[5])            \
  F(estimate_xfer_cost, "atqvvv", p[0], p[1], p[2], p[3], p[4], p[5])                                 \
  F(post_xfer_req, "atq", p[0], p[1], p[2])                                                           \
  F(get_xfer_status, "at", p[0], p[1])                                                                \
  F(query_xfer_backend, "atv", p[0], p[1], p[2])                                                      \
  F(release_xfer_req, "at", p[0], p[1])                                                               \
  F(destroy_xfer_req, "t", p[0])                                                                      \
  F(create_xfer_dlist, "v", NIXL_CAPI_MEM_DRAM, p[0])                                                 \
  F(destroy_xfer_dlist, "x", p[0])                                                                    \
  F(xfer_dlist_get_type, "xv", p[0], p[1])                                                            \
  F(xfer_dlist_add_desc, "x", p[0], 4096, 1, 0)                                                       \
  F(xfer_dlist_desc_count, "xv", p[0], p[1])                                                          \
  F(xfer_dlist_len, "xv", p[0], p[1])                                                                 \
  F(xfer_dlist_is_empty, "xv", p[0], p[1])                                                            \
  F(xfer_dlist_trim, "x", p[0])                                                                       \
  F(xfer_dlist_rem_desc, "x", p[0], 0)                                                                \
  F(xfer_dlist_clear, "x", p[0])                                                                      \
  F(xfer_dlist_resize, "x", p[0], 1)                                                                  \
  F(xfer_dlist_print, "x", p[0])                                                                      \
  F(create_reg_dlist, "v", NIXL_CAPI_MEM_DRAM, p[0])                                                  \
  F(destroy_reg_dlist, "r", p[0])                                                                     \
  F(reg_dlist_get_type, "rv", p[0], p[1])                                                             \
  F(reg_dlist_add_desc, "r", p[0], 4096, 1, 0, NULL, 1)                                               \
  F(reg_dlist_desc_count, "rv", p[0], p[1])                                                           \
  F(reg_dlist_is_empty, "rv", p[0], p[1])                                                             \
  F(reg_dlist_trim, "r", p[0])                                                                        \
  F(reg_dlist_rem_desc, "r", p[0], 0)                                                                 \
  F(reg_dlist_clear, "r", p[0])                                                                       \
  F(reg_dlist_resize, "r", p[0], 1)                                                                   \
  F(reg_dlist_print, "r", p[0])                                                                       \
  F(notif_map_size, "nv", p[0], p[1])                                                                 \
  F(notif_map_get_agent_at, "nv", p[0], 0, p[1])                                                      \
  F(notif_map_get_notifs_size, "nzv", p[0], p[1], p[2])                                               \
  F(notif_map_get_notif, "nzvv", p[0], p[1], 0, p[2], p[3])                                           \
  F(notif_map_clear, "n", p[0])                                                                       \
  F(create_query_resp_list, "v", p[0])                                                                \
  F(destroy_query_resp_list, "y", p[0])                                                               \
  F(query_resp_list_size, "yv", p[0], p[1])                                                           \
  F(query_resp_list_has_value, "yv", p[0], 0, p[1])                                                   \
  F(query_resp_list_get_params, "yv", p[0], 0, p[1])                                                  \
  F(query_mem, "aryq", p[0], p[1], p[2], p[3])                                                        \
  F(prep_mem_view_local, "axv", p[0], p[1], p[2], NULL)                                               \
  F(prep_mem_view_remote, "amv", p[0], p[1], p[2], NULL)                                              \
  F(create_remote_dlist, "v", NIXL_CAPI_MEM_DRAM, p[0])                                               \
  F(destroy_remote_dlist, "m", p[0])                                                                  \
  F(remote_dlist_add_desc, "m", p[0], 4096, 1, 0, NULL)                                               \
  F(release_mem_view, "a", p[0], NULL)                                                                \
  F(get_xfer_telemetry, "atv", p[0], p[1], p[2])

#define CALLER(name, kinds, ...) \
  static int call_##name(void* const* p) { return (int)nixl_capi_##name(__VA_ARGS__); }
EACH_FUNCTION(CALLER)

typedef struct {
  const char* name;
  const char* kinds;
  int (*call)(void* const* p);
} Function;

#define ROW(name, kinds, ...) {#name, kinds, call_##name},
static const Function functions[] = {EACH_FUNCTION(ROW)};
_Static_assert(sizeof(functions) / sizeof(functions[0]) == kFunctions, "all but is_stub and mem_free");

static void* live[128]; /* By letter. */
static void* gone[128]; /* The same, destroyed. */
static char memory[4096];
static int calls;

static void make_small(void** all) {
  nixl_capi_params_t params;
  nixl_capi_param_iter_t iter;
  nixl_capi_opt_args_t opt;
  nixl_capi_xfer_dlist_t xfer;
  nixl_capi_reg_dlist_t reg;
  nixl_capi_notif_map_t map;
  nixl_capi_query_resp_list_t answers;
  nixl_capi_remote_dlist_t remote;
  MUST(nixl_capi_create_params(&params));
  MUST(nixl_capi_params_add(params, "use_aio", "true"));
  MUST(nixl_capi_params_create_iterator(params, &iter));
  MUST(nixl_capi_create_opt_args(&opt));
  MUST(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &xfer));
  MUST(nixl_capi_xfer_dlist_add_desc(xfer, (uintptr_t)memory, sizeof(memory), 0));
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &reg));
  MUST(nixl_capi_reg_dlist_add_desc(reg, (uintptr_t)memory, sizeof(memory), 0, NULL, 0));
  MUST(nixl_capi_create_notif_map(&map));
  MUST(nixl_capi_create_query_resp_list(&answers));
  MUST(nixl_capi_create_remote_dlist(NIXL_CAPI_MEM_DRAM, &remote));
  all['p'] = params;
  all['i'] = iter;
  all['o'] = all['q'] = opt;
  all['x'] = all['X'] = xfer;
  all['r'] = reg;
  all['n'] = map;
  all['y'] = answers;
  all['m'] = remote;
}

static void make_agent(void** all, const char* name) {
  nixl_capi_agent_t agent;
  nixl_capi_string_list_t plugins;
  nixl_capi_mem_list_t mems;
  nixl_capi_params_t params;
  nixl_capi_backend_t backend;
  nixl_capi_xfer_dlist_handle_t prepared;
  nixl_capi_xfer_req_t request;
  MUST(nixl_capi_create_agent(name, &agent));
  MUST(nixl_capi_get_available_plugins(agent, &plugins));
  MUST(nixl_capi_get_plugin_params(agent, "UCX", &mems, &params));
  MUST(nixl_capi_create_backend(agent, "UCX", params, &backend));
  MUST(nixl_capi_destroy_params(params));
  MUST(nixl_capi_register_mem(agent, all['r'], NULL));
  MUST(nixl_capi_prep_xfer_dlist(agent, "", all['x'], &prepared, NULL));
  MUST(nixl_capi_create_xfer_req(agent, NIXL_CAPI_XFER_OP_READ, all['x'], all['x'], name, &request, NULL));
  all['a'] = agent;
  all['s'] = plugins;
  all['l'] = mems;
  all['b'] = backend;
  all['h'] = prepared;
  all['t'] = request;
}

static void destroy_all(void** all) {
  MUST(nixl_capi_release_xfer_req(all['a'], all['t']));
  MUST(nixl_capi_destroy_xfer_req(all['t']));
  MUST(nixl_capi_release_xfer_dlist_handle(all['a'], all['h']));
  MUST(nixl_capi_deregister_mem(all['a'], all['r'], NULL));
  MUST(nixl_capi_destroy_backend(all['b']));
  MUST(nixl_capi_destroy_mem_list(all['l']));
  MUST(nixl_capi_destroy_string_list(all['s']));
  MUST(nixl_capi_destroy_agent(all['a']));
  MUST(nixl_capi_params_destroy_iterator(all['i']));
  MUST(nixl_capi_destroy_params(all['p']));
  MUST(nixl_capi_destroy_opt_args(all['o']));
  MUST(nixl_capi_destroy_xfer_dlist(all['x']));
  MUST(nixl_capi_destroy_reg_dlist(all['r']));
  MUST(nixl_capi_destroy_notif_map(all['n']));
  MUST(nixl_capi_destroy_query_resp_list(all['y']));
  MUST(nixl_capi_destroy_remote_dlist(all['m']));
}

static void refuses(const Function* function, void* const* arguments, size_t at, const char* how) {
  const int code = function->call(arguments);
  ++calls;
  if (code == NIXL_CAPI_ERROR_INVALID_PARAM) return;
  fprintf(stderr, "nixl_capi_%s: argument %zu (%c) %s: gave %d\n", function->name, at, function->kinds[at], how, code);
  ++failed;
}

static void misuse(const Function* function) {
  static uint64_t room[64]; /* For whatever is stored. */
  const size_t count = strlen(function->kinds);
  for (size_t at = 0; at < count; ++at) {
    void* arguments[kArgsMax] = {NULL};
    for (size_t i = 0; i < count; ++i) {
      const char kind = function->kinds[i];
      arguments[i] = kind == 'v' ? (void*)room : kind == 'z' ? (void*)"UCX" : live[(unsigned char)kind];
    }
    const char kind = function->kinds[at];
    arguments[at] = NULL;
    if (kind != 'q' && kind != 'X') refuses(function, arguments, at, "null");
    if (kind == 'v' || kind == 'z') continue;
    arguments[at] = kind == 'n' ? live['y'] : live['n'];
    refuses(function, arguments, at, "of another kind");
    arguments[at] = gone[(unsigned char)kind];
    refuses(function, arguments, at, "destroyed");
    arguments[at] = (void*)room;
    refuses(function, arguments, at, "a pointer");
    arguments[at] = (void*)(uintptr_t)1;
    refuses(function, arguments, at, "made up");
    memset(&arguments[at], 0xff, sizeof(arguments[at]));
    refuses(function, arguments, at, "all ones");
  }
}

int main(void) {
  make_small(gone);
  make_agent(gone, "gone");
  destroy_all(gone);
  make_small(live);
  make_agent(live, "live");
  for (size_t i = 0; i < kFunctions; ++i) misuse(&functions[i]);
  /* All of it is there still. */
  size_t count = 0;
  int status = nixl_capi_post_xfer_req(live['a'], live['t'], NULL);
  for (int i = 0; i < 1000000 && status == NIXL_CAPI_IN_PROG; ++i) {
    status = nixl_capi_get_xfer_status(live['a'], live['t']);
  }
  GIVES(NIXL_CAPI_SUCCESS, status);
  MUST(nixl_capi_xfer_dlist_desc_count(live['x'], &count));
  CHECK(count == 1);
  destroy_all(live);
  CHECK(calls > 5 * kFunctions);
  if (failed != 0) fprintf(stderr, "%d checks failed\n", failed);
  return failed == 0 ? 0 : 1;
}
