/* The NIXL face, driven as a C program would: every function, in its correct use and in wrong ones, between two agents
   of this process. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nixl_capi.h"
#include "nixl_checks.h"

enum { kBytes = 1 << 20, kBlocks = 64, kBlock = kBytes / kBlocks, kPatienceSeconds = 60 };

typedef struct {
  nixl_capi_agent_t agent;
  nixl_capi_backend_t backend;
  nixl_capi_reg_dlist_t registered;
  char* bytes;
} Side;

static nixl_capi_reg_dlist_t reg_list(char* bytes, size_t len) {
  nixl_capi_reg_dlist_t list;
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &list));
  MUST(nixl_capi_reg_dlist_add_desc(list, (uintptr_t)bytes, len, 0, NULL, 0));
  return list;
}

static nixl_capi_xfer_dlist_t block_list(const char* bytes, int reversed) {
  nixl_capi_xfer_dlist_t list;
  MUST(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &list));
  for (size_t i = 0; i < kBlocks; ++i) {
    const size_t block = reversed ? kBlocks - 1 - i : i;
    MUST(nixl_capi_xfer_dlist_add_desc(list, (uintptr_t)bytes + block * kBlock, kBlock, 0));
  }
  return list;
}

static Side open_side(const char* name, bool thread) {
  Side side;
  const nixl_capi_agent_config_t config = {.enable_prog_thread = thread, .capture_telemetry = true};
  MUST(nixl_capi_create_configured_agent(name, &config, &side.agent));
  nixl_capi_params_t params;
  MUST(nixl_capi_create_params(&params));
  MUST(nixl_capi_params_add(params, "num_workers", "2"));
  MUST(nixl_capi_params_add(params, "what_is_this", "1"));
  side.bytes = malloc(kBytes);
  memset(side.bytes, 0, kBytes);
  side.registered = reg_list(side.bytes, kBytes);
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_register_mem(side.agent, side.registered, NULL));
  void* data = NULL;
  size_t len = 0;
  INVALID(nixl_capi_get_local_md(side.agent, &data, &len));
  CHECK(data == NULL);
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_create_backend(side.agent, "NO_SUCH", params, &side.backend));
  INVALID(nixl_capi_create_backend(side.agent, "UCX", NULL, &side.backend));
  MUST(nixl_capi_create_backend(side.agent, "ucx", params, &side.backend));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_create_backend(side.agent, "UCX", params, &side.backend));
  MUST(nixl_capi_destroy_params(params));
  MUST(nixl_capi_register_mem(side.agent, side.registered, NULL));
  return side;
}

static void close_side(Side* side) {
  MUST(nixl_capi_deregister_mem(side->agent, side->registered, NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_deregister_mem(side->agent, side->registered, NULL));
  MUST(nixl_capi_destroy_reg_dlist(side->registered));
  MUST(nixl_capi_destroy_backend(side->backend));
  MUST(nixl_capi_destroy_agent(side->agent));
  INVALID(nixl_capi_destroy_agent(side->agent));
  free(side->bytes);
}

static void load(Side* to, Side* from, const char* name) {
  void* data;
  size_t len;
  char* loaded;
  MUST(nixl_capi_get_local_md(from->agent, &data, &len));
  CHECK(len > 0);
  MUST(nixl_capi_load_remote_md(to->agent, data, len, &loaded));
  CHECK(strcmp(loaded, name) == 0);
  free(loaded);
  INVALID(nixl_capi_load_remote_md(from->agent, data, len, &loaded)); /* Its own. */
  INVALID(nixl_capi_load_remote_md(to->agent, data, 0, &loaded));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_load_remote_md(to->agent, data, len - 1, &loaded));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_load_remote_md(to->agent, "garbage", 7, &loaded));
  nixl_capi_mem_free(data);
}

