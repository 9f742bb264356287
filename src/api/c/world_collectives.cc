// The C ABI of worlds: collectives. Each is begun by one function here; the exported twins wait for it, or give a
// request.

#include <string>
#include <vector>

#include "api/c/world_objects.h"

namespace hawser::api {
namespace {

Result<DataType> type_of(const char* call, int number) {
  if (number >= 0 && static_cast<std::size_t>(number) < kDataTypes) return static_cast<DataType>(number);
  return invalid(call, "type = " + std::to_string(number) + " is none of HAWSER_F64 to HAWSER_BOOL");
}

Result<ReduceOp> op_of(const char* call, int number) {
  if (number >= 0 && static_cast<std::size_t>(number) < kReduceOps) return static_cast<ReduceOp>(number);
  return invalid(call, "op = " + std::to_string(number) + " is none of HAWSER_SUM to HAWSER_XOR");
}

Result<Reducer> reducer_of(const char* call, const hawser_operation_options& options) {
  if (options.reducer == nullptr) return Reducer();
  HAWSER_TRY_ASSIGN(const hawser_reducer given,
                    options_of(call, "hawser_reducer", options.reducer, sizeof(hawser_reducer)));
  HAWSER_TRY(not_null(call, reinterpret_cast<const void*>(given.combine), "a reducer's `combine`"));
  if ((given.flags & ~HAWSER_REDUCER_COMMUTES) != 0) return invalid(call, "a reducer has flags that are not known");
  return Reducer{.combine = [combine = given.combine, context = given.context](
                                void* out, const void* first, const void* second,
                                std::size_t count) { combine(context, out, first, second, count); },
                 .name = given.name == nullptr ? std::string_view() : std::string_view(given.name),
                 .commutes = (given.flags & HAWSER_REDUCER_COMMUTES) != 0,
                 .element_bytes = given.element_bytes};
}

/// A function of the C ABI that begins a collective.
struct Caller {
  const char* name;
  bool waits;  ///< It returns once the collective has ended.

  operator const char*() const { return name; }  // NOLINT(google-explicit-constructor): as others take a caller.
};

/// Arguments of every collective: the world, what to combine and how, and the options.
struct Collective {
  Handles::Ref<WorldObject> world;
  DataType type;
  ReduceOp op;
  CollectiveOptions options;

  bool is_root(std::uint32_t root) const { return world->world.rank() == root; }
};

Result<Collective> collective(Caller call, hawser_world world, int type, int op,
                              const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const DataType elements, type_of(call, type));
  HAWSER_TRY_ASSIGN(const ReduceOp how, op_of(call, op));
  HAWSER_TRY_ASSIGN(const hawser_operation_options given, operation_options(call, options));
  HAWSER_TRY_ASSIGN(auto its, find<WorldObject>(call, world));
  HAWSER_TRY_ASSIGN(Compressor compress, compressor_of(call, given));
  HAWSER_TRY_ASSIGN(Reducer reducer, reducer_of(call, given));
  return Collective{.world = std::move(its),
                    .type = elements,
                    .op = how,
                    .options = {.timeout = Duration(given.timeout_ns),
                                .reproducible = given.flag != 0,
                                .compress = std::move(compress),
                                .reducer = std::move(reducer),
                                .is_waited_for = call.waits}};
}

/// One for each rank: the caller's, or `count` for all.
std::vector<std::uint64_t> counts_of(const World& world, std::size_t count, const uint64_t* counts) {
  if (counts == nullptr) return std::vector<std::uint64_t>(world.size(), count);
  return std::vector<std::uint64_t>(counts, counts + world.size());
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  return all;
}

Result<Request> barrier(Caller call, hawser_world world, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, HAWSER_U8, HAWSER_SUM, options));
  return its.world->world.ibarrier(its.options);
}

Result<Request> broadcast(Caller call, hawser_world world, void* data, std::size_t count, int type, std::uint32_t root,
                          const hawser_operation_options* options) {
  HAWSER_TRY(not_null(call, data, count, "data"));
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, HAWSER_SUM, options));
  return its.world->world.ibroadcast(data, count, its.type, root, its.options);
}

