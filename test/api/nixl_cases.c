/* Longer cases of the NIXL face, one by its name: files, exchange, text, cycles, and with an etcd at ENDPOINT etcd,
   etcd_away (nobody is there) and etcd_breaks (told by lines on stdin what became of it). */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nixl_capi.h"
#include "nixl_checks.h"

enum { kBytes = 64 << 10, kPatienceSeconds = 60 };

typedef struct {
  nixl_capi_agent_t agent;
  nixl_capi_backend_t backend;
  nixl_capi_reg_dlist_t registered;
  char* bytes;
} Side;

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static nixl_capi_backend_t create_backend(nixl_capi_agent_t agent, const char* plugin) {
  nixl_capi_params_t params;
  nixl_capi_backend_t backend;
  MUST(nixl_capi_create_params(&params));
  MUST(nixl_capi_create_backend(agent, plugin, params, &backend));
  MUST(nixl_capi_destroy_params(params));
  return backend;
}

/* Listens on `port` unless it is 0. */
static Side open_side(const char* name, int port) {
  Side side;
  const nixl_capi_agent_config_t config = {
      .enable_prog_thread = true, .enable_listen_thread = port != 0, .listen_port = port};
  MUST(nixl_capi_create_configured_agent(name, &config, &side.agent));
  side.backend = create_backend(side.agent, "UCX");
  side.bytes = calloc(1, kBytes);
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &side.registered));
  MUST(nixl_capi_reg_dlist_add_desc(side.registered, (uintptr_t)side.bytes, kBytes, 0, NULL, 0));
  MUST(nixl_capi_register_mem(side.agent, side.registered, NULL));
  return side;
}

static void close_side(Side* side) {
  MUST(nixl_capi_destroy_reg_dlist(side->registered));
  MUST(nixl_capi_destroy_backend(side->backend));
  MUST(nixl_capi_destroy_agent(side->agent));
  free(side->bytes);
}

static nixl_capi_xfer_dlist_t one_block(nixl_capi_mem_type_t type, uintptr_t at, uint64_t dev) {
  nixl_capi_xfer_dlist_t list;
  MUST(nixl_capi_create_xfer_dlist(type, &list));
  MUST(nixl_capi_xfer_dlist_add_desc(list, at, kBytes, dev));
  return list;
}

static int knows(const Side* side, const char* name, int wanted) {
  const double end = now_s() + kPatienceSeconds;
  while ((nixl_capi_check_remote_md(side->agent, name, NULL) == NIXL_CAPI_SUCCESS) != wanted) {
    if (now_s() > end) return 0;
    usleep(1000);
  }
  return 1;
}

static int run_request(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t opt) {
  const double end = now_s() + kPatienceSeconds;
  int status = nixl_capi_post_xfer_req(agent, request, opt);
  while (status == NIXL_CAPI_IN_PROG && now_s() < end) status = nixl_capi_get_xfer_status(agent, request);
  return status;
}

static void move(nixl_capi_agent_t agent, nixl_capi_xfer_op_t op, nixl_capi_xfer_dlist_t ours,
                 nixl_capi_xfer_dlist_t theirs, const char* peer) {
  nixl_capi_xfer_req_t request;
  MUST(nixl_capi_create_xfer_req(agent, op, ours, theirs, peer, &request, NULL));
  MUST(run_request(agent, request, NULL));
  MUST(nixl_capi_release_xfer_req(agent, request));
  MUST(nixl_capi_destroy_xfer_req(request));
}

/* The value of a key, in `value`; whether it is there. */
static int param(nixl_capi_params_t params, const char* key, char* value, size_t room) {
  nixl_capi_param_iter_t iter;
  const char *its_key = NULL, *its_value = NULL;
  bool has_next = true;
  int found = 0;
  MUST(nixl_capi_params_create_iterator(params, &iter));
  while (has_next) {
    its_key = its_value = NULL;
    MUST(nixl_capi_params_iterator_next(iter, &its_key, &its_value, &has_next));
    if (its_key == NULL || strcmp(its_key, key) != 0) continue;
    snprintf(value, room, "%s", its_value);
    found = 1;
  }
  MUST(nixl_capi_params_destroy_iterator(iter));
  return found;
}