/* Posts, and polls until the request is over. */
static int run_request(Side* a, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t opt) {
  const time_t end = time(NULL) + kPatienceSeconds;
  int status = nixl_capi_post_xfer_req(a->agent, request, opt);
  while (status == NIXL_CAPI_IN_PROG && time(NULL) < end) {
    status = nixl_capi_get_xfer_status(a->agent, request);
  }
  /* Most of these are answered without asking the agent. */
  for (int i = 0; i < 200 && status == NIXL_CAPI_SUCCESS; ++i) status = nixl_capi_get_xfer_status(a->agent, request);
  return status;
}

/* Whoever has no thread moves on when it is called. */
static void move_on(Side* side) {
  nixl_capi_notif_map_t map;
  size_t count = 0;
  MUST(nixl_capi_create_notif_map(&map));
  MUST(nixl_capi_get_notifs(side->agent, map, NULL));
  MUST(nixl_capi_notif_map_size(map, &count));
  CHECK(count == 0);
  MUST(nixl_capi_destroy_notif_map(map));
}

static void expect_notif_while(Side* at, Side* moving, const char* from, const char* text, size_t size) {
  const time_t end = time(NULL) + kPatienceSeconds;
  nixl_capi_notif_map_t map;
  size_t count = 0;
  MUST(nixl_capi_create_notif_map(&map));
  while (count == 0 && time(NULL) < end) {
    if (moving != NULL) move_on(moving);
    MUST(nixl_capi_get_notifs(at->agent, map, NULL));
    MUST(nixl_capi_notif_map_size(map, &count));
  }
  const char* name = "";
  const void* data = NULL;
  size_t len = 0, messages = 0;
  CHECK(count == 1);
  MUST(nixl_capi_notif_map_get_agent_at(map, 0, &name));
  CHECK(strcmp(name, from) == 0);
  MUST(nixl_capi_notif_map_get_notifs_size(map, name, &messages));
  CHECK(messages == 1);
  MUST(nixl_capi_notif_map_get_notif(map, name, 0, &data, &len));
  CHECK(len == size && memcmp(data, text, size) == 0);
  INVALID(nixl_capi_notif_map_get_agent_at(map, 1, &name));
  INVALID(nixl_capi_notif_map_get_notif(map, from, 1, &data, &len));
  INVALID(nixl_capi_notif_map_get_notif(map, "nobody", 0, &data, &len));
  INVALID(nixl_capi_notif_map_get_notifs_size(map, "nobody", &messages));
  MUST(nixl_capi_notif_map_clear(map));
  MUST(nixl_capi_notif_map_size(map, &count));
  CHECK(count == 0);
  MUST(nixl_capi_destroy_notif_map(map));
}

static void expect_notif(Side* at, const char* from, const char* text, size_t size) {
  expect_notif_while(at, NULL, from, text, size);
}

/* Of any length up to 8 MiB, alone and after data. */
static void test_long_notifs(Side* a, Side* b) {
  enum { kLongest = 8 << 20 };
  static const size_t lengths[] = {64 << 10, (64 << 10) + 1, 1 << 20, kLongest};
  char* const text = malloc(kLongest + 1);
  for (size_t i = 0; i <= kLongest; ++i) text[i] = (char)(i * 7 + i / 251);
  const nixl_capi_xfer_dlist_t ours = block_list(a->bytes, 0), theirs = block_list(b->bytes, 0);
  nixl_capi_xfer_req_t request;
  nixl_capi_opt_args_t opt;
  MUST(nixl_capi_create_opt_args(&opt));
  MUST(nixl_capi_opt_args_set_has_notif(opt, true));
  MUST(nixl_capi_create_xfer_req(a->agent, NIXL_CAPI_XFER_OP_WRITE, ours, theirs, "b", &request, NULL));
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
    MUST(nixl_capi_gen_notif(a->agent, "b", text, lengths[i], NULL));
    expect_notif_while(b, a, "a", text, lengths[i]);
    memset(a->bytes, (int)i + 1, kBytes);
    MUST(nixl_capi_opt_args_set_notif_msg(opt, text, lengths[i]));
    MUST(run_request(a, request, opt));
    expect_notif_while(b, a, "a", text, lengths[i]);
    CHECK(memcmp(a->bytes, b->bytes, kBytes) == 0);
  }
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_gen_notif(a->agent, "b", text, kLongest + 1, NULL));
  MUST(nixl_capi_opt_args_set_notif_msg(opt, text, kLongest + 1));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_post_xfer_req(a->agent, request, opt));
  MUST(nixl_capi_release_xfer_req(a->agent, request));
  MUST(nixl_capi_destroy_xfer_req(request));
  MUST(nixl_capi_destroy_opt_args(opt));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
  free(text);
}

