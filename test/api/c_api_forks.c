/* A child's handles of its parent's objects: all are refused, none hangs, and each can be released. */

#define _POSIX_C_SOURCE 200809L /* fork, alarm, waitpid */

#include <sys/wait.h>
#include <unistd.h>

#include "c_api.h"

typedef struct {
  hawser_table table;
  hawser_plan plan;
  hawser_transfer transfer;
  hawser_queue queue;
  hawser_driver driver;
  hawser_atomic atomic;
} Held;

static Held hold(const Pair* pair) {
  Held held;
  MUST(hawser_region_blocks(pair->source, kBlock, &held.table));
  hawser_table there;
  MUST(hawser_peer_blocks(pair->to_b, "target", kBlock, &there));
  const uint32_t first = 0;
  MUST(hawser_plan_tables(pair->a, HAWSER_WRITE, pair->to_b, held.table, &first, there, &first, 1, &held.plan));
  MUST(hawser_table_release(there));
  MUST(hawser_plan_submit(held.plan, NULL, &held.transfer));
  MUST(finish(pair, held.transfer));
  MUST(hawser_queue_open(pair->a, 0, &held.queue));
  MUST(hawser_driver_open(NULL, &held.driver));
  const hawser_remote_range word = {.region = info_of(pair->target).index, .offset = 8, .size = 8};
  MUST(hawser_atomic_fetch_add(pair->a, pair->to_b, &word, 1, NULL, &held.atomic));
  return held;
}

static void let_go(const Held* held) {
  MUST(hawser_atomic_release(held->atomic));
  MUST(hawser_driver_release(held->driver));
  MUST(hawser_queue_release(held->queue));
  MUST(hawser_transfer_release(held->transfer));
  MUST(hawser_plan_release(held->plan));
  MUST(hawser_table_release(held->table));
}

static const char kForked[] = "forked child";

static void use_agent(const Pair* pair, const Held* held) {
  hawser_buffer buffer;
  int number = 0;
  size_t count = 0;
  hawser_news news = HAWSER_INIT(hawser_news);
  hawser_peer peer;
  REFUSED(hawser_agent_poll(pair->a, &count), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_wait(pair->a, SECOND, &number), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_event_fd(pair->a, &number), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_card(pair->a, &buffer), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_counters(pair->a, &buffer), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_backends(pair->a, &buffer), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_explain(pair->a, held->plan, &buffer), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_take_notification(pair->a, &news), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_peers(pair->a, NULL, 0, &count), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_self(pair->a, &peer), HAWSER_INVALID, kForked);
  REFUSED(hawser_agent_close(pair->a, SECOND), HAWSER_INVALID, kForked);
}

static void use_others(const Pair* pair, const Held* held) {
  hawser_peer_info peer = HAWSER_INIT(hawser_peer_info);
  hawser_region_info region = HAWSER_INIT(hawser_region_info);
  hawser_plan_info plan = HAWSER_INIT(hawser_plan_info);
  hawser_transfer_info transfer = HAWSER_INIT(hawser_transfer_info);
  hawser_completion entry;
  hawser_transfer sent;
  uint64_t entries = 0;
  size_t taken = 0;
  int fd = -1;
  REFUSED(hawser_peer_info_get(pair->to_b, &peer), HAWSER_INVALID, kForked);
  REFUSED(hawser_peer_region(pair->to_b, "target", &region), HAWSER_INVALID, kForked);
  REFUSED(hawser_region_info_get(pair->source, &region), HAWSER_INVALID, kForked);
  REFUSED(hawser_table_count(held->table, &entries), HAWSER_INVALID, kForked);
  REFUSED(hawser_plan_info_get(held->plan, &plan), HAWSER_INVALID, kForked);
  REFUSED(hawser_plan_submit(held->plan, NULL, &sent), HAWSER_INVALID, kForked);
  REFUSED(hawser_transfer_info_get(held->transfer, &transfer), HAWSER_INVALID, kForked);
  REFUSED(hawser_atomic_wait(held->atomic, SECOND), HAWSER_INVALID, kForked);
  REFUSED(hawser_queue_poll(held->queue, &entry, sizeof entry, 1, &taken), HAWSER_INVALID, kForked);
  REFUSED(hawser_queue_event_fd(held->queue, &fd), HAWSER_INVALID, kForked);
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  options.name = "child";
  options.driver = held->driver;
  hawser_agent agent;
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, kForked);
}

void test_forks(const Pair* pair) {
  const Held held = hold(pair);
  const pid_t child = fork();
  if (child == 0) {
    alarm((unsigned)(PATIENCE / SECOND)); /* It ends a call that hangs. */
    use_agent(pair, &held);
    use_others(pair, &held);
    let_go(&held);
    MUST(hawser_peer_release(pair->to_b));
    MUST(hawser_region_release(pair->source));
    MUST(hawser_agent_release(pair->a));
    _exit(checks_failed == 0 ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  let_go(&held);
}
