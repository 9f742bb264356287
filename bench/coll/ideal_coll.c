/* The ideal of collectives on one host, measured as bench/coll_bench.py asks for: all buffers are mapped in all ranks,
 * which meet at counters in shared lines. No rank checks anything, none may fail, and nothing is ever freed.
 * ideal_coll RANKS SCALE OPS SIZES */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan.h"

enum { kRanksMax = 64, kSpins = 2000 };

struct line {
  _Alignas(128) atomic_ulong count;
};
static struct line* lines; /* One of each rank: how often it came to a meeting. */
static int rank, ranks;
static float *in[kRanksMax], *out[kRanksMax];

static void* shared(size_t bytes) {
  void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) exit(1);
  return at;
}

static void meet(void) {
  const unsigned long mine = atomic_load_explicit(&lines[rank].count, memory_order_relaxed) + 1;
  atomic_store_explicit(&lines[rank].count, mine, memory_order_release);
  for (int r = 0; r < ranks; ++r) {
    for (int spins = 0; atomic_load_explicit(&lines[r].count, memory_order_acquire) < mine;) {
      if (++spins % kSpins == 0) sched_yield();
    }
  }
}

/* Elements [at, at + count) of all inputs, into `to`. Blocks stay in the cache. */
static void sum(float* restrict to, size_t at, size_t count) {
  for (size_t begin = 0; begin < count; begin += 4096) {
    const size_t some = count - begin < 4096 ? count - begin : 4096;
    float* restrict into = to + begin;
    const float *first = in[0] + at + begin, *second = in[ranks > 1 ? 1 : 0] + at + begin;
    for (size_t i = 0; i < some; ++i) into[i] = first[i] + second[i];
    for (int r = 2; r < ranks; ++r) {
      const float* other = in[r] + at + begin;
      for (size_t i = 0; i < some; ++i) into[i] += other[i];
    }
  }
}

static void once(int operation, size_t count) {
  const size_t each = count / (size_t)ranks, mine = each * (size_t)rank;
  meet(); /* All inputs are there. */
  switch (operation) {
    case kAllReduce: {
      const size_t own = rank + 1 == ranks ? count - mine : each;
      sum(out[rank] + mine, mine, own);
      meet();
      for (int r = 0; r < ranks; ++r) {
        const size_t at = each * (size_t)r, size = r + 1 == ranks ? count - at : each;
        if (r != rank) memcpy(out[rank] + at, out[r] + at, size * sizeof(float));
      }
      break;
    }
    case kBroadcast:
      if (rank != 0) memcpy(in[rank], in[0], count * sizeof(float));
      break;
    case kAllGather:
      for (int r = 0; r < ranks; ++r) memcpy(out[rank] + count * (size_t)r, in[r], count * sizeof(float));
      break;
    case kReduceScatter:
      sum(out[rank], mine, each);
      break;
    case kAllToAll:
      for (int r = 0; r < ranks; ++r) memcpy(out[rank] + each * (size_t)r, in[r] + mine, each * sizeof(float));
      break;
    default:
      return;
  }
  meet(); /* All have read. */
}

static long run(int operation, size_t bytes, double scale, double* slowest) {
  const size_t count = bytes / sizeof(float);
  const size_t out_count = operation == kAllGather       ? count * (size_t)ranks
                           : operation == kReduceScatter ? count / (size_t)ranks
                                                         : count;
  const int repetitions = repetitions_of(bytes, scale), warm = 1 + repetitions / 10;
  long wrong = 0;
  for (int i = -warm; i < repetitions; ++i) {
    fill_floats(in[rank], count, rank, i + warm);
    meet();
    const double begin = seconds_now();
    once(operation, count);
    if (i >= 0) slowest[(size_t)rank * (size_t)repetitions + (size_t)i] = seconds_now() - begin;
    if (i % 16 == 0 && operation != kBarrier) {
      const float* got = operation == kBroadcast ? in[rank] : out[rank];
      wrong += count_wrong(operation, got, out_count, rank, ranks, i + warm);
    }
  }
  meet();
  if (rank == 0) {
    for (int r = 1; r < ranks; ++r) {
      for (int i = 0; i < repetitions; ++i) {
        slowest[i] = fmax(slowest[i], slowest[(size_t)r * (size_t)repetitions + (size_t)i]);
      }
    }
    tell_row("ideal", operation, bytes, slowest, repetitions, wrong);
  }
  meet();
  return wrong;
}

static int has(const char* list, const char* name) {
  const size_t size = strlen(name);
  for (const char* at = list; (at = strstr(at, name)) != NULL; at += size) {
    if ((at == list || at[-1] == ',') && (at[size] == ',' || at[size] == '\0')) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 5 || (ranks = atoi(argv[1])) < 1 || ranks > kRanksMax) return 2;
  const double scale = atof(argv[2]);
  size_t most = 64;
  for (const char* at = argv[4]; at != NULL && *at != '\0'; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if ((size_t)atol(at) > most) most = (size_t)atol(at);
  }
  lines = shared(sizeof *lines * kRanksMax);
  double* const slowest = shared(sizeof(double) * (size_t)ranks * 1000000);
  for (int r = 0; r < ranks; ++r) {
    in[r] = shared(most);
    out[r] = shared(most * (size_t)ranks);
    memset(in[r], 0, most);
    memset(out[r], 0, most * (size_t)ranks);
  }
  for (int r = 1; r < ranks && rank == 0; ++r) {
    if (fork() == 0) rank = r;
  }
  long wrong = 0;
  for (int operation = 0; operation < kOperations; ++operation) {
    if (operation >= kPingPong || !has(argv[3], kNames[operation])) continue;
    for (const char* at = operation == kBarrier ? "0" : argv[4]; at != NULL && *at != '\0';
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
      wrong += run(operation, (size_t)atol(at), scale, slowest);
    }
  }
  if (rank != 0) return wrong != 0;
  for (int status = 0; wait(&status) > 0;) wrong += status != 0;
  return wrong != 0;
}