static void end_request(Side* a, nixl_capi_xfer_req_t request) {
  GIVES(NIXL_CAPI_ERROR_INVALID_STATE, nixl_capi_destroy_xfer_req(request));
  MUST(nixl_capi_release_xfer_req(a->agent, request));
  INVALID(nixl_capi_release_xfer_req(a->agent, request));
  INVALID(nixl_capi_post_xfer_req(a->agent, request, NULL));
  INVALID(nixl_capi_get_xfer_status(a->agent, request));
  MUST(nixl_capi_destroy_xfer_req(request));
  INVALID(nixl_capi_destroy_xfer_req(request));
}

static void fill(char* bytes, unsigned seed) {
  for (size_t i = 0; i < kBytes; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (char)(seed >> 24);
  }
}

static void test_telemetry(Side* a, nixl_capi_xfer_req_t request) {
  struct nixl_capi_xfer_telemetry_s times;
  MUST(nixl_capi_get_xfer_telemetry(a->agent, request, &times));
  CHECK(times.start_time_us > 0 && times.total_bytes == kBytes && times.desc_count >= 1);
  CHECK(times.post_duration_us > 0 && times.xfer_duration_us >= times.post_duration_us);
  INVALID(nixl_capi_get_xfer_telemetry(a->agent, request, NULL));
}

static void test_prepared(Side* a, Side* b) {
  const nixl_capi_xfer_dlist_t ours = block_list(a->bytes, 0), theirs = block_list(b->bytes, 1);
  nixl_capi_xfer_dlist_handle_t local, remote, odd;
  MUST(nixl_capi_prep_xfer_dlist(a->agent, "", ours, &local, NULL));
  MUST(nixl_capi_prep_xfer_dlist(a->agent, "b", theirs, &remote, NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_prep_xfer_dlist(a->agent, "nobody", theirs, &odd, NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_prep_xfer_dlist(a->agent, "", theirs, &odd, NULL));
  int index[kBlocks];
  for (int i = 0; i < kBlocks; ++i) index[i] = i;
  nixl_capi_xfer_req_t request;
  const int wrong[] = {999}, negative[] = {-1};
  INVALID(nixl_capi_make_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, local, wrong, 1, remote, index, 1, &request, NULL));
  INVALID(
      nixl_capi_make_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, local, index, 1, remote, negative, 1, &request, NULL));
  INVALID(nixl_capi_make_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, local, index, 2, remote, index, 1, &request, NULL));
  INVALID(nixl_capi_make_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, remote, index, 1, local, index, 1, &request, NULL));
  INVALID(nixl_capi_make_xfer_req(b->agent, NIXL_CAPI_XFER_OP_READ, local, index, 1, remote, index, 1, &request, NULL));

  nixl_capi_opt_args_t opt;
  MUST(nixl_capi_create_opt_args(&opt));
  MUST(nixl_capi_opt_args_add_backend(opt, a->backend));
  MUST(nixl_capi_opt_args_set_notif_msg(opt, "req\0-1", 6));
  MUST(nixl_capi_opt_args_set_has_notif(opt, true));
  MUST(nixl_capi_make_xfer_req(a->agent, NIXL_CAPI_XFER_OP_WRITE, local, index, kBlocks, remote, index, kBlocks,
                               &request, opt));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_get_xfer_status(a->agent, request)); /* Not posted. */
  for (unsigned round = 0; round < 3; ++round) {
    fill(a->bytes, round);
    MUST(run_request(a, request, NULL));
    expect_notif(b, "a", "req\0-1", 6);
    for (size_t i = 0; i < kBlocks; ++i) {
      CHECK(memcmp(a->bytes + i * kBlock, b->bytes + (kBlocks - 1 - i) * kBlock, kBlock) == 0);
    }
  }
  MUST(nixl_capi_opt_args_set_notif_msg(opt, "other", 5));
  MUST(run_request(a, request, opt));
  expect_notif(b, "a", "other", 5);
  test_telemetry(a, request);
  nixl_capi_backend_t which;
  MUST(nixl_capi_query_xfer_backend(a->agent, request, &which));
  MUST(nixl_capi_destroy_backend(which));
  int64_t duration = 1, margin = 1;
  nixl_capi_cost_t method;
  MUST(nixl_capi_estimate_xfer_cost(a->agent, request, NULL, &duration, &margin, &method));
  CHECK(duration > 0 && margin == 0 && method == NIXL_CAPI_COST_ANALYTICAL_BACKEND);
  end_request(a, request);
  MUST(nixl_capi_destroy_opt_args(opt));
  MUST(nixl_capi_release_xfer_dlist_handle(a->agent, local));
  MUST(nixl_capi_release_xfer_dlist_handle(a->agent, remote));
  INVALID(nixl_capi_release_xfer_dlist_handle(a->agent, remote));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
}

