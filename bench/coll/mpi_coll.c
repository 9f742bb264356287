/* The same by MPI: `mpiexec -n 2 mpi_coll WHO SCALE OPS SIZES`. Compiled by coll_bench.py with the wheel's mpicc. */

#include <mpi.h>

#include "plan.h"

static int rank, size;

static void once(int operation, float* in, float* out, int count) {
  switch (operation) {
    case kBarrier:
      MPI_Barrier(MPI_COMM_WORLD);
      break;
    case kAllReduce:
      MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case kBroadcast:
      MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case kAllGather:
      MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case kReduceScatter:
      MPI_Reduce_scatter_block(in, out, count / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case kGather:
      MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case kScatter:
      MPI_Scatter(in, count / size, MPI_FLOAT, out, count / size, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case kScan:
      MPI_Scan(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case kExclusiveScan:
      MPI_Exscan(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case kAllToAll:
      MPI_Alltoall(in, count / size, MPI_FLOAT, out, count / size, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    default:
      if (rank == 0) {
        MPI_Send(in, count, MPI_FLOAT, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, count, MPI_FLOAT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (rank == 1) {
        MPI_Recv(in, count, MPI_FLOAT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(in, count, MPI_FLOAT, 0, 2, MPI_COMM_WORLD);
      }
  }
}

static void run(const char* who, double scale, int operation, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  float *in = calloc(count + 1, sizeof(float)), *out = calloc(count * (size_t)size + 1, sizeof(float));
  const size_t out_count = out_count_of(operation, count, rank, size);
  const int repetitions = repetitions_of(bytes, scale), warm = 1 + repetitions / 10;
  double* seconds = calloc((size_t)repetitions, sizeof(double));
  long wrong = 0, all_wrong = 0;
  for (int i = -warm; i < repetitions; ++i) {
    fill_floats(in, count, rank, i + warm);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = seconds_now();
    once(operation, in, out, (int)count);
    if (i >= 0) seconds[i] = seconds_now() - begin;
    const int in_place = operation == kBroadcast || operation == kPingPong;
    if (i % 16 == 0 && operation != kBarrier) {
      wrong += count_wrong(operation, in_place ? in : out, out_count, rank, size, i + warm);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, seconds, repetitions, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) tell_row(who, operation, bytes, seconds, repetitions, all_wrong);
  free(in);
  free(out);
  free(seconds);
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int operation = 0; operation < kOperations; ++operation) {
    char ops[1024], wanted[64];
    snprintf(ops, sizeof ops, ",%s,", argv[3]);
    snprintf(wanted, sizeof wanted, ",%s,", kNames[operation]);
    if (strstr(ops, wanted) == NULL) continue;
    char sizes[1024];
    snprintf(sizes, sizeof sizes, "%s", operation == kBarrier ? "0" : argv[4]);
    for (char* one = strtok(sizes, ","); one != NULL; one = strtok(NULL, ",")) {
      run(argv[1], atof(argv[2]), operation, strtoul(one, NULL, 10));
    }
  }
  MPI_Finalize();
  return 0;
}
