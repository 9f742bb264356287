/* An agent of the NIXL face in a process of its own, told what to do by lines on stdin. It answers each with one line:
   "ok ..." or "error ...". Codes are those of the C ABI. nixl_processes_test.py drives it. */

#define _GNU_SOURCE

#include "nixl_peer.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBoredomSeconds = 120, kWordsMax = 16, kFloodMax = 4, kAnswerMax = 1 << 20 };

static Its its;
static char answer[kAnswerMax];
static nixl_capi_xfer_req_t flood[kFloodMax];
static int flooding;

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

void say(const char* format, ...) {
  const size_t used = strlen(answer);
  va_list values;
  va_start(values, format);
  vsnprintf(answer + used, sizeof(answer) - used, format, values);
  va_end(values);
}

int must(int code, const char* call) {
  if (code >= 0) return code;
  printf("error %s gave %d\n", call, code);
  fflush(stdout);
  _exit(4);
}

nixl_capi_reg_dlist_t reg_list(uintptr_t at, size_t size) {
  nixl_capi_reg_dlist_t list;
  MUST(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &list));
  MUST(nixl_capi_reg_dlist_add_desc(list, at, size, 0, NULL, 0));
  return list;
}

nixl_capi_xfer_dlist_t blocks_of(uintptr_t at, size_t size, size_t count) {
  nixl_capi_xfer_dlist_t list;
  MUST(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &list));
  for (size_t i = 0; i < count; ++i) {
    MUST(nixl_capi_xfer_dlist_add_desc(list, at + i * (size / count), size / count, 0));
  }
  return list;
}