Result<Request> reduce(Caller call, hawser_world world, const void* in, void* out, std::size_t count, int type, int op,
                       std::uint32_t root, const hawser_operation_options* options) {
  HAWSER_TRY(not_null(call, in, count, "in"));
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, op, options));
  if (its.is_root(root)) HAWSER_TRY(not_null(call, out, count, "out"));
  return its.world->world.ireduce(in, out, count, its.type, its.op, root, its.options);
}

Result<Request> all_reduce(Caller call, hawser_world world, const void* in, void* out, std::size_t count, int type,
                           int op, const hawser_operation_options* options) {
  HAWSER_TRY(not_null(call, in, count, "in"));
  HAWSER_TRY(not_null(call, out, count, "out"));
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, op, options));
  return its.world->world.iall_reduce(in, out, count, its.type, its.op, its.options);
}

Result<std::vector<Request>> all_reduce_bucketed(Caller call, hawser_world world, const hawser_part* parts,
                                                 std::size_t count, int type, int op, std::size_t bucket_bytes,
                                                 const hawser_operation_options* options) {
  HAWSER_TRY(not_null(call, parts, count, "parts"));
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, op, options));
  const std::size_t bytes = size_of(its.type);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    HAWSER_TRY(not_null(call, parts[i].data, parts[i].size, "a part's data"));
    if (parts[i].size % bytes != 0) {
      return invalid(call.name, "part " + std::to_string(i) + " has " + std::to_string(parts[i].size) +
                                    " bytes, which are no whole elements");
    }
    tensors.push_back({parts[i].data, parts[i].size / bytes});
  }
  return its.world->world.iall_reduce_bucketed(tensors, its.type, its.op,
                                               bucket_bytes == 0 ? kBucketBytes : bucket_bytes, its.options);
}

Result<Request> all_gather(Caller call, hawser_world world, const void* in, void* out, std::size_t count,
                           const uint64_t* counts, int type, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, HAWSER_SUM, options));
  World& there = its.world->world;
  const std::vector<std::uint64_t> all = counts_of(there, count, counts);
  HAWSER_TRY(not_null(call, in, all[there.rank()], "in"));
  HAWSER_TRY(not_null(call, out, sum_of(all), "out"));
  return there.iall_gather(in, out, all, its.type, its.options);
}

Result<Request> reduce_scatter(Caller call, hawser_world world, const void* in, void* out, std::size_t count,
                               const uint64_t* counts, int type, int op, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, op, options));
  World& there = its.world->world;
  const std::vector<std::uint64_t> all = counts_of(there, count, counts);
  HAWSER_TRY(not_null(call, in, sum_of(all), "in"));
  HAWSER_TRY(not_null(call, out, all[there.rank()], "out"));
  return there.ireduce_scatter(in, out, all, its.type, its.op, its.options);
}

Result<Request> gather(Caller call, hawser_world world, const void* in, void* out, std::size_t count,
                       const uint64_t* counts, int type, std::uint32_t root, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, HAWSER_SUM, options));
  World& there = its.world->world;
  const std::vector<std::uint64_t> all = counts_of(there, count, counts);
  HAWSER_TRY(not_null(call, in, all[there.rank()], "in"));
  if (its.is_root(root)) HAWSER_TRY(not_null(call, out, sum_of(all), "out"));
  return there.igather(in, out, all, its.type, root, its.options);
}

Result<Request> scatter(Caller call, hawser_world world, const void* in, void* out, std::size_t count,
                        const uint64_t* counts, int type, std::uint32_t root, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, HAWSER_SUM, options));
  World& there = its.world->world;
  const std::vector<std::uint64_t> all = counts_of(there, count, counts);
  if (its.is_root(root)) HAWSER_TRY(not_null(call, in, sum_of(all), "in"));
  HAWSER_TRY(not_null(call, out, all[there.rank()], "out"));
  return there.iscatter(in, out, all, its.type, root, its.options);
}

