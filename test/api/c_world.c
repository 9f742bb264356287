/* The C face of worlds: four ranks in one process, each on a thread of its own; as `c_world rank`, one of several
   processes that a launcher started. */

#include <hawser/c.h>
#include <hawser/c_world.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "c_api.h"

#define RANKS 4

int checks_failed = 0;

static int add_one(void* context, uint32_t source, const void* arguments, size_t size, hawser_answer answer) {
  unsigned char bytes[8];
  if (size != sizeof bytes) return hawser_answer_fail(answer, HAWSER_INVALID, "eight bytes are wanted");
  memcpy(bytes, arguments, size);
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)(bytes[i] + source + *(const int*)context);
  return hawser_answer_set(answer, bytes, sizeof bytes);
}

/* Memory that the others map, above the size from which they read it there. */
static void test_mapped_memory(hawser_world world, uint32_t rank, uint32_t ranks) {
  enum { kCount = 100000, kRounds = 5 };
  hawser_region region = {0};
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  MUST(hawser_world_allocate(world, kCount * sizeof(float), &region));
  MUST(hawser_region_info_get(region, &info));
  CHECK(info.bytes >= kCount * sizeof(float));
  float* const data = info.base;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCount; ++i) data[i] = (float)((int)rank + i % 10 + round);
    MUST(hawser_world_all_reduce(world, data, data, kCount, HAWSER_F32, HAWSER_SUM, NULL));
    for (int i = 0; i < kCount; ++i) {
      if (data[i] != (float)((int)(ranks * (ranks - 1) / 2) + (int)ranks * (i % 10 + round))) CHECK(!"the sum");
    }
  }
  MUST(hawser_region_close(region, PATIENCE));
  MUST(hawser_region_release(region));
  REFUSED(hawser_world_allocate(world, 0, &region), HAWSER_INVALID, "allocate");
}

static void test_collectives(hawser_world world, uint32_t rank, uint32_t ranks) {
  hawser_operation_options options = HAWSER_INIT(hawser_operation_options);
  options.timeout_ns = PATIENCE;
  MUST(hawser_world_barrier(world, NULL));
  float value = (float)(rank + 1), sum = 0;
  MUST(hawser_world_all_reduce(world, &value, &sum, 1, HAWSER_F32, HAWSER_SUM, &options));
  CHECK(sum == (float)(ranks * (ranks + 1)) / 2);
  int32_t seed = rank == 1 ? 77 : 0;
  MUST(hawser_world_broadcast(world, &seed, 1, HAWSER_I32, 1, NULL));
  CHECK(seed == 77);
  uint64_t mine = rank, most = 0;
  MUST(hawser_world_reduce(world, &mine, rank == 0 ? &most : NULL, 1, HAWSER_U64, HAWSER_MAX, 0, NULL));
  CHECK(rank != 0 || most == ranks - 1);
  uint64_t* const all = calloc(ranks, sizeof *all);
  uint64_t* const out = calloc(ranks, sizeof *out);
  MUST(hawser_world_all_gather(world, &mine, all, 1, NULL, HAWSER_U64, NULL));
  for (uint32_t i = 0; i < ranks; ++i) CHECK(all[i] == i);
  uint64_t share = 0;
  MUST(hawser_world_reduce_scatter(world, all, &share, 1, NULL, HAWSER_U64, HAWSER_SUM, NULL));
  CHECK(share == (uint64_t)rank * ranks);
  for (uint32_t i = 0; i < ranks; ++i) all[i] = rank * 100 + i;
  MUST(hawser_world_all_to_all(world, all, out, 1, NULL, NULL, HAWSER_U64, NULL));
  for (uint32_t i = 0; i < ranks; ++i) CHECK(out[i] == i * 100 + rank);
  MUST(hawser_world_gather(world, &mine, rank == 2 % ranks ? out : NULL, 1, NULL, HAWSER_U64, 2 % ranks, NULL));
  if (rank == 2 % ranks) CHECK(out[ranks - 1] == ranks - 1);
  for (uint32_t i = 0; i < ranks; ++i) all[i] = 7 * i;
  MUST(hawser_world_scatter(world, rank == 0 ? all : NULL, &share, 1, NULL, HAWSER_U64, 0, NULL));
  CHECK(share == 7 * (uint64_t)rank);
  /* Counts of their own: rank r has r + 1 elements. */
  uint64_t* const counts = calloc(ranks, sizeof *counts);
  for (uint32_t i = 0; i < ranks; ++i) counts[i] = i + 1;
  const size_t total = (size_t)ranks * (ranks + 1) / 2;
  uint8_t* const some = calloc(ranks, 1);
  uint8_t* const together = calloc(total, 1);
  memset(some, (int)rank + 1, rank + 1);
  MUST(hawser_world_all_gather(world, some, together, 0, counts, HAWSER_U8, NULL));
  CHECK(together[0] == 1 && together[total - 1] == ranks);
  uint64_t one = 1, upto = 0;
  MUST(hawser_world_scan(world, &one, &upto, 1, HAWSER_U64, HAWSER_SUM, NULL));
  CHECK(upto == rank + 1);
  MUST(hawser_world_exclusive_scan(world, &one, &upto, 1, HAWSER_U64, HAWSER_SUM, NULL));
  CHECK(rank == 0 || upto == rank);
  free(some);
  free(together);
  free(counts);
  free(all);
  free(out);
}