/* open NAME thread|polled SIZE */
static void open_agent(char** words) {
  const nixl_capi_agent_config_t config = {.enable_prog_thread = strcmp(words[2], "thread") == 0};
  nixl_capi_params_t params;
  MUST(nixl_capi_create_configured_agent(words[1], &config, &its.agent));
  MUST(nixl_capi_create_params(&params));
  MUST(nixl_capi_create_backend(its.agent, "UCX", params, &its.backend));
  MUST(nixl_capi_destroy_params(params));
  its.size = strtoull(words[3], NULL, 0);
  its.bytes = mmap(NULL, its.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (its.bytes == MAP_FAILED) must(-1, "mmap");
  its.registered = reg_list((uintptr_t)its.bytes, its.size);
  MUST(nixl_capi_register_mem(its.agent, its.registered, NULL));
}

static void give_md(void) {
  void* data = NULL;
  size_t len = 0;
  MUST(nixl_capi_get_local_md(its.agent, &data, &len));
  for (size_t i = 0; i < len; ++i) say("%02x", ((const unsigned char*)data)[i]);
  free(data);
}

/* load HEX */
static void load_md(const char* hex) {
  const size_t len = strlen(hex) / 2;
  unsigned char* const data = malloc(len + 1);
  for (size_t i = 0; i < len; ++i) {
    const char two[] = {hex[2 * i], hex[2 * i + 1], 0};
    data[i] = (unsigned char)strtoul(two, NULL, 16);
  }
  char* name = NULL;
  const int code = nixl_capi_load_remote_md(its.agent, data, len, &name);
  say("%d %s", code, code == 0 ? name : "");
  free(name);
  free(data);
}

/* prep PEER ADDR SIZE COUNT */
static void prepare(char** words) {
  const size_t size = strtoull(words[3], NULL, 0), count = strtoull(words[4], NULL, 0);
  const nixl_capi_xfer_dlist_t ours = blocks_of((uintptr_t)its.bytes, size, count);
  const nixl_capi_xfer_dlist_t theirs = blocks_of(strtoull(words[2], NULL, 0), size, count);
  its.count = count;
  MUST(nixl_capi_prep_xfer_dlist(its.agent, "", ours, &its.local, NULL));
  say("%d", nixl_capi_prep_xfer_dlist(its.agent, words[1], theirs, &its.remote, NULL));
  MUST(nixl_capi_destroy_xfer_dlist(ours));
  MUST(nixl_capi_destroy_xfer_dlist(theirs));
}

static nixl_capi_xfer_op_t operation(const char* word) {
  return strcmp(word, "read") == 0 ? NIXL_CAPI_XFER_OP_READ : NIXL_CAPI_XFER_OP_WRITE;
}

/* Of all blocks of the prepared lists, in order. */
static int make_request(const char* op, const char* notif, nixl_capi_xfer_req_t* out) {
  int* const index = malloc(its.count * sizeof(int));
  for (size_t i = 0; i < its.count; ++i) index[i] = (int)i;
  nixl_capi_opt_args_t opt = NULL;
  if (notif != NULL) {
    MUST(nixl_capi_create_opt_args(&opt));
    MUST(nixl_capi_opt_args_set_notif_msg(opt, notif, strlen(notif)));
    MUST(nixl_capi_opt_args_set_has_notif(opt, true));
  }
  const int code = nixl_capi_make_xfer_req(its.agent, operation(op), its.local, index, its.count, its.remote, index,
                                           its.count, out, opt);
  if (opt != NULL) MUST(nixl_capi_destroy_opt_args(opt));
  free(index);
  return code;
}

/* wait MILLISECONDS: polls until the request is over; the code and how long it took. */
static void wait_request(const char* patience) {
  const double start = now_ms(), end = start + atof(patience);
  int code = nixl_capi_get_xfer_status(its.agent, its.request);
  while (code == NIXL_CAPI_IN_PROG && now_ms() < end) code = nixl_capi_get_xfer_status(its.agent, its.request);
  say("%d %.0f", code, now_ms() - start);
}

static void release_request(void) {
  const double start = now_ms();
  const int code = nixl_capi_release_xfer_req(its.agent, its.request);
  say("%d %.0f", code, now_ms() - start);
  if (code == 0) MUST(nixl_capi_destroy_xfer_req(its.request));
}

/* count BYTE: how many bytes of the memory are that. */
static void count_bytes(const char* word) {
  const char byte = (char)strtoul(word, NULL, 0);
  size_t found = 0;
  for (size_t i = 0; i < its.size; ++i) found += its.bytes[i] == byte;
  say("%zu", found);
}

/* Posts its requests again and again, from wherever it is called. */
static int flood_some(void) {
  for (int i = 0; i < flooding; ++i) {
    int code = nixl_capi_get_xfer_status(its.agent, flood[i]);
    if (code == NIXL_CAPI_SUCCESS) code = nixl_capi_post_xfer_req(its.agent, flood[i], NULL);
    if (code < 0) return code;
  }
  return 0;
}

static void* flood_thread(void* unused) {
  (void)unused;
  for (;;) (void)flood_some();
  return NULL;
}

/* flood read|write [thread]: until `calm`, between the lines or on a thread of its own. */
static void start_flood(char** words) {
  for (int i = 0; i < kFloodMax; ++i) {
    MUST(make_request(words[1], NULL, &flood[i]));
    MUST(nixl_capi_post_xfer_req(its.agent, flood[i], NULL));
  }
  flooding = kFloodMax;
  pthread_t thread;
  if (words[2] != NULL) must(-pthread_create(&thread, NULL, flood_thread, NULL), "pthread_create");
}

/* Ends what flooded: "0" or the worst code of a release. */
static void calm(void) {
  int worst = 0;
  for (int i = 0; i < flooding; ++i) {
    const int code = nixl_capi_release_xfer_req(its.agent, flood[i]);
    if (code < worst) worst = code;
    if (code == 0) MUST(nixl_capi_destroy_xfer_req(flood[i]));
  }
  flooding = 0;
  say("%d", worst);
}

/* Of the parent's, whose other threads may have been in the middle of anything: no answer waits for them. A look at one
   that had ended says so still. */
static int child_request(nixl_capi_xfer_req_t request) {
  struct nixl_capi_xfer_telemetry_s times;
  nixl_capi_cost_t method;
  int64_t duration = 0, margin = 0;
  const int status = nixl_capi_get_xfer_status(its.agent, request);
  if (status > 0) return 30;
  if (nixl_capi_post_xfer_req(its.agent, request, NULL) >= 0) return 31;
  if (nixl_capi_get_xfer_telemetry(its.agent, request, &times) >= 0) return 32;
  if (nixl_capi_estimate_xfer_cost(its.agent, request, NULL, &duration, &margin, &method) >= 0) return 33;
  if (nixl_capi_release_xfer_req(its.agent, request) != 0) return 34;
  if (nixl_capi_get_xfer_status(its.agent, request) >= 0) return 35;
  return nixl_capi_destroy_xfer_req(request) == 0 ? 0 : 36;
}

static int child_requests(void) {
  for (int i = 0; i < flooding; ++i) {
    const int wrong = child_request(flood[i]);
    if (wrong != 0) return wrong;
  }
  flooding = 0;
  const int wrong = its.request == NULL ? 0 : child_request(its.request);
  its.request = NULL;
  return wrong;
}

/* The same of its backend and its metadata. */
static int child_agent(void) {
  nixl_capi_mem_list_t mems;
  nixl_capi_params_t params;
  nixl_capi_opt_args_t opt;
  nixl_capi_query_resp_list_t answers;
  if (nixl_capi_get_backend_params(its.agent, its.backend, &mems, &params) >= 0) return 40;
  if (nixl_capi_create_opt_args(&opt) != 0 || nixl_capi_opt_args_add_backend(opt, its.backend) != 0) return 41;
  if (nixl_capi_create_query_resp_list(&answers) != 0) return 41;
  if (nixl_capi_query_mem(its.agent, its.registered, answers, opt) >= 0) return 42;
  if (nixl_capi_agent_make_connection(its.agent, "there", opt) >= 0) return 43;
  if (nixl_capi_gen_notif(its.agent, "there", "child", 5, opt) >= 0) return 44;
  if (nixl_capi_deregister_mem(its.agent, its.registered, opt) >= 0) return 45;
  if (nixl_capi_invalidate_remote_md(its.agent, "there") >= 0) return 46;
  if (nixl_capi_opt_args_set_ip_addr(opt, "127.0.0.1") != 0) return 47;
  if (nixl_capi_send_local_md(its.agent, opt) >= 0 || nixl_capi_fetch_remote_md(its.agent, "there", opt) >= 0)
    return 48;
  return nixl_capi_destroy_opt_args(opt) == 0 ? 0 : 49;
}

/* In a child: every handle answers, a new agent works, and the end runs destructors. Exit status 0: all was well. */
static int child_life(const char* how) {
  const double start = now_ms();
  nixl_capi_notif_map_t map;
  void* data = NULL;
  size_t len = 0;
  alarm(60); /* It hangs on what is locked for ever. */
  if (nixl_capi_create_notif_map(&map) != 0) return 10;
  if (nixl_capi_get_notifs(its.agent, map, NULL) >= 0) return 11;
  if (nixl_capi_get_local_md(its.agent, &data, &len) >= 0) return 12;
  if (nixl_capi_check_remote_md(its.agent, "there", NULL) != NIXL_CAPI_ERROR_NOT_FOUND) return 13;
  if (nixl_capi_gen_notif(its.agent, "there", "child", 5, NULL) >= 0) return 14;
  if (nixl_capi_deregister_mem(its.agent, its.registered, NULL) >= 0) return 19;
  int wrong = child_agent();
  if (wrong == 0) wrong = child_requests();
  if (wrong != 0) return wrong;
  if (strcmp(how, "destroy") == 0 && nixl_capi_destroy_agent(its.agent) != 0) return 16;
  char* words[] = {"open", "child", "thread", "65536"};
  open_agent(words);
  if (nixl_capi_get_local_md(its.agent, &data, &len) != 0) return 17;
  free(data);
  return now_ms() - start > 20e3 ? 18 : 0;
}

/* LeakSanitizer asks this when a process ends. A child has copies of what the parent's threads were about to store when
   it forked, and nobody who would free them. */
static int is_child;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child; }