Result<Request> all_to_all(Caller call, hawser_world world, const void* in, void* out, std::size_t count,
                           const uint64_t* out_counts, const uint64_t* in_counts, int type,
                           const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, HAWSER_SUM, options));
  World& there = its.world->world;
  const std::vector<std::uint64_t> sends = counts_of(there, count, out_counts),
                                   gets = counts_of(there, count, in_counts);
  HAWSER_TRY(not_null(call, in, sum_of(sends), "in"));
  HAWSER_TRY(not_null(call, out, sum_of(gets), "out"));
  if (out_counts == nullptr && in_counts == nullptr) return there.iall_to_all(in, out, count, its.type, its.options);
  return there.iall_to_all(in, out, sends, gets, its.type, its.options);
}

Result<Request> scan(Caller call, hawser_world world, const void* in, void* out, std::size_t count, int type, int op,
                     bool exclusive, const hawser_operation_options* options) {
  HAWSER_TRY(not_null(call, in, count, "in"));
  HAWSER_TRY(not_null(call, out, count, "out"));
  HAWSER_TRY_ASSIGN(Collective its, collective(call, world, type, op, options));
  return its.world->world.iscan(in, out, count, its.type, its.op, exclusive, its.options);
}

/// `begin(call)` is one of those above.
template <typename Begin>
int now(const char* name, Begin begin) {
  return run(name, [&](const char* call) -> Status { return finish(begin(Caller{call, true})); });
}

template <typename Begin>
int later(const char* name, hawser_request* request, Begin begin) {
  return run(name, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, request, "request"));
    return hand_out(call, begin(Caller{call, false}), request);
  });
}

}  // namespace
}  // namespace hawser::api

namespace api = hawser::api;
using Options = hawser_operation_options;

int hawser_world_barrier(hawser_world world, const Options* options) {
  return api::now(__func__, [&](api::Caller call) { return api::barrier(call, world, options); });
}
int hawser_world_ibarrier(hawser_world world, const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) { return api::barrier(call, world, options); });
}

int hawser_world_broadcast(hawser_world world, void* data, size_t count, int type, uint32_t root,
                           const Options* options) {
  return api::now(__func__,
                  [&](api::Caller call) { return api::broadcast(call, world, data, count, type, root, options); });
}
int hawser_world_ibroadcast(hawser_world world, void* data, size_t count, int type, uint32_t root,
                            const Options* options, hawser_request* request) {
  return api::later(__func__, request,
                    [&](api::Caller call) { return api::broadcast(call, world, data, count, type, root, options); });
}

int hawser_world_reduce(hawser_world world, const void* in, void* out, size_t count, int type, int op, uint32_t root,
                        const Options* options) {
  return api::now(__func__,
                  [&](api::Caller call) { return api::reduce(call, world, in, out, count, type, op, root, options); });
}
int hawser_world_ireduce(hawser_world world, const void* in, void* out, size_t count, int type, int op, uint32_t root,
                         const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) {
    return api::reduce(call, world, in, out, count, type, op, root, options);
  });
}

int hawser_world_all_reduce(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                            const Options* options) {
  return api::now(__func__,
                  [&](api::Caller call) { return api::all_reduce(call, world, in, out, count, type, op, options); });
}
int hawser_world_iall_reduce(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                             const Options* options, hawser_request* request) {
  return api::later(__func__, request,
                    [&](api::Caller call) { return api::all_reduce(call, world, in, out, count, type, op, options); });
}