/* One call, both ways; the agent itself is a peer, too. */
static void test_created(Side* a, Side* b) {
  const nixl_capi_xfer_dlist_t ours = block_list(a->bytes, 0), theirs = block_list(b->bytes, 0);
  nixl_capi_xfer_req_t request;
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND,
        nixl_capi_create_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, ours, theirs, "nobody", &request, NULL));
  INVALID(nixl_capi_create_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, ours, theirs, NULL, &request, NULL));
  fill(b->bytes, 99);
  MUST(nixl_capi_create_xfer_req(a->agent, NIXL_CAPI_XFER_OP_READ, ours, theirs, "b", &request, NULL));
  MUST(run_request(a, request, NULL));
  CHECK(memcmp(a->bytes, b->bytes, kBytes) == 0);
  end_request(a, request);

  char* const other = calloc(1, kBytes);
  const nixl_capi_reg_dlist_t more = reg_list(other, kBytes);
  MUST(nixl_capi_register_mem(a->agent, more, NULL));
  MUST(nixl_capi_register_mem(a->agent, more, NULL)); /* Twice: one deregistration takes one away. */
  const nixl_capi_xfer_dlist_t own = block_list(other, 0);
  MUST(nixl_capi_deregister_mem(a->agent, more, NULL));
  MUST(nixl_capi_create_xfer_req(a->agent, NIXL_CAPI_XFER_OP_WRITE, ours, own, "a", &request, NULL));
  MUST(run_request(a, request, NULL));
  CHECK(memcmp(a->bytes, other, kBytes) == 0);
  end_request(a, request);
  MUST(nixl_capi_deregister_mem(a->agent, more, NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND,
        nixl_capi_create_xfer_req(a->agent, NIXL_CAPI_XFER_OP_WRITE, ours, own, "a", &request, NULL));
  MUST(nixl_capi_destroy_reg_dlist(more));
  MUST(nixl_capi_destroy_xfer_dlist(own));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
  free(other);
}