/* fork destroy|leave: the child's exit status. */
static void fork_child(const char* how) {
  /* A thread that looks again and again is answered without its agent: in the child only until it releases. */
  for (int i = 0; its.request != NULL && i < 8; ++i) (void)nixl_capi_get_xfer_status(its.agent, its.request);
  const pid_t pid = fork();
  if (pid == 0) {
    is_child = 1;
    exit(child_life(how));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  say("%d", WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status));
}

static void act_on_request(char** words) {
  const char* const what = words[0];
  if (strcmp(what, "make") == 0) {
    say("%d", make_request(words[1], words[2], &its.request));
  } else if (strcmp(what, "post") == 0) {
    say("%d", nixl_capi_post_xfer_req(its.agent, its.request, NULL));
  } else if (strcmp(what, "status") == 0) {
    say("%d", nixl_capi_get_xfer_status(its.agent, its.request));
  } else if (strcmp(what, "wait") == 0) {
    wait_request(words[1]);
  } else if (strcmp(what, "release") == 0) {
    release_request();
  } else if (strcmp(what, "drop") == 0) {
    say("%d", nixl_capi_destroy_xfer_req(its.request));
  } else if (strcmp(what, "flood") == 0) {
    start_flood(words);
  } else if (strcmp(what, "calm") == 0) {
    calm();
  } else if (!act_on_notifications(&its, words)) {
    printf("error no such line: %s\n", what);
    exit(5);
  }
}

