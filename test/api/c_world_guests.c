/* The C face of worlds on agents of the caller's, of batches, handlers by number, pools, and what a world tells of
   itself. */

#include <hawser/c.h>
#include <hawser/c_world.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "c_api.h"

int checks_failed = 0;

static void test_batch(hawser_world a, hawser_world b) {
  char one[8] = {0}, two[8] = {0};
  hawser_message sends[3] = {{.rank = 1, .tag = 1, .data = "one", .size = 3},
                             {.rank = 9, .tag = 1, .data = "bad", .size = 3},
                             {.rank = 1, .tag = 2, .data = "two", .size = 3}};
  hawser_message receives[2] = {
      {.flags = HAWSER_MESSAGE_RECV, .rank = 0, .tag = 1, .data = one, .size = sizeof one},
      {.flags = HAWSER_MESSAGE_RECV | HAWSER_MESSAGE_ANY_TAG, .rank = HAWSER_ANY_SOURCE, .data = two, .size = 8}};
  REFUSED(hawser_world_batch(a, sends, 3, NULL), HAWSER_INVALID, "no rank 9");
  CHECK(sends[0].code == HAWSER_OK && sends[1].code == HAWSER_INVALID && sends[2].code == HAWSER_OK);
  MUST(hawser_world_batch(b, receives, 2, NULL));
  CHECK(receives[0].code == HAWSER_OK && receives[0].bytes == 3 && receives[0].source == 0);
  CHECK(receives[1].source_tag == 2 && memcmp(one, "one", 3) == 0 && memcmp(two, "two", 3) == 0);
  /* A request for each, in their order. */
  hawser_request requests[2];
  hawser_message mixed[2] = {{.flags = HAWSER_MESSAGE_RECV | HAWSER_MESSAGE_ANY_SIZE, .rank = 0, .tag = 3},
                             {.rank = 0, .tag = 4, .data = "back", .size = 4}};
  REFUSED(hawser_world_batch(b, mixed, 2, NULL), HAWSER_INVALID, "ibatch");
  MUST(hawser_world_ibatch(b, mixed, 2, NULL, requests));
  CHECK(hawser_requests_wait(requests, 2, 1000000) == HAWSER_TIMED_OUT);
  MUST(hawser_world_send(a, "room", 4, 1, 3, NULL));
  const uint64_t four = 4;
  MUST(hawser_world_recv(a, one, sizeof one, 1, &four, NULL, NULL));
  MUST(hawser_requests_wait(requests, 2, PATIENCE));
  const void* data = NULL;
  size_t size = 0;
  MUST(hawser_request_bytes(requests[0], &data, &size));
  CHECK(size == 4 && memcmp(data, "room", 4) == 0);
  MUST(hawser_request_release(requests[0]));
  MUST(hawser_request_release(requests[1]));
  hawser_message wrong = {.flags = 64};
  REFUSED(hawser_world_batch(a, &wrong, 1, NULL), HAWSER_INVALID, "unknown flags");
  wrong.flags = HAWSER_MESSAGE_ANY_TAG;
  REFUSED(hawser_world_batch(a, &wrong, 1, NULL), HAWSER_INVALID, "flags of receives");
  wrong = (hawser_message){.size = 5};
  REFUSED(hawser_world_batch(a, &wrong, 1, NULL), HAWSER_INVALID, "no data");
  REFUSED(hawser_world_batch(a, NULL, 1, NULL), HAWSER_INVALID, "messages is null");
  MUST(hawser_world_batch(a, NULL, 0, NULL));
}

static int echo(void* context, uint32_t source, const void* arguments, size_t size, hawser_answer answer) {
  (void)context, (void)source;
  return hawser_answer_set(answer, arguments, size);
}

static void test_numbers(hawser_world a, hawser_world b) {
  MUST(hawser_world_register_number(b, 7, echo, NULL, 0));
  hawser_buffer answer = HAWSER_INIT(hawser_buffer);
  MUST(hawser_world_call_number(a, 1, 7, "ask", 3, NULL, &answer));
  CHECK(answer.size == 3 && memcmp(answer.data, "ask", 3) == 0);
  hawser_buffer_free(&answer);
  hawser_request request;
  MUST(hawser_world_icall_number(a, 1, 7, "ask", 3, NULL, &request));
  MUST(hawser_request_wait(request, PATIENCE));
  MUST(hawser_request_release(request));
  REFUSED(hawser_world_call(a, 1, "7", NULL, 0, NULL, &answer), HAWSER_NOT_FOUND, "'7'");
  REFUSED(hawser_world_register_number(b, 7, echo, NULL, 0), HAWSER_INVALID, "handler 7");
  REFUSED(hawser_world_register_number(b, 8, NULL, NULL, 0), HAWSER_INVALID, "handler is null");
}

static void test_telling(hawser_world a) {
  hawser_buffer text = HAWSER_INIT(hawser_buffer);
  MUST(hawser_world_config(a, &text));
  CHECK(strstr(text.data, "world.size\t2\tcaller\n") != NULL);
  hawser_buffer_free(&text);
  uint64_t all = 0, one = 0;
  MUST(hawser_world_memory(a, NULL, &all));
  MUST(hawser_world_memory(a, "boards", &one));
  CHECK(one <= all);
  REFUSED(hawser_world_memory(a, "wood", &one), HAWSER_NOT_FOUND, "wood");
  REFUSED(hawser_world_memory(a, NULL, NULL), HAWSER_INVALID, "bytes is null");
}