/* Each class has an order of its own. */
static void test_classes(hawser_world world, uint32_t rank, uint32_t ranks) {
  const uint32_t priorities[4] = {HAWSER_PRIORITY_DEFAULT, HAWSER_PRIORITY_CRITICAL, HAWSER_PRIORITY_REALTIME,
                                  HAWSER_PRIORITY_BULK};
  const uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  for (int i = 0; i < 4; ++i) {
    hawser_operation_options options = HAWSER_INIT(hawser_operation_options);
    options.priority = priorities[i];
    const uint64_t tag = 40 + (uint64_t)i;
    const uint32_t first = 2 * (uint32_t)i, second = first + 1;
    const hawser_part parts[1] = {{(void*)&second, sizeof second}};
    MUST(hawser_world_send(world, &first, sizeof first, next, tag, &options));
    MUST(hawser_world_sendv(world, parts, 1, next, tag, &options));
    uint32_t got[2] = {99, 99};
    MUST(hawser_world_recv(world, &got[0], sizeof got[0], before, &tag, NULL, NULL));
    MUST(hawser_world_recv(world, &got[1], sizeof got[1], before, &tag, NULL, NULL));
    CHECK(got[0] == first && got[1] == second);
  }
  hawser_operation_options options = HAWSER_INIT(hawser_operation_options);
  options.priority = 4;
  REFUSED(hawser_world_send(world, "x", 1, next, 1, &options), HAWSER_INVALID, "priority = 4");
  /* A program of an older header has no such field. */
  options.size = offsetof(hawser_operation_options, priority);
  MUST(hawser_world_send(world, "x", 1, next, 50, &options));
  const uint64_t tag = 50;
  char byte = 0;
  MUST(hawser_world_recv(world, &byte, 1, before, &tag, NULL, NULL));
  CHECK(byte == 'x');
}