static void query(nixl_capi_agent_t agent, nixl_capi_backend_t posix, const char* path) {
  nixl_capi_reg_dlist_t asked;
  nixl_capi_query_resp_list_t answers;
  nixl_capi_params_t params;
  nixl_capi_opt_args_t opt;
  size_t count = 0;
  bool has_value = false;
  char text[64] = "";
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_FILE, &asked));
  MUST(nixl_capi_reg_dlist_add_desc(asked, 0, 0, 0, path, strlen(path)));
  MUST(nixl_capi_reg_dlist_add_desc(asked, 0, 0, 0, "/no/such/file", 13));
  MUST(nixl_capi_create_query_resp_list(&answers));
  MUST(nixl_capi_create_opt_args(&opt));
  MUST(nixl_capi_opt_args_add_backend(opt, posix));
  MUST(nixl_capi_query_mem(agent, asked, answers, opt));
  MUST(nixl_capi_query_resp_list_size(answers, &count));
  CHECK(count == 2);
  MUST(nixl_capi_query_resp_list_has_value(answers, 0, &has_value));
  CHECK(has_value);
  MUST(nixl_capi_query_resp_list_get_params(answers, 0, &params));
  CHECK(param(params, "size", text, sizeof(text)) && atoi(text) == kBytes + 100);
  CHECK(param(params, "mode", text, sizeof(text)) && param(params, "mtime", text, sizeof(text)));
  MUST(nixl_capi_destroy_params(params));
  MUST(nixl_capi_query_resp_list_has_value(answers, 1, &has_value));
  CHECK(!has_value);
  INVALID(nixl_capi_query_resp_list_get_params(answers, 1, &params));
  INVALID(nixl_capi_query_resp_list_has_value(answers, 2, &has_value));
  /* Another question replaces the answers. */
  MUST(nixl_capi_reg_dlist_clear(asked));
  MUST(nixl_capi_query_mem(agent, asked, answers, opt));
  MUST(nixl_capi_query_resp_list_size(answers, &count));
  CHECK(count == 0);
  MUST(nixl_capi_destroy_opt_args(opt));
  MUST(nixl_capi_destroy_query_resp_list(answers));
  MUST(nixl_capi_destroy_reg_dlist(asked));
}

/* POSIX: memory to a file by its path and back, and what is known of files. */
static void test_files(void) {
  char folder[] = "/tmp/hawser-nixl-XXXXXX", path[64], meta[80];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/data", folder);
  snprintf(meta, sizeof(meta), "rw,create:%s", path);
  Side side = open_side("files", 0);
  const nixl_capi_backend_t posix = create_backend(side.agent, "POSIX");
  MUST(nixl_capi_deregister_mem(side.agent, side.registered, NULL));
  MUST(nixl_capi_register_mem(side.agent, side.registered, NULL)); /* With both backends. */
  nixl_capi_reg_dlist_t file;
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_FILE, &file));
  MUST(nixl_capi_reg_dlist_add_desc(file, 0, 0, 7, meta, strlen(meta)));
  MUST(nixl_capi_register_mem(side.agent, file, NULL));
  const nixl_capi_xfer_dlist_t ours = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)side.bytes, 0);
  const nixl_capi_xfer_dlist_t theirs = one_block(NIXL_CAPI_MEM_FILE, 100, 7);
  for (int i = 0; i < kBytes; ++i) side.bytes[i] = (char)(i * 31);
  move(side.agent, NIXL_CAPI_XFER_OP_WRITE, ours, theirs, "files");
  memset(side.bytes, 0, kBytes);
  move(side.agent, NIXL_CAPI_XFER_OP_READ, ours, theirs, "files");
  for (int i = 0; i < kBytes; ++i) {
    if (side.bytes[i] != (char)(i * 31)) ++failed;
  }
  CHECK(failed == 0);
  query(side.agent, posix, path);
  MUST(nixl_capi_deregister_mem(side.agent, file, NULL));
  MUST(nixl_capi_destroy_reg_dlist(file));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
  MUST(nixl_capi_destroy_backend(posix));
  close_side(&side);
  CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

