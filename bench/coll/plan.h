/* What the programs of this folder measure, and how they tell: shared by C and C++, so that all do the same.
 *
 * Each repetition writes the input anew, meets the other ranks in a barrier, and times one operation; the figure of a
 * repetition is that of the slowest rank. Sizes are bytes of one rank's input; elements are float. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  kBarrier,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kPingPong,
  kGather,
  kScatter,
  kScan,
  kExclusiveScan,
  kOperations
};
static const char* const kNames[kOperations] = {"barrier",        "all_reduce", "broadcast",     "all_gather",
                                                "reduce_scatter", "all_to_all", "pingpong",      "gather",
                                                "scatter",        "scan",       "exclusive_scan"};

static inline double seconds_now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* So many repetitions that a size takes about as long as another one. */
static inline int repetitions_of(size_t bytes, double scale) {
  const double wanted = bytes <= 16384 ? 2000 : 2000.0 * 16384 / (double)bytes;
  const double some = wanted * scale;
  return some < 10 ? 10 : (int)some;
}

/* Integers that a float holds exactly, other ones for each rank, place and repetition. */
static inline void fill_floats(float* data, size_t count, int rank, int repetition) {
  for (size_t i = 0; i < count; ++i) data[i] = (float)((i + (size_t)rank * 7 + (size_t)repetition * 3) % 64);
}
static inline float float_at(size_t i, int rank, int repetition) {
  return (float)((i + (size_t)rank * 7 + (size_t)repetition * 3) % 64);
}

static inline int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}
static inline void tell_row(const char* who, int operation, size_t bytes, double* seconds, int count, long wrong) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += seconds[i];
  qsort(seconds, (size_t)count, sizeof *seconds, compare_doubles);
  printf("{\"who\": \"%s\", \"op\": \"%s\", \"bytes\": %zu, \"n\": %d, \"mean\": %.3f, ", who, kNames[operation], bytes,
         count, 1e6 * sum / count);
  printf("\"p50\": %.3f, \"p99\": %.3f, \"wrong\": %ld}\n", 1e6 * seconds[count / 2],
         1e6 * seconds[(int)(count * 0.99)], wrong);
  fflush(stdout);
}

/* Elements of the rank's output. The root is rank 0. */
static inline size_t out_count_of(int operation, size_t count, int rank, int size) {
  if (operation == kAllGather) return count * (size_t)size;
  if (operation == kGather) return rank == 0 ? count * (size_t)size : 0;
  if (operation == kReduceScatter || operation == kScatter) return count / (size_t)size;
  return count;
}

/* How many elements of the output are not what they should be. */
static inline long count_wrong(int operation, const float* out, size_t count, int rank, int size, int repetition) {
  long wrong = 0;
  if (operation == kPingPong && rank > 1) return 0;       /* It takes no part. */
  if (operation == kExclusiveScan && rank == 0) return 0; /* MPI leaves it as it was. */
  for (size_t i = 0; i < count; ++i) {
    float right = 0;
    const size_t each = count / (size_t)size; /* Of what is shared out. */
    if (operation == kAllReduce) {
      for (int r = 0; r < size; ++r) right += float_at(i, r, repetition);
    } else if (operation == kBroadcast || operation == kPingPong) {
      right = float_at(i, 0, repetition);
    } else if (operation == kScan || operation == kExclusiveScan) {
      const int end = operation == kScan ? rank + 1 : rank;
      for (int r = 0; r < end; ++r) right += float_at(i, r, repetition);
    } else if (operation == kScatter) {
      right = float_at((size_t)rank * count + i, 0, repetition);
    } else if (operation == kAllGather || operation == kGather) {
      right = float_at(i % each, (int)(i / each), repetition);
    } else if (operation == kReduceScatter) {
      for (int r = 0; r < size; ++r) right += float_at((size_t)rank * count + i, r, repetition);
    } else if (operation == kAllToAll) {
      right = float_at((size_t)rank * each + i % each, (int)(i / each), repetition);
    }
    if (out[i] != right) ++wrong;
  }
  return wrong;
}