static void test_compressed(hawser_world world, uint32_t rank, uint32_t ranks) {
  hawser_compressor_options how = HAWSER_INIT(hawser_compressor_options);
  hawser_compressor top = {0};
  REFUSED(hawser_compressor_open(&how, &top), HAWSER_INVALID, "kind = 0");
  how.kind = HAWSER_TOP_K;
  REFUSED(hawser_compressor_open(&how, &top), HAWSER_INVALID, "ratio");
  how.ratio = 0.25;
  MUST(hawser_compressor_open(&how, &top));
  hawser_operation_options options = HAWSER_INIT(hawser_operation_options);
  options.compressor = top;
  /* Each rank sends the largest of four, and keeps the rest. */
  const float values[4] = {1, 2, (float)rank, 9};
  float sum[4], left[4];
  size_t count = 99;
  MUST(hawser_compressor_residual(top, NULL, 0, &count));
  CHECK(count == 0);
  MUST(hawser_world_all_reduce(world, values, sum, 4, HAWSER_F32, HAWSER_SUM, &options));
  CHECK(sum[0] == 0 && sum[1] == 0 && sum[2] == 0 && sum[3] == 9.0F * (float)ranks);
  MUST(hawser_compressor_residual(top, left, 4, &count));
  CHECK(count == 4 && left[0] == 1 && left[1] == 2 && left[2] == (float)rank && left[3] == 0);
  REFUSED(hawser_world_all_reduce(world, values, sum, 4, HAWSER_I32, HAWSER_SUM, &options), HAWSER_INVALID, "i32");
  REFUSED(hawser_world_broadcast(world, sum, 4, HAWSER_F32, 0, &options), HAWSER_INVALID, "only an all_reduce");
  MUST(hawser_compressor_reset(top));
  MUST(hawser_compressor_release(top));
  REFUSED(hawser_world_all_reduce(world, values, sum, 4, HAWSER_F32, HAWSER_SUM, &options), HAWSER_INVALID,
          "compressor");
  /* Several tensors in two collectives. */
  uint64_t a[2] = {rank, 1}, b[1] = {2}, c[3] = {3, 4, 5};
  const hawser_part parts[4] = {{a, sizeof a}, {NULL, 0}, {b, sizeof b}, {c, sizeof c}};
  MUST(hawser_world_all_reduce_bucketed(world, parts, 4, HAWSER_U64, HAWSER_SUM, 24, NULL));
  CHECK(a[0] == (uint64_t)ranks * (ranks - 1) / 2 && a[1] == ranks && b[0] == 2 * (uint64_t)ranks);
  hawser_request requests[4];
  REFUSED(hawser_world_iall_reduce_bucketed(world, parts, 4, HAWSER_U64, HAWSER_MAX, 24, NULL, requests, 3, &count),
          HAWSER_INVALID, "room for 3");
  MUST(hawser_world_iall_reduce_bucketed(world, parts, 4, HAWSER_U64, HAWSER_MAX, 24, NULL, requests, 4, &count));
  CHECK(count == 2);
  for (size_t i = 0; i < count; ++i) {
    MUST(hawser_request_wait(requests[i], PATIENCE));
    MUST(hawser_request_release(requests[i]));
  }
  CHECK(c[2] == 5 * (uint64_t)ranks);
}

/* Affine maps x -> a x + b: applied one after another, in the order of ranks. */
typedef struct affine {
  uint32_t a, b;
} affine;

static void compose(void* context, void* out, const void* first, const void* second, size_t count) {
  CHECK(*(const int*)context == 42);
  for (size_t i = 0; i < count; ++i) {
    affine inner, outer;
    memcpy(&inner, (const char*)first + i * sizeof inner, sizeof inner);
    memcpy(&outer, (const char*)second + i * sizeof outer, sizeof outer);
    const affine both = {outer.a * inner.a, outer.a * inner.b + outer.b};
    memcpy((char*)out + i * sizeof both, &both, sizeof both);
  }
}

static void test_reducer(hawser_world world, uint32_t rank, uint32_t ranks) {
  int context = 42;
  hawser_reducer reducer = HAWSER_INIT(hawser_reducer);
  hawser_operation_options options = HAWSER_INIT(hawser_operation_options);
  options.reducer = &reducer;
  const affine own = {rank + 2, rank};
  affine all, right = {1, 0}, before = {1, 0};
  REFUSED(hawser_world_all_reduce(world, &own, &all, 1, HAWSER_U8, HAWSER_SUM, &options), HAWSER_INVALID, "combine");
  reducer.combine = compose;
  reducer.context = &context;
  reducer.name = "compose";
  reducer.element_bytes = sizeof own;
  reducer.flags = 2;
  REFUSED(hawser_world_all_reduce(world, &own, &all, 1, HAWSER_U8, HAWSER_SUM, &options), HAWSER_INVALID, "flags");
  reducer.flags = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    const affine its = {r + 2, r};
    compose(&context, &right, &right, &its, 1);
    if (r <= rank) compose(&context, &before, &before, &its, 1);
  }
  MUST(hawser_world_all_reduce(world, &own, &all, 1, HAWSER_U8, HAWSER_SUM, &options));
  CHECK(all.a == right.a && all.b == right.b);
  MUST(hawser_world_scan(world, &own, &all, 1, HAWSER_U8, HAWSER_SUM, &options));
  CHECK(all.a == before.a && all.b == before.b);
  REFUSED(hawser_world_broadcast(world, &all, 1, HAWSER_U8, 0, &options), HAWSER_INVALID, "combines nothing");
}