/* One that is free, most likely still when an agent takes it. */
static int free_port(void) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  CHECK(bind(fd, (struct sockaddr*)&address, size) == 0 && getsockname(fd, (struct sockaddr*)&address, &size) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

/* Metadata by address, both ways, whole and in part; and the port of an agent that is gone. */
static void test_exchange(void) {
  const int port = free_port();
  Side a = open_side("a", port), b = open_side("b", 0);
  nixl_capi_opt_args_t to_a;
  MUST(nixl_capi_create_opt_args(&to_a));
  MUST(nixl_capi_opt_args_set_ip_addr(to_a, "127.0.0.1"));
  MUST(nixl_capi_opt_args_set_port(to_a, (uint16_t)port));
  MUST(nixl_capi_send_local_md(b.agent, to_a));
  CHECK(knows(&a, "b", 1));
  MUST(nixl_capi_fetch_remote_md(b.agent, "a", to_a));
  CHECK(knows(&b, "a", 1));
  const nixl_capi_xfer_dlist_t ours = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)b.bytes, 0);
  const nixl_capi_xfer_dlist_t theirs = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)a.bytes, 0);
  memset(b.bytes, 'b', kBytes);
  move(b.agent, NIXL_CAPI_XFER_OP_WRITE, ours, theirs, "a");
  CHECK(a.bytes[0] == 'b' && a.bytes[kBytes - 1] == 'b');
  MUST(nixl_capi_invalidate_local_md(b.agent, to_a));
  CHECK(knows(&a, "b", 0));
  MUST(nixl_capi_invalidate_remote_md(a.agent, "b")); /* Once more, by itself: no error. */
  INVALID(nixl_capi_invalidate_remote_md(a.agent, "b"));
  MUST(nixl_capi_send_local_partial_md(b.agent, b.registered, to_a)); /* Without the connection: refused there. */
  MUST(nixl_capi_send_local_md(b.agent, to_a));
  MUST(nixl_capi_send_local_partial_md(b.agent, b.registered, to_a));
  CHECK(knows(&a, "b", 1));
  MUST(nixl_capi_check_remote_md(a.agent, "b", ours));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a.agent, "b", theirs));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_send_local_partial_md(b.agent, a.registered, to_a));
  MUST(nixl_capi_opt_args_set_ip_addr(to_a, "198.51.100.7")); /* Beyond this host. */
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_send_local_md(b.agent, to_a));
  MUST(nixl_capi_opt_args_set_ip_addr(to_a, "no address"));
  INVALID(nixl_capi_fetch_remote_md(b.agent, "a", to_a));
  /* A request that is left keeps nothing of the listener. */
  nixl_capi_xfer_req_t left;
  MUST(nixl_capi_create_xfer_req(a.agent, NIXL_CAPI_XFER_OP_READ, theirs, ours, "b", &left, NULL));
  close_side(&a);
  Side again = open_side("again", port);
  close_side(&again);
  MUST(nixl_capi_destroy_xfer_req(left));
  MUST(nixl_capi_destroy_opt_args(to_a));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
  close_side(&b);
}