static void test_metadata(Side* a, Side* b) {
  const nixl_capi_xfer_dlist_t theirs = block_list(b->bytes, 0), ours = block_list(a->bytes, 0);
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a->agent, "b", NULL));
  load(a, b, "b");
  load(b, a, "a");
  MUST(nixl_capi_check_remote_md(a->agent, "b", NULL));
  MUST(nixl_capi_check_remote_md(a->agent, "b", theirs));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a->agent, "b", ours));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a->agent, "nobody", NULL));
  void* data = NULL;
  size_t len = 0;
  char* name;
  MUST(nixl_capi_get_local_partial_md(b->agent, b->registered, &data, &len, NULL));
  MUST(nixl_capi_load_remote_md(a->agent, data, len, &name));
  free(name);
  free(data);
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_get_local_partial_md(b->agent, a->registered, &data, &len, NULL));
  MUST(nixl_capi_agent_make_connection(a->agent, "b", NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_agent_make_connection(a->agent, "nobody", NULL));
  INVALID(nixl_capi_invalidate_remote_md(a->agent, "nobody"));

  nixl_capi_opt_args_t opt;
  MUST(nixl_capi_create_opt_args(&opt));
  INVALID(nixl_capi_send_local_md(a->agent, opt));
  INVALID(nixl_capi_send_local_md(a->agent, NULL));
  INVALID(nixl_capi_fetch_remote_md(a->agent, "b", NULL));
  INVALID(nixl_capi_invalidate_local_md(a->agent, NULL));
  INVALID(nixl_capi_send_local_partial_md(a->agent, a->registered, NULL));
  MUST(nixl_capi_opt_args_set_ip_addr(opt, "127.0.0.1"));
  MUST(nixl_capi_opt_args_set_port(opt, 8888));
  MUST(nixl_capi_send_local_md(a->agent, opt)); /* In the background, as with NIXL: nobody listens there. */
  MUST(nixl_capi_destroy_opt_args(opt));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
}

static void test_plugins(Side* a) {
  nixl_capi_string_list_t plugins;
  size_t count = 0;
  const char *text = NULL, *value = NULL;
  MUST(nixl_capi_get_available_plugins(a->agent, &plugins));
  MUST(nixl_capi_string_list_size(plugins, &count));
  CHECK(count >= 1);
  MUST(nixl_capi_string_list_get(plugins, 0, &text));
  CHECK(strcmp(text, "UCX") == 0);
  INVALID(nixl_capi_string_list_get(plugins, count, &text));
  MUST(nixl_capi_destroy_string_list(plugins));

  nixl_capi_mem_list_t mems;
  nixl_capi_params_t params;
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_get_plugin_params(a->agent, "NO_SUCH", &mems, &params));
  MUST(nixl_capi_get_plugin_params(a->agent, "UCX", &mems, &params));
  bool is_empty = true, has_next = true;
  nixl_capi_mem_type_t type;
  MUST(nixl_capi_mem_list_is_empty(mems, &is_empty));
  CHECK(!is_empty);
  MUST(nixl_capi_mem_list_size(mems, &count));
  MUST(nixl_capi_mem_list_get(mems, 0, &type));
  CHECK(count == 2 && type == NIXL_CAPI_MEM_DRAM);
  INVALID(nixl_capi_mem_list_get(mems, 2, &type));
  MUST(nixl_capi_mem_type_to_string(NIXL_CAPI_MEM_FILE, &text));
  CHECK(strcmp(text, "FILE") == 0);
  MUST(nixl_capi_params_is_empty(params, &is_empty));
  CHECK(!is_empty);
  nixl_capi_param_iter_t iter;
  MUST(nixl_capi_params_create_iterator(params, &iter));
  for (count = 0; has_next; ++count) MUST(nixl_capi_params_iterator_next(iter, &text, &value, &has_next));
  CHECK(count == 3 && strcmp(text, "ucx_error_handling_mode") == 0 && strcmp(value, "peer") == 0);
  text = NULL;
  MUST(nixl_capi_params_iterator_next(iter, &text, &value, &has_next));
  CHECK(text == NULL && !has_next);
  MUST(nixl_capi_params_destroy_iterator(iter));
  MUST(nixl_capi_destroy_mem_list(mems));
  MUST(nixl_capi_destroy_params(params));
  MUST(nixl_capi_get_backend_params(a->agent, a->backend, &mems, &params));
  MUST(nixl_capi_destroy_mem_list(mems));
  MUST(nixl_capi_destroy_params(params));
}