static void test_messages(hawser_world world, uint32_t rank, uint32_t ranks) {
  const uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const uint64_t tag = UINT64_C(1) << 63;
  hawser_request sent, got;
  MUST(hawser_world_isend(world, &rank, sizeof rank, next, tag, NULL, &sent));
  uint32_t from = 99;
  hawser_received what = HAWSER_INIT(hawser_received);
  MUST(hawser_world_recv(world, &from, sizeof from, before, &tag, NULL, &what));
  CHECK(from == before && what.source == before && what.tag == tag && what.bytes == sizeof from);
  MUST(hawser_request_wait(sent, PATIENCE));
  MUST(hawser_request_release(sent));
  MUST(hawser_world_send(world, "hello", 5, next, 3, NULL));
  int present = 0;
  MUST(hawser_world_probe(world, HAWSER_ANY_SOURCE, NULL, PATIENCE, &present, &what));
  CHECK(present == 1 && what.bytes == 5);
  MUST(hawser_world_irecv(world, NULL, 0, HAWSER_ANY_SOURCE, NULL, NULL, &got));
  MUST(hawser_request_wait(got, PATIENCE));
  const void* data = NULL;
  size_t size = 0;
  MUST(hawser_request_bytes(got, &data, &size));
  CHECK(size == 5 && memcmp(data, "hello", 5) == 0);
  MUST(hawser_request_received(got, &what));
  CHECK(what.tag == 3);
  MUST(hawser_request_release(got));
  /* One message of several parts, which the other side divides otherwise. */
  char text[] = "hello, world", into[13] = {0};
  const hawser_part out_parts[3] = {{text, 5}, {NULL, 0}, {text + 5, 7}};
  const hawser_part in_parts[2] = {{into, 1}, {into + 1, 12}};
  const uint64_t five = 5;
  MUST(hawser_world_isendv(world, out_parts, 3, next, five, NULL, &sent));
  MUST(hawser_world_recvv(world, in_parts, 2, before, &five, NULL, &what));
  CHECK(what.bytes == 12 && memcmp(into, text, 12) == 0);
  MUST(hawser_request_wait(sent, PATIENCE));
  MUST(hawser_request_release(sent));
  MUST(hawser_world_irecvv(world, in_parts, 2, before, &five, NULL, &got));
  MUST(hawser_world_sendv(world, out_parts, 1, next, five, NULL));
  MUST(hawser_request_wait(got, PATIENCE));
  MUST(hawser_request_received(got, &what));
  CHECK(what.bytes == 5);
  MUST(hawser_request_release(got));
  const hawser_part bad = {NULL, 4};
  REFUSED(hawser_world_sendv(world, &bad, 1, next, five, NULL), HAWSER_INVALID, "data is null");
  /* Nothing is on its way: it times out, and is cancelled. */
  hawser_operation_options soon = HAWSER_INIT(hawser_operation_options);
  soon.timeout_ns = 1000000;
  CHECK(hawser_world_recv(world, &from, sizeof from, before, &tag, &soon, NULL) == HAWSER_TIMED_OUT);
  MUST(hawser_world_irecv(world, &from, sizeof from, before, &tag, NULL, &got));
  int done = 1;
  MUST(hawser_request_done(got, &done));
  CHECK(done == 0);
  CHECK(hawser_request_wait(got, 0) == HAWSER_TIMED_OUT);
  REFUSED(hawser_request_received(got, &what), HAWSER_INVALID, "under way");
  MUST(hawser_request_cancel(got));
  CHECK(hawser_request_wait(got, PATIENCE) == HAWSER_CANCELLED);
  MUST(hawser_request_release(got));
}