/* Any bytes go where NIXL takes any: names, parameters, notifications; what must be a word is refused as such. */
static void test_text(void) {
  static const char odd[] = "b\xff\xc3\x28", text[] = "\xfe\x00\x80";
  Side a = open_side("a", 0), b = open_side(odd, 0);
  void* data = NULL;
  size_t len = 0, count = 0;
  char *name = NULL, value[64] = "";
  const char* from = NULL;
  const void* got = NULL;
  MUST(nixl_capi_get_local_md(b.agent, &data, &len));
  MUST(nixl_capi_load_remote_md(a.agent, data, len, &name));
  CHECK(strcmp(name, odd) == 0);
  free(name);
  nixl_capi_mem_free(data);
  MUST(nixl_capi_get_local_md(a.agent, &data, &len));
  MUST(nixl_capi_load_remote_md(b.agent, data, len, &name));
  free(name);
  nixl_capi_mem_free(data);
  MUST(nixl_capi_gen_notif(b.agent, "a", text, 3, NULL));
  nixl_capi_notif_map_t map;
  MUST(nixl_capi_create_notif_map(&map));
  for (const double end = now_s() + kPatienceSeconds; count == 0 && now_s() < end;) {
    MUST(nixl_capi_get_notifs(a.agent, map, NULL));
    MUST(nixl_capi_notif_map_size(map, &count));
  }
  MUST(nixl_capi_notif_map_get_agent_at(map, 0, &from));
  CHECK(strcmp(from, odd) == 0);
  MUST(nixl_capi_notif_map_get_notif(map, odd, 0, &got, &len));
  CHECK(len == 3 && memcmp(got, text, 3) == 0);
  MUST(nixl_capi_destroy_notif_map(map));
  nixl_capi_params_t params;
  MUST(nixl_capi_create_params(&params));
  MUST(nixl_capi_params_add(params, "\xc0\xc0", "\xf5"));
  CHECK(param(params, "\xc0\xc0", value, sizeof(value)) && strcmp(value, "\xf5") == 0);
  nixl_capi_backend_t backend;
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_create_backend(a.agent, "UC\xd8", params, &backend));
  MUST(nixl_capi_destroy_params(params));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a.agent, "\xff", NULL));
  INVALID(nixl_capi_invalidate_remote_md(a.agent, "\xff"));
  nixl_capi_agent_t none;
  GIVES(NIXL_CAPI_ERROR_BACKEND, nixl_capi_create_agent("line\nbreak", &none));
  close_side(&a);
  close_side(&b);
}

static long resident_kib(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "re");
  CHECK(file != NULL && fscanf(file, "%*d %ld", &pages) == 1);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int count_in(const char* folder) {
  DIR* const open = opendir(folder);
  int count = 0;
  while (open != NULL && readdir(open) != NULL) ++count;
  if (open != NULL) closedir(open);
  return count;
}

/* Where in the table of handles the next object comes to lie (the lowest 24 bits): places are used again. */
static unsigned next_place(void) {
  nixl_capi_opt_args_t opt;
  MUST(nixl_capi_create_opt_args(&opt));
  const unsigned place = (uintptr_t)opt & 0xffffff;
  MUST(nixl_capi_destroy_opt_args(opt));
  return place;
}

static void cycle(void) {
  Side a = open_side("a", 0), b = open_side("b", 0);
  void* data;
  size_t len;
  char* name;
  MUST(nixl_capi_get_local_md(b.agent, &data, &len));
  MUST(nixl_capi_load_remote_md(a.agent, data, len, &name));
  free(name);
  nixl_capi_mem_free(data);
  const nixl_capi_xfer_dlist_t ours = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)a.bytes, 0);
  const nixl_capi_xfer_dlist_t theirs = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)b.bytes, 0);
  nixl_capi_xfer_req_t kept;
  move(a.agent, NIXL_CAPI_XFER_OP_WRITE, ours, theirs, "b");
  MUST(nixl_capi_create_xfer_req(a.agent, NIXL_CAPI_XFER_OP_READ, ours, theirs, "b", &kept, NULL));
  close_side(&a);
  close_side(&b);
  MUST(nixl_capi_destroy_xfer_req(kept)); /* After its agent. */
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
}

/* Agents that come and go leave nothing: no descriptor, no thread, no mapping, no memory; and handles go with them. */
static void test_cycles(int rounds) {
  for (int i = 0; i < rounds / 4; ++i) cycle();
  const long memory = resident_kib();
  const int descriptors = count_in("/proc/self/fd"), threads = count_in("/proc/self/task");
  for (int i = 0; i < rounds; ++i) cycle();
  const long grown = resident_kib() - memory;
  GIVES(descriptors, count_in("/proc/self/fd"));
  GIVES(threads, count_in("/proc/self/task"));
  CHECK(next_place() < 32);
  printf("%d rounds: %ld KiB more\n", rounds, grown);
#ifndef HAWSER_SANITIZED /* Which keeps what was freed for a while. */
  CHECK(grown < 2048);
#endif
}

static void wait_for(const char* word) {
  char line[64] = "";
  printf("%s?\n", word);
  fflush(stdout);
  if (fgets(line, sizeof(line), stdin) == NULL || strncmp(line, word, strlen(word)) != 0) exit(3);
}

