/* The C ABI, driven as a C11 program would: every function, in its correct use and in wrong ones, between two agents of
   this process; and directories.
   usage: c_api BACKEND [polled]
          c_api directories [ENDPOINT]      ENDPOINT: of an etcd */

#include "c_api.h"

#include <time.h>

int checks_failed;

static int64_t now_ns(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return now.tv_sec * SECOND + now.tv_nsec;
}

static hawser_agent open_agent(const char* name, const char* backend, uint32_t flags) {
  const hawser_param settings[] = {{"backends", backend}, {"deadline", "60s"}, {"peer_timeout", "60s"}};
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  options.flags = flags | HAWSER_AGENT_NO_ENVIRONMENT;
  options.name = name;
  options.settings = settings;
  options.setting_count = sizeof settings / sizeof settings[0];
  hawser_agent agent;
  MUST(hawser_agent_open(&options, &agent));
  return agent;
}

static hawser_region allocate(hawser_agent agent, const char* name) {
  hawser_region_options options = HAWSER_INIT(hawser_region_options);
  options.name = name;
  options.bytes = kRegionBytes;
  hawser_region region;
  MUST(hawser_agent_allocate(agent, &options, &region));
  return region;
}

hawser_region_info info_of(hawser_region region) {
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  MUST(hawser_region_info_get(region, &info));
  return info;
}

hawser_peer know(hawser_agent from, hawser_agent to) {
  hawser_buffer card;
  hawser_peer peer;
  MUST(hawser_agent_card(to, &card));
  MUST(hawser_agent_add_peer(from, card.data, card.size, &peer));
  hawser_buffer_free(&card);
  return peer;
}

Pair open_pair(const char* backend, uint32_t flags) {
  Pair pair = {.backend = backend, .flags = flags};
  pair.a = open_agent("a", backend, flags);
  pair.b = open_agent("b", backend, flags);
  pair.source = allocate(pair.a, "source");
  pair.target = allocate(pair.b, "target");
  pair.source_bytes = info_of(pair.source).base;
  pair.target_bytes = info_of(pair.target).base;
  pair.to_b = know(pair.a, pair.b);
  pair.to_a = know(pair.b, pair.a);
  return pair;
}

void close_pair(Pair* pair) {
  MUST(hawser_region_close(pair->source, PATIENCE));
  MUST(hawser_region_release(pair->source));
  MUST(hawser_agent_close(pair->a, PATIENCE));
  MUST(hawser_agent_close(pair->b, PATIENCE));
  /* Everything may be released in any order. */
  MUST(hawser_agent_release(pair->a));
  MUST(hawser_peer_release(pair->to_b));
  MUST(hawser_peer_release(pair->to_a));
  MUST(hawser_region_release(pair->target));
  MUST(hawser_agent_release(pair->b));
}

void pass(const Pair* pair) {
  if ((pair->flags & HAWSER_AGENT_POLLED) == 0) {
    MUST(hawser_agent_wait(pair->b, SECOND / 1000, NULL));
    return;
  }
  size_t work = 0;
  MUST(hawser_agent_poll(pair->a, &work));
  MUST(hawser_agent_poll(pair->b, NULL));
}

void fill(char* bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (char)(seed >> 24);
  }
}

int finish(const Pair* pair, hawser_transfer transfer) {
  const int64_t end = now_ns() + PATIENCE;
  hawser_transfer_info info = HAWSER_INIT(hawser_transfer_info);
  for (;;) {
    MUST(hawser_transfer_info_get(transfer, &info));
    if (info.done) break;
    if (now_ns() > end) {
      fprintf(stderr, "a transfer did not end\n");
      exit(1);
    }
    pass(pair);
  }
  const int outcome = hawser_transfer_wait(transfer, 0);
  CHECK(outcome == info.code);
  return outcome;
}

hawser_news next_notification(const Pair* pair, hawser_agent agent) {
  const int64_t end = now_ns() + PATIENCE;
  hawser_news news = HAWSER_INIT(hawser_news);
  for (;;) {
    MUST(hawser_agent_take_notification(agent, &news));
    if (news.present) return news;
    if (now_ns() > end) {
      fprintf(stderr, "no notification came\n");
      exit(1);
    }
    pass(pair);
  }
}

static int verdict(void) {
  if (checks_failed != 0) fprintf(stderr, "%d checks failed\n", checks_failed);
  return checks_failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const char* backend = argc > 1 ? argv[1] : "shm";
  if (strcmp(backend, "directories") == 0) {
    if (argc > 2) test_etcd(argv[2]);
    if (argc == 2) test_directories();
    return verdict();
  }
  const uint32_t flags = argc > 2 && strcmp(argv[2], "polled") == 0 ? HAWSER_AGENT_POLLED | HAWSER_AGENT_LOOP : 0;
  test_general();
  test_agents(backend);
  Pair pair = open_pair(backend, flags);
  test_memory(&pair);
  test_grants(&pair);
  test_peers(&pair);
  test_transfers(&pair);
  test_submit_options(&pair);
  test_news(&pair);
  test_queues(&pair);
  test_atomics(&pair);
  test_files(&pair);
  test_forks(&pair);
  test_wrong_use(&pair);
  close_pair(&pair);
  return verdict();
}