static void test_pool(void) {
  hawser_pool pool = {0};
  const hawser_pool_tier tiers[1] = {{.bytes = 100, .count = 1}};
  hawser_pool_options options = HAWSER_INIT(hawser_pool_options);
  options.tiers = tiers;
  options.tier_count = 1;
  options.flags = HAWSER_POOL_REFUSES;
  MUST(hawser_pool_open(&options, &pool));
  hawser_world_options with = HAWSER_INIT(hawser_world_options);
  with.pool = pool;
  hawser_world worlds[2];
  MUST(hawser_world_local(2, &with, worlds));
  MUST(hawser_world_send(worlds[0], "pooled", 6, 1, 1, NULL));
  MUST(hawser_world_send(worlds[0], "second", 6, 1, 2, NULL));
  hawser_request first, second;
  const uint64_t tags[2] = {1, 2};
  MUST(hawser_world_irecv(worlds[1], NULL, 0, 0, &tags[0], NULL, &first));
  MUST(hawser_request_wait(first, PATIENCE));
  MUST(hawser_world_irecv(worlds[1], NULL, 0, 0, &tags[1], NULL, &second));
  REFUSED(hawser_request_wait(second, PATIENCE), HAWSER_BUSY, "buffer pool");
  MUST(hawser_request_release(second));
  hawser_pool_tier told[2];
  size_t count = 0;
  uint64_t bytes = 0, beyond = 0;
  MUST(hawser_pool_statistics(pool, told, 2, &count, &bytes, &beyond));
  CHECK(count == 1 && told[0].used == 1 && told[0].made == 1 && bytes == 100 && beyond == 1);
  MUST(hawser_request_release(first));
  MUST(hawser_pool_trim(pool));
  MUST(hawser_pool_statistics(pool, NULL, 0, &count, &bytes, NULL));
  CHECK(count == 1 && bytes == 0);
  MUST(hawser_pool_release(pool));
  REFUSED(hawser_pool_trim(pool), HAWSER_INVALID, "pool handle");
  for (int i = 0; i < 2; ++i) MUST(hawser_world_release(worlds[i]));
  options.profile = HAWSER_POOL_TRAINING;
  REFUSED(hawser_pool_open(&options, &pool), HAWSER_INVALID, "profile");
  options = (hawser_pool_options)HAWSER_INIT(hawser_pool_options);
  REFUSED(hawser_pool_open(&options, &pool), HAWSER_INVALID, "0 tiers");
  options.profile = HAWSER_POOL_INFERENCE;
  MUST(hawser_pool_open(&options, &pool));
  MUST(hawser_pool_release(pool));
}

typedef struct {
  hawser_world_options options;
  hawser_world world;
} Rank;

static void* open_rank(void* rank) {
  Rank* const its = rank;
  MUST(hawser_world_open(&its->options, &its->world));
  return NULL;
}

static void open_both(Rank* ranks) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, open_rank, &ranks[i]) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void test_guests(void) {
  hawser_agent agents[2];
  hawser_peer peers[2][2] = {{{0}, {0}}, {{0}, {0}}};
  const char* const names[2] = {"first", "second"};
  for (int i = 0; i < 2; ++i) {
    hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
    options.name = names[i];
    MUST(hawser_agent_open(&options, &agents[i]));
  }
  for (int i = 0; i < 2; ++i) {
    hawser_buffer card = HAWSER_INIT(hawser_buffer);
    MUST(hawser_agent_card(agents[1 - i], &card));
    MUST(hawser_agent_add_peer(agents[i], card.data, card.size, &peers[i][1 - i]));
    hawser_buffer_free(&card);
  }
  for (int round = 0; round < 2; ++round) {
    Rank ranks[2];
    for (int i = 0; i < 2; ++i) {
      ranks[i].options = (hawser_world_options)HAWSER_INIT(hawser_world_options);
      ranks[i].options.agent = agents[i];
      ranks[i].options.peers = peers[i];
      ranks[i].options.peer_count = 2;
      ranks[i].options.rank = (uint32_t)i;
      ranks[i].options.name = round == 0 ? "guests" : "again";
    }
    open_both(ranks);
    hawser_request barriers[2];
    for (int i = 0; i < 2; ++i) MUST(hawser_world_ibarrier(ranks[i].world, NULL, &barriers[i]));
    MUST(hawser_requests_wait(barriers, 2, PATIENCE));
    for (int i = 0; i < 2; ++i) MUST(hawser_request_release(barriers[i]));
    if (round == 0) {
      test_batch(ranks[0].world, ranks[1].world);
      test_numbers(ranks[0].world, ranks[1].world);
      test_telling(ranks[0].world);
      hawser_world twice;
      REFUSED(hawser_world_open(&ranks[0].options, &twice), HAWSER_INVALID, "a name of its own");
      ranks[0].options.agent = (hawser_agent){0};
      REFUSED(hawser_world_open(&ranks[0].options, &twice), HAWSER_INVALID, "no agent that knows them");
      REFUSED(hawser_world_local(2, &ranks[1].options, &twice), HAWSER_INVALID, "for processes");
    }
    for (int i = 0; i < 2; ++i) MUST(hawser_world_release(ranks[i].world));
  }
  for (int i = 0; i < 2; ++i) {
    hawser_buffer card = HAWSER_INIT(hawser_buffer);
    MUST(hawser_agent_card(agents[i], &card)); /* It is open. */
    hawser_buffer_free(&card);
    MUST(hawser_peer_release(peers[i][1 - i]));
    MUST(hawser_agent_release(agents[i]));
  }
}

int main(void) {
  test_guests();
  test_pool();
  return checks_failed == 0 ? 0 : 1;
}