static void test_options(void) {
  nixl_capi_opt_args_t opt;
  void* data = &opt;
  size_t len = 1;
  bool flag = true;
  MUST(nixl_capi_create_opt_args(&opt));
  MUST(nixl_capi_opt_args_get_notif_msg(opt, &data, &len));
  CHECK(data == NULL && len == 0);
  MUST(nixl_capi_opt_args_set_notif_msg(opt, "hi", 2));
  MUST(nixl_capi_opt_args_get_has_notif(opt, &flag));
  CHECK(!flag);
  MUST(nixl_capi_opt_args_get_notif_msg(opt, &data, &len));
  CHECK(len == 2 && memcmp(data, "hi", 2) == 0);
  free(data);
  MUST(nixl_capi_opt_args_set_custom_param(opt, "worker_id=1", 11));
  MUST(nixl_capi_opt_args_get_custom_param(opt, &data, &len));
  CHECK(len == 11);
  free(data);
  MUST(nixl_capi_opt_args_set_skip_desc_merge(opt, true));
  MUST(nixl_capi_opt_args_get_skip_desc_merge(opt, &flag));
  CHECK(flag);
  INVALID(nixl_capi_opt_args_set_ip_addr(opt, NULL));
  INVALID(nixl_capi_opt_args_add_backend(opt, NULL));
  MUST(nixl_capi_destroy_opt_args(opt));
  INVALID(nixl_capi_opt_args_set_port(opt, 1));
}

static void test_lists(void) {
  nixl_capi_xfer_dlist_t list;
  nixl_capi_mem_type_t type;
  size_t count = 0;
  bool is_empty = false;
  MUST(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_VRAM, &list));
  MUST(nixl_capi_xfer_dlist_get_type(list, &type));
  MUST(nixl_capi_xfer_dlist_is_empty(list, &is_empty));
  CHECK(type == NIXL_CAPI_MEM_VRAM && is_empty);
  MUST(nixl_capi_xfer_dlist_add_desc(list, 4096, 10, 1));
  MUST(nixl_capi_xfer_dlist_resize(list, 3));
  MUST(nixl_capi_xfer_dlist_desc_count(list, &count));
  CHECK(count == 3);
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_xfer_dlist_rem_desc(list, 3));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_xfer_dlist_rem_desc(list, -1));
  MUST(nixl_capi_xfer_dlist_rem_desc(list, 2));
  MUST(nixl_capi_xfer_dlist_trim(list));
  MUST(nixl_capi_xfer_dlist_len(list, &count));
  CHECK(count == 2);
  MUST(nixl_capi_xfer_dlist_print(list));
  MUST(nixl_capi_xfer_dlist_clear(list));
  MUST(nixl_capi_destroy_xfer_dlist(list));
  INVALID(nixl_capi_xfer_dlist_add_desc(list, 1, 1, 0));
  INVALID(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_UNKNOWN, &list));

  nixl_capi_reg_dlist_t reg;
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_FILE, &reg));
  MUST(nixl_capi_reg_dlist_get_type(reg, &type));
  MUST(nixl_capi_reg_dlist_add_desc(reg, 0, 10, 3, "rw:/x", 5));
  MUST(nixl_capi_reg_dlist_resize(reg, 2));
  MUST(nixl_capi_reg_dlist_desc_count(reg, &count));
  CHECK(type == NIXL_CAPI_MEM_FILE && count == 2);
  MUST(nixl_capi_reg_dlist_print(reg));
  MUST(nixl_capi_reg_dlist_rem_desc(reg, 0));
  MUST(nixl_capi_reg_dlist_trim(reg));
  MUST(nixl_capi_reg_dlist_clear(reg));
  MUST(nixl_capi_reg_dlist_is_empty(reg, &is_empty));
  CHECK(is_empty);
  INVALID(nixl_capi_reg_dlist_is_empty((nixl_capi_reg_dlist_t)(void*)&reg, &is_empty));
  MUST(nixl_capi_destroy_reg_dlist(reg));
}