/* Metadata through an etcd. */
static void test_etcd(void) {
  Side a = open_side("a", 0), b = open_side("b", 0);
  MUST(nixl_capi_fetch_remote_md(a.agent, "b", NULL)); /* It is waited for. */
  MUST(nixl_capi_send_local_md(b.agent, NULL));
  CHECK(knows(&a, "b", 1));
  INVALID(nixl_capi_send_local_partial_md(b.agent, b.registered, NULL)); /* It needs a label, which C cannot give. */
  MUST(nixl_capi_invalidate_local_md(b.agent, NULL));
  CHECK(knows(&a, "b", 0));
  MUST(nixl_capi_send_local_md(b.agent, NULL));
  CHECK(knows(&a, "b", 1));
  close_side(&b); /* What it put goes with it. */
  CHECK(knows(&a, "b", 0));
  close_side(&a);
}

/* Nobody is there: agents work, calls say that they were taken, nothing hangs. */
static void test_etcd_away(void) {
  Side a = open_side("a", 0), b = open_side("b", 0);
  MUST(nixl_capi_send_local_md(b.agent, NULL));
  MUST(nixl_capi_fetch_remote_md(a.agent, "b", NULL));
  MUST(nixl_capi_invalidate_local_md(b.agent, NULL));
  GIVES(NIXL_CAPI_ERROR_NOT_FOUND, nixl_capi_check_remote_md(a.agent, "b", NULL));
  const double start = now_s();
  close_side(&a);
  close_side(&b);
  CHECK(now_s() - start < 20);
}

/* It is killed in the middle and comes back. What is known stays, and transfers go on; what is sent meanwhile comes. */
static void test_etcd_breaks(void) {
  Side a = open_side("a", 0), b = open_side("b", 0), late = open_side("late", 0);
  MUST(nixl_capi_send_local_md(b.agent, NULL));
  MUST(nixl_capi_fetch_remote_md(a.agent, "b", NULL));
  CHECK(knows(&a, "b", 1));
  wait_for("killed");
  const nixl_capi_xfer_dlist_t ours = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)a.bytes, 0);
  const nixl_capi_xfer_dlist_t theirs = one_block(NIXL_CAPI_MEM_DRAM, (uintptr_t)b.bytes, 0);
  memset(a.bytes, 'a', kBytes);
  move(a.agent, NIXL_CAPI_XFER_OP_WRITE, ours, theirs, "b");
  CHECK(b.bytes[kBytes - 1] == 'a');
  const double start = now_s();
  MUST(nixl_capi_send_local_md(late.agent, NULL));
  MUST(nixl_capi_fetch_remote_md(a.agent, "late", NULL));
  CHECK(now_s() - start < 2);
  wait_for("back");
  /* What was asked for while it was away may have run out of time; it is asked for again. */
  const double end = now_s() + kPatienceSeconds;
  while (nixl_capi_check_remote_md(a.agent, "late", NULL) != NIXL_CAPI_SUCCESS && now_s() < end) {
    MUST(nixl_capi_send_local_md(late.agent, NULL));
    MUST(nixl_capi_fetch_remote_md(a.agent, "late", NULL));
    usleep(200000);
  }
  CHECK(knows(&a, "late", 1));
  CHECK(knows(&a, "b", 1));
  wait_for("gone"); /* And does not come back. */
  const double closing = now_s();
  close_side(&late);
  close_side(&a);
  close_side(&b);
  CHECK(now_s() - closing < 30);
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (argc > 2) setenv("NIXL_ETCD_ENDPOINTS", argv[2], 1);
  if (strcmp(what, "files") == 0) {
    test_files();
  } else if (strcmp(what, "exchange") == 0) {
    test_exchange();
  } else if (strcmp(what, "text") == 0) {
    test_text();
  } else if (strcmp(what, "cycles") == 0) {
    test_cycles(200);
  } else if (strcmp(what, "etcd") == 0) {
    test_etcd();
  } else if (strcmp(what, "etcd_away") == 0) {
    test_etcd_away();
  } else if (strcmp(what, "etcd_breaks") == 0) {
    test_etcd_breaks();
  } else {
    fprintf(stderr, "no such case: %s\n", what);
    return 2;
  }
  if (failed != 0) fprintf(stderr, "%d checks failed\n", failed);
  return failed == 0 ? 0 : 1;
}