int hawser_world_all_reduce_bucketed(hawser_world world, const hawser_part* parts, size_t count, int type, int op,
                                     size_t bucket_bytes, const Options* options) {
  return api::run(__func__, [&](const char* call) -> hawser::Status {
    HAWSER_TRY_ASSIGN(std::vector<hawser::Request> begun,
                      api::all_reduce_bucketed({call, false}, world, parts, count, type, op, bucket_bytes, options));
    hawser::Status first;
    for (hawser::Request& request : begun) {
      const hawser::Status status = request.wait(hawser::Duration::max());
      if (first.ok()) first = status;
    }
    return first;
  });
}
int hawser_world_iall_reduce_bucketed(hawser_world world, const hawser_part* parts, size_t count, int type, int op,
                                      size_t bucket_bytes, const Options* options, hawser_request* requests,
                                      size_t capacity, size_t* begun) {
  return api::run(__func__, [&](const char* call) -> hawser::Status {
    HAWSER_TRY(api::not_null(call, requests, capacity, "requests"));
    HAWSER_TRY(api::not_null(call, begun, "begun"));
    if (capacity < count) {
      return api::invalid(
          call, "there is room for " + std::to_string(capacity) + " requests; the parts are " + std::to_string(count));
    }
    HAWSER_TRY_ASSIGN(std::vector<hawser::Request> all,
                      api::all_reduce_bucketed({call, false}, world, parts, count, type, op, bucket_bytes, options));
    *begun = 0;
    for (hawser::Request& request : all) {
      HAWSER_TRY(api::hand_out(call, std::move(request), &requests[*begun]));
      ++*begun;
    }
    return {};
  });
}

int hawser_world_all_gather(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts,
                            int type, const Options* options) {
  return api::now(
      __func__, [&](api::Caller call) { return api::all_gather(call, world, in, out, count, counts, type, options); });
}
int hawser_world_iall_gather(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts,
                             int type, const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) {
    return api::all_gather(call, world, in, out, count, counts, type, options);
  });
}

int hawser_world_reduce_scatter(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts,
                                int type, int op, const Options* options) {
  return api::now(__func__, [&](api::Caller call) {
    return api::reduce_scatter(call, world, in, out, count, counts, type, op, options);
  });
}
int hawser_world_ireduce_scatter(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts,
                                 int type, int op, const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) {
    return api::reduce_scatter(call, world, in, out, count, counts, type, op, options);
  });
}

int hawser_world_gather(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts, int type,
                        uint32_t root, const Options* options) {
  return api::now(__func__, [&](api::Caller call) {
    return api::gather(call, world, in, out, count, counts, type, root, options);
  });
}
int hawser_world_igather(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts, int type,
                         uint32_t root, const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) {
    return api::gather(call, world, in, out, count, counts, type, root, options);
  });
}

int hawser_world_scatter(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts, int type,
                         uint32_t root, const Options* options) {
  return api::now(__func__, [&](api::Caller call) {
    return api::scatter(call, world, in, out, count, counts, type, root, options);
  });
}
int hawser_world_iscatter(hawser_world world, const void* in, void* out, size_t count, const uint64_t* counts, int type,
                          uint32_t root, const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) {
    return api::scatter(call, world, in, out, count, counts, type, root, options);
  });
}

int hawser_world_all_to_all(hawser_world world, const void* in, void* out, size_t count, const uint64_t* out_counts,
                            const uint64_t* in_counts, int type, const Options* options) {
  return api::now(__func__, [&](api::Caller call) {
    return api::all_to_all(call, world, in, out, count, out_counts, in_counts, type, options);
  });
}
int hawser_world_iall_to_all(hawser_world world, const void* in, void* out, size_t count, const uint64_t* out_counts,
                             const uint64_t* in_counts, int type, const Options* options, hawser_request* request) {
  return api::later(__func__, request, [&](api::Caller call) {
    return api::all_to_all(call, world, in, out, count, out_counts, in_counts, type, options);
  });
}

int hawser_world_scan(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                      const Options* options) {
  return api::now(__func__,
                  [&](api::Caller call) { return api::scan(call, world, in, out, count, type, op, false, options); });
}
int hawser_world_iscan(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                       const Options* options, hawser_request* request) {
  return api::later(__func__, request,
                    [&](api::Caller call) { return api::scan(call, world, in, out, count, type, op, false, options); });
}

int hawser_world_exclusive_scan(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                const Options* options) {
  return api::now(__func__,
                  [&](api::Caller call) { return api::scan(call, world, in, out, count, type, op, true, options); });
}
int hawser_world_iexclusive_scan(hawser_world world, const void* in, void* out, size_t count, int type, int op,
                                 const Options* options, hawser_request* request) {
  return api::later(__func__, request,
                    [&](api::Caller call) { return api::scan(call, world, in, out, count, type, op, true, options); });
}