static void test_calls(hawser_world world, uint32_t rank, uint32_t ranks) {
  static const int more = 10;
  MUST(hawser_world_register(world, "add", add_one, (void*)&more, 0));
  MUST(hawser_world_barrier(world, NULL));
  unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const uint32_t next = (rank + 1) % ranks;
  hawser_buffer answer = {NULL, 0};
  MUST(hawser_world_call(world, next, "add", bytes, sizeof bytes, NULL, &answer));
  CHECK(answer.size == 8 && (unsigned char)answer.data[0] == 1 + rank + 10);
  hawser_buffer_free(&answer);
  REFUSED(hawser_world_call(world, next, "add", bytes, 3, NULL, &answer), HAWSER_INVALID, "eight bytes are wanted");
  REFUSED(hawser_world_call(world, next, "nobody", bytes, 3, NULL, &answer), HAWSER_NOT_FOUND, "nobody");
  hawser_request request;
  MUST(hawser_world_icall(world, next, "add", bytes, sizeof bytes, NULL, &request));
  MUST(hawser_request_wait(request, PATIENCE));
  const void* data = NULL;
  size_t size = 0;
  MUST(hawser_request_bytes(request, &data, &size));
  CHECK(size == 8);
  MUST(hawser_request_release(request));
  REFUSED(hawser_world_register(world, "add", add_one, NULL, 0), HAWSER_INVALID, "add");
  REFUSED(hawser_world_register(world, "b", NULL, NULL, 0), HAWSER_INVALID, "handler is null");
  REFUSED(hawser_world_register(world, "b", add_one, NULL, 8), HAWSER_INVALID, "flags 8");
}

static void test_groups(hawser_world world, uint32_t rank, uint32_t ranks) {
  hawser_world half = {0}, twin = {0}, two = {0};
  MUST(hawser_world_split(world, rank % 2, -(int64_t)rank, &half));
  hawser_world_info info = HAWSER_INIT(hawser_world_info);
  MUST(hawser_world_info_get(half, &info));
  CHECK(info.root_rank == rank && info.ranks == (ranks + 1 - rank % 2) / 2);
  uint64_t least = 0, most = 0; /* The group's ranks have one number for it. */
  MUST(hawser_world_all_reduce(half, &info.id, &least, 1, HAWSER_U64, HAWSER_MIN, NULL));
  MUST(hawser_world_all_reduce(half, &info.id, &most, 1, HAWSER_U64, HAWSER_MAX, NULL));
  CHECK(info.id != 0 && least == most);
  uint64_t one = 1, count = 0;
  MUST(hawser_world_all_reduce(half, &one, &count, 1, HAWSER_U64, HAWSER_SUM, NULL));
  CHECK(count == info.ranks);
  MUST(hawser_world_release(half));
  MUST(hawser_world_split(world, rank == 0 ? HAWSER_NO_COLOR : 5, 0, &half));
  CHECK((half.id == 0) == (rank == 0));
  if (half.id != 0) MUST(hawser_world_release(half));
  MUST(hawser_world_duplicate(world, &twin));
  MUST(hawser_world_barrier(twin, NULL));
  MUST(hawser_world_release(twin));
  if (ranks > 1 && rank < 2) {
    const uint32_t members[2] = {1, 0};
    MUST(hawser_world_group(world, members, 2, &two));
    MUST(hawser_world_info_get(two, &info));
    CHECK(info.rank == 1 - rank && info.ranks == 2);
    MUST(hawser_world_barrier(two, NULL));
    MUST(hawser_world_release(two));
  }
  REFUSED(hawser_world_split(world, -3, 0, &half), HAWSER_INVALID, "color -3");
}

