#pragma once

/* What the C tests of the C ABI share: checks that say where and why, and a pair of agents. */

#include <hawser/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
/* Longer than anything here takes on a busy machine under a sanitizer. */
#define PATIENCE (60 * SECOND)

extern int checks_failed;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      ++checks_failed;                                                         \
    }                                                                          \
  } while (0)

/* The call must be good; what else it says ends the program, because nothing after it would make sense. */
#define MUST(call)                                                                             \
  do {                                                                                         \
    const int must_code = (call);                                                              \
    if (must_code != HAWSER_OK) {                                                              \
      fprintf(stderr, "%s:%d: %s gave %d: %s\n", __FILE__, __LINE__, #call, must_code, why()); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* The call must fail with this code, and its full text must hold `part`. */
#define REFUSED(call, code, part)                                                                                    \
  do {                                                                                                               \
    const int refused_code = (call);                                                                                 \
    if (refused_code != (code) || strstr(why(), part) == NULL) {                                                     \
      fprintf(stderr, "%s:%d: %s gave %d: %s\n  not %d with '%s'\n", __FILE__, __LINE__, #call, refused_code, why(), \
              (int)(code), part);                                                                                    \
      ++checks_failed;                                                                                               \
    }                                                                                                                \
  } while (0)

static inline const char* why(void) {
  hawser_error error = HAWSER_INIT(hawser_error);
  hawser_last_error(&error);
  return error.text;
}

/* Two agents of this process that know each other, `a` with what it needs to write to `b`. */
typedef struct {
  const char* backend;
  uint32_t flags;
  hawser_agent a, b;
  hawser_region source, target;
  char *source_bytes, *target_bytes;
  hawser_peer to_b, to_a; /* b as a knows it, a as b knows it. */
} Pair;

enum { kRegionBytes = 1 << 20, kBlock = 4096 };

Pair open_pair(const char* backend, uint32_t flags);
void close_pair(Pair* pair);
/* Moves both agents on, where they have no thread. */
void pass(const Pair* pair);
hawser_peer know(hawser_agent from, hawser_agent to);
hawser_region_info info_of(hawser_region region);
void fill(char* bytes, size_t size, unsigned seed);
/* Waits for the transfer's end and gives its outcome. */
int finish(const Pair* pair, hawser_transfer transfer);
hawser_news next_notification(const Pair* pair, hawser_agent agent);

/* Makes a temporary folder, and removes it with its files. */
void make_scratch(char* folder, size_t size);
void remove_scratch(const char* folder);

void test_general(void);
void test_agents(const char* backend);
void test_wrong_use(const Pair* pair);
void test_memory(const Pair* pair);
void test_grants(const Pair* pair);
void test_peers(const Pair* pair);
void test_transfers(const Pair* pair);
void test_submit_options(const Pair* pair);
void test_news(const Pair* pair);
void test_queues(const Pair* pair);
void test_atomics(const Pair* pair);
void test_files(const Pair* pair);
void test_forks(const Pair* pair);
void test_directories(void);
void test_etcd(const char* endpoint);