static void act(char** words) {
  const char* const what = words[0];
  if (strcmp(what, "open") == 0) {
    open_agent(words);
  } else if (strcmp(what, "md") == 0) {
    give_md();
  } else if (strcmp(what, "load") == 0) {
    load_md(words[1]);
  } else if (strcmp(what, "check") == 0) {
    say("%d", nixl_capi_check_remote_md(its.agent, words[1], NULL));
  } else if (strcmp(what, "connect") == 0) {
    say("%d", nixl_capi_agent_make_connection(its.agent, words[1], NULL));
  } else if (strcmp(what, "where") == 0) {
    say("%llu", (unsigned long long)(uintptr_t)its.bytes);
  } else if (strcmp(what, "prep") == 0) {
    prepare(words);
  } else if (strcmp(what, "fill") == 0) {
    memset(its.bytes, (int)strtoul(words[1], NULL, 0), its.size);
  } else if (strcmp(what, "count") == 0) {
    count_bytes(words[1]);
  } else if (strcmp(what, "register") == 0) {
    say("%d", nixl_capi_register_mem(its.agent, its.registered, NULL));
  } else if (strcmp(what, "deregister") == 0) {
    say("%d", nixl_capi_deregister_mem(its.agent, its.registered, NULL));
  } else if (strcmp(what, "fork") == 0) {
    fork_child(words[1]);
  } else if (strcmp(what, "destroy") == 0) {
    say("%d", nixl_capi_destroy_agent(its.agent));
  } else {
    act_on_request(words);
  }
}

/* False at the end of the input. */
static int read_line(char** line, size_t* room) {
  double heard = now_ms();
  for (;;) {
    struct pollfd one = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&one, 1, flooding != 0 ? 0 : 1000) > 0) return getline(line, room, stdin) > 0;
    if (now_ms() - heard > kBoredomSeconds * 1e3) exit(3);
    (void)flood_some();
  }
}

int main(void) {
  setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees what was not read. */
  static char* line;               /* Not lost where the process ends with everything alive. */
  static size_t room;
  while (read_line(&line, &room)) {
    char *words[kWordsMax] = {NULL}, *rest = NULL;
    size_t count = 0;
    for (char* word = strtok_r(line, " \n", &rest); word != NULL && count + 1 < kWordsMax;
         word = strtok_r(NULL, " \n", &rest)) {
      words[count++] = word;
    }
    if (count == 0) continue;
    if (strcmp(words[0], "exit") == 0) exit(atoi(words[1]));
    if (strcmp(words[0], "return") == 0) return 0;
    answer[0] = 0;
    act(words);
    printf("ok %s\n", answer);
    fflush(stdout);
  }
  return 0;
}