static void test_agreement(hawser_world world, uint32_t rank, uint32_t ranks) {
  int agreed = 1;
  hawser_world made;
  CHECK(hawser_world_agree(world, 1, -1, &agreed) == HAWSER_INVALID);
  CHECK(hawser_world_shrink(world, NULL, 0, INT64_MIN, &made) == HAWSER_INVALID);
  MUST(hawser_world_agree(world, rank != 1, PATIENCE, &agreed));
  CHECK(agreed == (ranks < 2));
  uint32_t list[RANKS];
  size_t count = 9;
  MUST(hawser_world_failed(world, list, RANKS, &count));
  CHECK(count == 0);
  MUST(hawser_world_failures(world, 0, 0, list, RANKS, &count));
  CHECK(count == 0);
  MUST(hawser_world_acknowledge(world, NULL, 0, &count));
  CHECK(count == 0);
  hawser_world next = {0};
  MUST(hawser_world_shrink(world, NULL, 0, PATIENCE, &next));
  hawser_world_info info = HAWSER_INIT(hawser_world_info);
  MUST(hawser_world_info_get(next, &info));
  CHECK(info.epoch == 1 && info.ranks == ranks && info.old_rank == rank && info.last_good > 0);
  CHECK(hawser_world_barrier(world, NULL) == HAWSER_CANCELLED); /* It was revoked. */
  MUST(hawser_world_barrier(next, NULL));
  MUST(hawser_world_shutdown(next, PATIENCE));
  MUST(hawser_world_release(next));
}

static void test_misuse(hawser_world world) {
  float x = 0;
  hawser_peer peer;
  REFUSED(hawser_world_all_reduce(world, &x, &x, 1, 99, HAWSER_SUM, NULL), HAWSER_INVALID, "type = 99");
  REFUSED(hawser_world_all_reduce(world, &x, &x, 1, HAWSER_F32, -1, NULL), HAWSER_INVALID, "op = -1");
  REFUSED(hawser_world_all_reduce(world, NULL, &x, 1, HAWSER_F32, HAWSER_SUM, NULL), HAWSER_INVALID, "in is null");
  REFUSED(hawser_world_ibarrier(world, NULL, NULL), HAWSER_INVALID, "request is null");
  REFUSED(hawser_world_recv(world, NULL, 0, 0, NULL, NULL, NULL), HAWSER_INVALID, "into is null");
  REFUSED(hawser_world_peer(world, 1000, &peer), HAWSER_INVALID, "no rank 1000");
  hawser_operation_options options = HAWSER_INIT(hawser_operation_options);
  options.timeout_ns = -1;
  REFUSED(hawser_world_barrier(world, &options), HAWSER_INVALID, "timeout_ns");
  hawser_world none = {0};
  REFUSED(hawser_world_barrier(none, NULL), HAWSER_INVALID, "world handle");
  hawser_request nothing = {0};
  REFUSED(hawser_request_wait(nothing, 0), HAWSER_INVALID, "request handle");
}

static void test_all(hawser_world world) {
  hawser_world_info info = HAWSER_INIT(hawser_world_info);
  MUST(hawser_world_info_get(world, &info));
  CHECK(info.failed == 0 && info.epoch == 0 && info.id == 0);
  test_misuse(world);
  test_collectives(world, info.rank, info.ranks);
  test_mapped_memory(world, info.rank, info.ranks);
  test_classes(world, info.rank, info.ranks);
  test_compressed(world, info.rank, info.ranks);
  test_reducer(world, info.rank, info.ranks);
  test_messages(world, info.rank, info.ranks);
  test_calls(world, info.rank, info.ranks);
  test_groups(world, info.rank, info.ranks);
  test_agreement(world, info.rank, info.ranks);
  MUST(hawser_world_release(world));
}

static void* run_rank(void* world) {
  test_all(*(hawser_world*)world);
  return NULL;
}