static void test_not_supported(Side* a) {
  nixl_capi_remote_dlist_t remote;
  nixl_capi_mem_view_t view = NULL;
  const nixl_capi_xfer_dlist_t local = block_list(a->bytes, 0);
  MUST(nixl_capi_create_remote_dlist(NIXL_CAPI_MEM_DRAM, &remote));
  MUST(nixl_capi_remote_dlist_add_desc(remote, 4096, 16, 0, NULL));
  MUST(nixl_capi_remote_dlist_add_desc(remote, 4096, 16, 0, "b"));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_prep_mem_view_remote(a->agent, remote, &view, NULL));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_prep_mem_view_local(a->agent, local, &view, NULL));
  INVALID(nixl_capi_release_mem_view(a->agent, view));
  MUST(nixl_capi_destroy_remote_dlist(remote));
  MUST(nixl_capi_destroy_xfer_dlist(local));

  nixl_capi_query_resp_list_t answers;
  nixl_capi_opt_args_t opt;
  nixl_capi_params_t params;
  size_t count = 1;
  bool has_value;
  MUST(nixl_capi_create_query_resp_list(&answers));
  MUST(nixl_capi_create_opt_args(&opt));
  INVALID(nixl_capi_query_mem(a->agent, a->registered, answers, opt));
  MUST(nixl_capi_opt_args_add_backend(opt, a->backend));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_query_mem(a->agent, a->registered, answers, opt));
  MUST(nixl_capi_query_resp_list_size(answers, &count));
  CHECK(count == 0);
  INVALID(nixl_capi_query_resp_list_has_value(answers, 0, &has_value));
  INVALID(nixl_capi_query_resp_list_get_params(answers, 0, &params));
  MUST(nixl_capi_destroy_query_resp_list(answers));
  MUST(nixl_capi_destroy_opt_args(opt));
}

static void test_agents(bool thread) {
  Side a = open_side("a", thread), b = open_side("b", true);
  test_plugins(&a);
  test_metadata(&a, &b);
  test_prepared(&a, &b);
  test_created(&a, &b);
  test_not_supported(&a);
  test_long_notifs(&a, &b);
  MUST(nixl_capi_gen_notif(a.agent, "b", "alone", 5, NULL));
  expect_notif(&b, "a", "alone", 5);
  MUST(nixl_capi_gen_notif(a.agent, "a", "myself", 6, NULL));
  expect_notif(&a, "a", "myself", 6);
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_gen_notif(a.agent, "nobody", "x", 1, NULL));
  INVALID(nixl_capi_gen_notif(a.agent, "b", NULL, 1, NULL));

  /* A prepared list of a peer that was forgotten is refused; loading it anew works at once. */
  const nixl_capi_xfer_dlist_t ours = block_list(a.bytes, 0), theirs = block_list(b.bytes, 0);
  nixl_capi_xfer_dlist_handle_t local, remote;
  nixl_capi_xfer_req_t request;
  const int index[] = {0};
  MUST(nixl_capi_prep_xfer_dlist(a.agent, "", ours, &local, NULL));
  MUST(nixl_capi_prep_xfer_dlist(a.agent, "b", theirs, &remote, NULL));
  MUST(nixl_capi_invalidate_remote_md(a.agent, "b"));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a.agent, "b", NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND,
        nixl_capi_make_xfer_req(a.agent, NIXL_CAPI_XFER_OP_READ, local, index, 1, remote, index, 1, &request, NULL));
  MUST(nixl_capi_release_xfer_dlist_handle(a.agent, local));
  MUST(nixl_capi_release_xfer_dlist_handle(a.agent, remote));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
  close_side(&a);
  close_side(&b);
}

int main(void) {
  nixl_capi_agent_t agent;
  nixl_capi_opt_args_t opt = NULL;
  CHECK(!nixl_capi_is_stub());
  INVALID(nixl_capi_create_agent(NULL, &agent));
  INVALID(nixl_capi_create_agent("x", NULL));
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_create_agent("", &agent));
  INVALID(nixl_capi_create_configured_agent("x", NULL, &agent));
  INVALID(nixl_capi_destroy_opt_args(opt));
  MUST(nixl_capi_create_agent("x", &agent));
  INVALID(nixl_capi_destroy_opt_args((nixl_capi_opt_args_t)(void*)agent)); /* Another kind of handle. */
  MUST(nixl_capi_destroy_agent(agent));
  test_options();
  test_lists();
  test_agents(true);
  test_agents(false);
  if (failed != 0) fprintf(stderr, "%d checks failed\n", failed);
  return failed == 0 ? 0 : 1;
}