static void test_local(void) {
  hawser_world worlds[RANKS];
  hawser_world_options options = HAWSER_INIT(hawser_world_options);
  const hawser_param settings[1] = {{"backends", "shm"}};
  options.settings = settings;
  options.setting_count = 1;
  MUST(hawser_world_local(RANKS, &options, worlds));
  pthread_t threads[RANKS];
  for (int i = 0; i < RANKS; ++i) CHECK(pthread_create(&threads[i], NULL, run_rank, &worlds[i]) == 0);
  for (int i = 0; i < RANKS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  options.cost_model = "/no/such/costs.toml";
  REFUSED(hawser_world_local(RANKS, &options, worlds), HAWSER_NOT_FOUND, "/no/such/costs.toml");
  options.cost_model = NULL;
  options.ranks = 3;
  REFUSED(hawser_world_local(RANKS, &options, worlds), HAWSER_INVALID, "for processes");
  options.ranks = 0;
  options.flags = 64;
  REFUSED(hawser_world_local(RANKS, &options, worlds), HAWSER_INVALID, "flags 64");
  options.flags = HAWSER_WORLD_NO_ENVIRONMENT;
  REFUSED(hawser_world_open(&options, worlds), HAWSER_INVALID, "NO_ENVIRONMENT");
  REFUSED(hawser_world_open(NULL, NULL), HAWSER_INVALID, "out is null");
}

/* All begun by one thread, the requests waited for in any order. */
static void test_one_thread(void) {
  hawser_world worlds[RANKS];
  hawser_request requests[RANKS];
  int64_t values[RANKS];
  MUST(hawser_world_local(RANKS, NULL, worlds));
  for (int i = 0; i < RANKS; ++i) {
    values[i] = i;
    MUST(hawser_world_iall_reduce(worlds[i], &values[i], &values[i], 1, HAWSER_I64, HAWSER_SUM, NULL, &requests[i]));
  }
  for (int i = RANKS - 1; i >= 0; --i) {
    MUST(hawser_request_wait(requests[i], PATIENCE));
    MUST(hawser_request_release(requests[i]));
    CHECK(values[i] == RANKS * (RANKS - 1) / 2);
  }
  /* A rank that goes without a word has failed for the others, and is named. */
  MUST(hawser_world_release(worlds[3]));
  CHECK(hawser_world_barrier(worlds[0], NULL) == HAWSER_DISCONNECTED);
  uint32_t failed[RANKS] = {9};
  size_t count = 0;
  MUST(hawser_world_failures(worlds[0], 0, PATIENCE, failed, RANKS, &count));
  CHECK(count == 1 && failed[0] == 3);
  MUST(hawser_world_revoke(worlds[1]));
  for (int i = 0; i < 3; ++i) {
    MUST(hawser_world_close(worlds[i], PATIENCE));
    MUST(hawser_world_release(worlds[i]));
  }
}

/* After a failure the runtime makes the next world, and gives it once. */
static void test_recovery(void) {
  hawser_world worlds[RANKS], next[RANKS];
  hawser_world_options options = HAWSER_INIT(hawser_world_options);
  uint32_t failed[RANKS];
  size_t count = 0;
  options.flags = HAWSER_WORLD_AUTOMATIC | HAWSER_WORLD_ABORT;
  REFUSED(hawser_world_local(RANKS, &options, worlds), HAWSER_INVALID, "two recovery policies");
  options.flags = HAWSER_WORLD_MAJORITY | HAWSER_WORLD_ANY_QUORUM;
  REFUSED(hawser_world_local(RANKS, &options, worlds), HAWSER_INVALID, "two quorums");
  options.flags = HAWSER_WORLD_AUTOMATIC;
  MUST(hawser_world_local(RANKS, &options, worlds));
  CHECK(hawser_world_recovered(worlds[0], 0, &next[0], failed, RANKS, &count) == HAWSER_TIMED_OUT);
  REFUSED(hawser_world_recovered(worlds[0], 0, NULL, failed, RANKS, &count), HAWSER_INVALID, "out is null");
  REFUSED(hawser_world_recovered(worlds[0], 0, &next[0], failed, RANKS, NULL), HAWSER_INVALID, "count is null");
  MUST(hawser_world_release(worlds[1]));
  for (int i = 0; i < RANKS; ++i) {
    if (i == 1) continue;
    MUST(hawser_world_recovered(worlds[i], PATIENCE, &next[i], failed, RANKS, &count));
    hawser_world_info info = HAWSER_INIT(hawser_world_info);
    MUST(hawser_world_info_get(next[i], &info));
    CHECK(count == 1 && failed[0] == 1 && info.ranks == RANKS - 1 && info.old_rank == (uint32_t)i && info.epoch == 1);
    CHECK(hawser_world_recovered(worlds[i], 0, &next[i], failed, RANKS, &count) == HAWSER_INVALID);
    MUST(hawser_world_release(worlds[i]));
  }
  for (int i = 0; i < RANKS; ++i) {
    if (i != 1) MUST(hawser_world_close(next[i], PATIENCE));
    if (i != 1) MUST(hawser_world_release(next[i]));
  }
}

static void* leave_together(void* world) {
  int64_t value = 1;
  MUST(hawser_world_all_reduce(*(hawser_world*)world, &value, &value, 1, HAWSER_I64, HAWSER_SUM, NULL));
  CHECK(value == RANKS);
  MUST(hawser_world_shutdown(*(hawser_world*)world, PATIENCE));
  MUST(hawser_world_release(*(hawser_world*)world));
  return NULL;
}

/* Ranks that are no neighbours reach one another by others. */
static void test_sparse(void) {
  hawser_world worlds[RANKS];
  hawser_world_options options = HAWSER_INIT(hawser_world_options);
  int is = 0;
  options.topology = "hypercube";
  MUST(hawser_world_local(RANKS, &options, worlds));
  MUST(hawser_world_is_sparse(worlds[0], &is));
  CHECK(is == 1);
  MUST(hawser_world_has_direct_peer(worlds[0], 1, &is));
  CHECK(is == 1);
  MUST(hawser_world_has_direct_peer(worlds[0], 3, &is));
  CHECK(is == 0);
  REFUSED(hawser_world_has_direct_peer(worlds[0], 3, NULL), HAWSER_INVALID, "direct is null");
  REFUSED(hawser_world_is_sparse(worlds[0], NULL), HAWSER_INVALID, "sparse is null");
  uint32_t host = 9;
  MUST(hawser_world_host(worlds[0], 3, &host));
  CHECK(host == 0);
  REFUSED(hawser_world_host(worlds[0], 4, &host), HAWSER_INVALID, "there is no rank 4 among 4");
  REFUSED(hawser_world_host(worlds[0], 3, NULL), HAWSER_INVALID, "host is null");
  hawser_buffer costs = HAWSER_INIT(hawser_buffer);
  MUST(hawser_world_cost_model(worlds[0], &costs));
  CHECK(costs.size == strlen("built in") && memcmp(costs.data, "built in", costs.size) == 0);
  hawser_buffer_free(&costs);
  REFUSED(hawser_world_cost_model(worlds[0], NULL), HAWSER_INVALID, "hawser_buffer is null");
  hawser_world_info where = {.size = sizeof(where)};
  MUST(hawser_world_info_get(worlds[3], &where));
  CHECK(where.host == 0 && where.local_rank == 3 && where.local_size == 4);
  pthread_t threads[RANKS];
  for (int i = 0; i < RANKS; ++i) CHECK(pthread_create(&threads[i], NULL, leave_together, &worlds[i]) == 0);
  for (int i = 0; i < RANKS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  options.topology = "cube";
  REFUSED(hawser_world_local(RANKS, &options, worlds), HAWSER_INVALID, "no topology");
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "rank") == 0) {
    hawser_world world;
    MUST(hawser_world_open(NULL, &world));
    test_all(world);
    return checks_failed == 0 ? 0 : 1;
  }
  test_local();
  test_one_thread();
  test_sparse();
  test_recovery();
  return checks_failed == 0 ? 0 : 1;
}
