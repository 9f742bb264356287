// Worlds: ranks that send messages and run collective operations.

#include <hawser/config.h>
#include <hawser/world.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <list>
#include <utility>

#include "api/python/let_go.h"
#include "api/python/objects.h"
#include "api/with_strides.h"

namespace hawser::api::python {
namespace {

using Array = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Source = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// An operation and the arrays that it uses.
struct Flight {
  Request request;
  std::vector<Source> arrays;
  nb::object keep;  ///< As the arrays.
};

struct WorldState {
  WorldState(World its, bool is_driven) : world(std::move(its)), driven(is_driven) {}
  ~WorldState() {
    if (forks != Exit::of_module().forks()) return;
    outside([&] {
      for (Flight& flight : left) flight.request.cancel();
      constexpr Duration kPatience = std::chrono::milliseconds(200);
      if (!closed) (void)world.close(kPatience);
      left.clear();
      world = World();  // Here, too, handlers that run are waited for, which need the lock.
      return 0;
    });
  }
  /// An operation under way that nobody holds any more keeps its arrays. Its error goes to the log: raised by the next
  /// call, it would keep this rank out of a collective that the others begin.
  void look_after() {
    std::vector<Status> failed;
    for (auto at = left.begin(); at != left.end();) {
      if (!at->request.done()) {
        ++at;
        continue;
      }
      if (Status status = at->request.status(); !status.ok()) failed.push_back(std::move(status));
      at = left.erase(at);
    }
    for (const Status& status : failed) {
      const nb::object log = nb::module_::import_("logging").attr("getLogger")("hawser");
      log.attr("warning")("an operation of a world, whose request was dropped, failed: %s", status.to_string());
    }
  }

  World world;
  const bool driven;  ///< A thread of the library makes its progress.
  std::list<Flight> left;
  bool closed = false;
  const int forks = Exit::of_module().forks();
};
using WorldRef = std::shared_ptr<WorldState>;

struct WorldHandle {
  WorldRef state;
  bool waits = false;  ///< The caller of a collective waits for it as soon as it has begun.
};

struct RequestHandle {
  RequestHandle(WorldRef its_world, Flight its) : world(std::move(its_world)), flight(std::move(its)) {}
  RequestHandle(RequestHandle&&) noexcept = default;
  RequestHandle& operator=(RequestHandle&&) = delete;
  ~RequestHandle() {
    const bool is_forked = world && world->forks != Exit::of_module().forks();
    if (!world || is_forked || flight.request.done()) return;
    // The caller may have said that it waits, and was interrupted: the world's own thread looks after it from now on.
    (void)outside([&] { return flight.request.wait(Duration::zero()).ok(); });
    world->left.push_back(std::move(flight));
  }
  WorldRef world;
  Flight flight;
  bool is_receive = false;
  bool is_call = false;
};

/// A function of Python's that answers calls, on threads of the library.
class PythonHandler {
 public:
  explicit PythonHandler(nb::handle function) : function_(function.inc_ref().ptr()) {}
  ~PythonHandler() { LetGo::later(function_); }
  PythonHandler(const PythonHandler&) = delete;
  PythonHandler& operator=(const PythonHandler&) = delete;

  Result<CallAnswer> call(const IncomingCall& incoming) const {
    const Inside inside;
    if (!inside.granted()) return Status(Code::kCancelled, "the interpreter of this rank is at its end");
    try {
      const nb::bytes arguments(reinterpret_cast<const char*>(incoming.arguments.data()), incoming.arguments.size());
      const nb::object answer = nb::handle(function_)(incoming.source, arguments);
      const Bytes bytes(answer, "an answer");
      const auto* const data = reinterpret_cast<const std::byte*>(bytes.view.data());
      return CallAnswer(data, data + bytes.view.size());
    } catch (const std::exception& error) {
      return Status(Code::kFailed, error.what());
    }
  }

  nb::handle function() const { return function_; }

 private:
  PyObject* function_;
};

void check_not_forked(const WorldState& state) {
  if (state.forks != Exit::of_module().forks()) raise_invalid("World: it was opened by the parent of this process");
}

World& world_of(const WorldHandle& self) {
  WorldState& state = *self.state;
  check_not_forked(state);
  state.look_after();
  return state.world;
}

/// What `from` holds, where it is contiguous memory and so its elements are why it was not taken.
std::optional<std::string> odd_elements(nb::handle from, bool writes) {
  Py_buffer view;
  if (PyObject_CheckBuffer(from.ptr()) == 0) return std::nullopt;
  if (PyObject_GetBuffer(from.ptr(), &view, PyBUF_ND) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const bool is_read_only = view.readonly != 0;
  PyBuffer_Release(&view);
  if (writes && is_read_only) return std::nullopt;
  return nb::cast<std::string>(nb::str(nb::getattr(from, "dtype", nb::str("an unknown type"))));
}

template <typename Kind>
Kind array_of(nb::handle from, const char* call, const char* what) {
  check_not_lazy(from, std::string(call) + ": " + what);
  Kind array;
  if (nb::try_cast<Kind>(with_strides(from), array, false)) return array;
  PyErr_Clear();
  if (const auto held = odd_elements(from, std::is_same_v<Kind, Array>)) {
    raise_invalid(std::string(call) + ": " + what + " holds elements of type " + *held + ", which are not moved here",
                  "give numbers in this machine's byte order, or the bytes: x.view('u1')");
  }
  raise_invalid(std::string(call) + ": " + what + " is no C-contiguous array in host memory" +
                    (std::is_same_v<Kind, Array> ? " that can be written" : ""),
                "give a numpy array, a tensor on the CPU, or a buffer");
}

DataType type_of(const nb::dlpack::dtype& type, const char* call) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  const auto one_of = [&](std::initializer_list<std::pair<int, DataType>> all) -> std::optional<DataType> {
    for (const auto& [bits, is] : all) {
      if (bits == type.bits && type.lanes == 1) return is;
    }
    return std::nullopt;
  };
  std::optional<DataType> found;
  if (code == Code::Float) {
    found = one_of({{64, DataType::kFloat64}, {32, DataType::kFloat32}, {16, DataType::kFloat16}});
  } else if (code == Code::Bfloat) {
    found = one_of({{16, DataType::kBFloat16}});
  } else if (code == Code::Int) {
    found = one_of({{8, DataType::kInt8}, {16, DataType::kInt16}, {32, DataType::kInt32}, {64, DataType::kInt64}});
  } else if (code == Code::UInt) {
    found = one_of({{8, DataType::kUInt8}, {16, DataType::kUInt16}, {32, DataType::kUInt32}, {64, DataType::kUInt64}});
  } else if (code == Code::Bool) {
    found = one_of({{8, DataType::kBool}});
  }
  if (!found) raise_invalid(std::string(call) + ": elements of the array's type are not moved or combined here");
  return *found;
}

ReduceOp op_of(const std::string& name, const char* call) {
  for (std::size_t i = 0; i < kReduceOps; ++i) {
    if (to_string(static_cast<ReduceOp>(i)) == name) return static_cast<ReduceOp>(i);
  }
  raise_invalid(std::string(call) + ": there is no op '" + name + "'", "sum, prod, min, max, avg, and, or, xor");
}

/// Where the elements are, how many, and of what type.
struct Elements {
  Elements(const Source& from, const char* call)
      : data(from.data()), count(from.size()), type(type_of(from.dtype(), call)) {}
  const void* data;
  std::uint64_t count;
  DataType type;
};

Source readable(const Array& array) { return Source(array); }
void* writable(const Elements& elements) { return const_cast<void*>(elements.data); }

void same_type(const Elements& a, const Elements& b, const char* call) {
  if (a.type == b.type) return;
  raise_invalid(std::string(call) + ": one array holds " + std::string(to_string(a.type)) + ", the other " +
                std::string(to_string(b.type)));
}

void has_count(const Elements& elements, std::uint64_t count, const char* call, const char* what) {
  if (elements.count == count) return;
  raise_invalid(std::string(call) + ": " + what + " holds " + std::to_string(elements.count) + " elements, not " +
                std::to_string(count));
}

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  return all;
}

std::uint64_t share(std::uint64_t count, std::uint32_t size, const char* call, const char* what) {
  if (count % size == 0) return count / size;
  raise_invalid(std::string(call) + ": the " + std::to_string(count) + " elements of " + what +
                    " are no multiple of the " + std::to_string(size) + " ranks",
                "the calls with a v take a count for each rank");
}

/// Given counts, or the same for all.
std::vector<std::uint64_t> counts_of(const std::optional<std::vector<std::uint64_t>>& given, std::uint64_t each,
                                     std::uint32_t size) {
  return given ? *given : std::vector<std::uint64_t>(size, each);
}

/// The deadline of an operation. To the library zero is none: a caller's zero is over at once.
Duration deadline_of(nb::handle timeout) {
  if (timeout.is_none()) return Duration::zero();
  return std::max(duration_of(timeout, "timeout", Duration::zero()), Duration(1));
}

CollectiveOptions options_of(const WorldHandle& self, nb::handle timeout, bool reproducible = false) {
  return {.timeout = deadline_of(timeout), .reproducible = reproducible, .is_waited_for = self.waits};
}

Compressor compressor_of(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<Compressor>(given)) return nb::cast<Compressor>(given);
  raise_invalid("all_reduce: compress is no hawser.Compressor");
}

template <typename Begin>
RequestHandle fly(const WorldHandle& self, std::vector<Source> arrays, Begin begin) {
  World& world = world_of(self);
  Request request = outside([&] { return begin(world); });
  return {self.state, Flight{std::move(request), std::move(arrays), {}}};
}

// ---- Calls that begin something.

bool is_list(nb::handle x) { return nb::isinstance<nb::list>(x) || nb::isinstance<nb::tuple>(x); }

/// Of a message that is a list of arrays. `arrays` keeps them.
template <typename Kind, typename Byte>
std::vector<std::span<Byte>> parts_of(nb::handle x, const char* call, std::vector<Source>& arrays) {
  std::vector<std::span<Byte>> parts;
  for (const nb::handle each : x) {
    const auto array = array_of<Kind>(each, call, "an element of x");
    parts.emplace_back(static_cast<Byte*>(array.data()), array.nbytes());
    arrays.emplace_back(array);
  }
  return parts;
}

RequestHandle isend(const WorldHandle& self, nb::handle x, Whole<std::uint32_t, "send: dest"> dest,
                    Whole<std::uint64_t, "send: tag"> tag, const std::string& priority, nb::handle timeout) {
  const MessageOptions options{.timeout = deadline_of(timeout), .priority = priority_of("send", priority)};
  if (is_list(x)) {
    std::vector<Source> arrays;
    const auto parts = parts_of<Source, const std::byte>(x, "send", arrays);
    return fly(self, std::move(arrays), [&](World& world) { return world.isend_parts(parts, dest, tag, options); });
  }
  const auto array = array_of<Source>(x, "send", "x");
  const std::span bytes(static_cast<const std::byte*>(array.data()), array.nbytes());
  return fly(self, {array}, [&](World& world) { return world.isend(bytes, dest, tag, options); });
}

RequestHandle irecv(const WorldHandle& self, nb::handle x, MaybeWhole<std::uint32_t, "recv: source"> source,
                    MaybeWhole<std::uint64_t, "recv: tag"> tag, bool exact, nb::handle timeout) {
  const std::uint32_t from = source.value_or(kAnySource);
  const MessageOptions options{.timeout = deadline_of(timeout), .exact = exact};
  const auto begin = [&]() -> RequestHandle {
    if (x.is_none()) {
      return fly(self, {}, [&](World& world) { return world.ireceive_any_size(from, tag, options); });
    }
    if (is_list(x)) {
      std::vector<Source> arrays;
      const auto parts = parts_of<Array, std::byte>(x, "recv", arrays);
      return fly(self, std::move(arrays),
                 [&](World& world) { return world.ireceive_parts(parts, from, tag, options); });
    }
    const auto array = array_of<Array>(x, "recv", "x");
    const std::span bytes(static_cast<std::byte*>(array.data()), array.nbytes());
    return fly(self, {readable(array)}, [&](World& world) { return world.ireceive(bytes, from, tag, options); });
  };
  RequestHandle made = begin();
  made.is_receive = true;
  return made;
}

RequestHandle ibarrier(const WorldHandle& self, nb::handle timeout) {
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {}, [&](World& world) { return world.ibarrier(options); });
}

RequestHandle iall_reduce(const WorldHandle& self, nb::handle x, const std::string& op, nb::handle out,
                          bool reproducible, nb::handle compress, nb::handle timeout) {
  const char* const call = "all_reduce";
  const Source from = out.is_none() ? readable(array_of<Array>(x, call, "x")) : array_of<Source>(x, call, "x");
  const Source to = out.is_none() ? from : readable(array_of<Array>(out, call, "out"));
  const Elements input(from, call), output(to, call);
  same_type(input, output, call);
  has_count(output, input.count, call, "out");
  const ReduceOp kind = op_of(op, call);
  CollectiveOptions options = options_of(self, timeout, reproducible);
  options.compress = compressor_of(compress);
  return fly(self, {from, to}, [&](World& world) {
    return world.iall_reduce(input.data, writable(output), input.count, input.type, kind, options);
  });
}

/// Arrays of one type that follow one another; a request for each bucket.
std::vector<RequestHandle> iall_reduce_bucketed(const WorldHandle& self, nb::handle arrays, const std::string& op,
                                                Whole<std::size_t, "all_reduce: bucket"> bucket, bool reproducible,
                                                nb::handle timeout) {
  const char* const call = "all_reduce";
  const ReduceOp kind = op_of(op, call);
  const CollectiveOptions options = options_of(self, timeout, reproducible);
  std::vector<Source> all;
  for (const nb::handle each : arrays) all.push_back(readable(array_of<Array>(each, call, "an element of x")));
  std::vector<RequestHandle> handles;
  World& world = world_of(self);
  for (std::size_t begin = 0; begin < all.size();) {
    std::vector<hawser::Tensor> tensors;
    const DataType type = Elements(all[begin], call).type;
    const std::size_t first = begin;
    for (; begin < all.size() && Elements(all[begin], call).type == type; ++begin) {
      const Elements elements(all[begin], call);
      tensors.push_back({writable(elements), elements.count});
    }
    const std::vector<Source> keep(all.begin() + static_cast<std::ptrdiff_t>(first),
                                   all.begin() + static_cast<std::ptrdiff_t>(begin));
    std::vector<Request> requests =
        outside([&] { return world.iall_reduce_bucketed(tensors, type, kind, bucket, options); });
    for (Request& request : requests) handles.emplace_back(self.state, Flight{std::move(request), keep, {}});
  }
  return handles;
}

RequestHandle ireduce(const WorldHandle& self, nb::handle x, Whole<std::uint32_t, "reduce: root"> root,
                      const std::string& op, nb::handle timeout) {
  const Source array = readable(array_of<Array>(x, "reduce", "x"));
  const Elements elements(array, "reduce");
  const ReduceOp kind = op_of(op, "reduce");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {array}, [&](World& world) {
    void* const out = world.rank() == root ? writable(elements) : nullptr;
    return world.ireduce(elements.data, out, elements.count, elements.type, kind, root, options);
  });
}

RequestHandle ibroadcast(const WorldHandle& self, nb::handle x, Whole<std::uint32_t, "broadcast: root"> root,
                         nb::handle timeout) {
  const Source array = readable(array_of<Array>(x, "broadcast", "x"));
  const Elements elements(array, "broadcast");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {array}, [&](World& world) {
    return world.ibroadcast(writable(elements), elements.count, elements.type, root, options);
  });
}

using Counts = MaybeWholes<std::uint64_t, "a count of elements">;

RequestHandle iall_gather(const WorldHandle& self, nb::handle out, nb::handle x, const Counts& counts,
                          nb::handle timeout) {
  const char* const call = "all_gather";
  const Source to = readable(array_of<Array>(out, call, "out")), from = array_of<Source>(x, call, "x");
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const World& world = world_of(self);
  const std::vector<std::uint64_t> all = counts_of(counts, input.count, world.size());
  has_count(output, sum(all), call, "out");
  if (all.size() == world.size()) has_count(input, all[world.rank()], call, "x");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {to, from},
             [&](World& its) { return its.iall_gather(input.data, writable(output), all, input.type, options); });
}

RequestHandle ireduce_scatter(const WorldHandle& self, nb::handle out, nb::handle x, const std::string& op,
                              const Counts& counts, bool reproducible, nb::handle timeout) {
  const char* const call = "reduce_scatter";
  const Source to = readable(array_of<Array>(out, call, "out")), from = array_of<Source>(x, call, "x");
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const World& world = world_of(self);
  const std::vector<std::uint64_t> all = counts_of(counts, output.count, world.size());
  has_count(input, sum(all), call, "x");
  if (all.size() == world.size()) has_count(output, all[world.rank()], call, "out");
  const ReduceOp kind = op_of(op, call);
  const CollectiveOptions options = options_of(self, timeout, reproducible);
  return fly(self, {to, from}, [&](World& its) {
    return its.ireduce_scatter(input.data, writable(output), all, input.type, kind, options);
  });
}

RequestHandle igather(const WorldHandle& self, nb::handle out, nb::handle x, Whole<std::uint32_t, "gather: root"> root,
                      const Counts& counts, nb::handle timeout) {
  const char* const call = "gather";
  const World& world = world_of(self);
  const bool is_root = world.rank() == root;
  const Source from = array_of<Source>(x, call, "x");
  const Source to = is_root ? readable(array_of<Array>(out, call, "out")) : from;
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const std::vector<std::uint64_t> all = counts_of(counts, input.count, world.size());
  if (is_root) has_count(output, sum(all), call, "out");
  if (all.size() == world.size()) has_count(input, all[world.rank()], call, "x");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {to, from}, [&](World& its) {
    return its.igather(input.data, is_root ? writable(output) : nullptr, all, input.type, root, options);
  });
}

RequestHandle iscatter(const WorldHandle& self, nb::handle out, nb::handle x,
                       Whole<std::uint32_t, "scatter: root"> root, const Counts& counts, nb::handle timeout) {
  const char* const call = "scatter";
  const World& world = world_of(self);
  const bool is_root = world.rank() == root;
  const Source to = readable(array_of<Array>(out, call, "out"));
  const Source from = is_root ? array_of<Source>(x, call, "x") : to;
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const std::vector<std::uint64_t> all = counts_of(counts, output.count, world.size());
  if (is_root) has_count(input, sum(all), call, "x");
  if (all.size() == world.size()) has_count(output, all[world.rank()], call, "out");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {to, from}, [&](World& its) {
    return its.iscatter(is_root ? input.data : nullptr, writable(output), all, output.type, root, options);
  });
}

RequestHandle iall_to_all(const WorldHandle& self, nb::handle out, nb::handle x, const Counts& out_counts,
                          const Counts& in_counts, nb::handle timeout) {
  const char* const call = "all_to_all";
  const Source to = readable(array_of<Array>(out, call, "out")), from = array_of<Source>(x, call, "x");
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const std::uint32_t size = world_of(self).size();
  const auto come = out_counts ? *out_counts : counts_of({}, share(output.count, size, call, "out"), size);
  const auto go = in_counts ? *in_counts : counts_of({}, share(input.count, size, call, "x"), size);
  has_count(output, sum(come), call, "out");
  has_count(input, sum(go), call, "x");
  const CollectiveOptions options = options_of(self, timeout);
  if (!out_counts && !in_counts && input.count == output.count) {
    return fly(self, {to, from},
               [&](World& its) { return its.iall_to_all(input.data, writable(output), go[0], input.type, options); });
  }
  return fly(self, {to, from},
             [&](World& its) { return its.iall_to_all(input.data, writable(output), go, come, input.type, options); });
}

RequestHandle iscan(const WorldHandle& self, nb::handle x, const std::string& op, bool exclusive, nb::handle timeout) {
  const Source array = readable(array_of<Array>(x, "scan", "x"));
  const Elements elements(array, "scan");
  const ReduceOp kind = op_of(op, "scan");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {array}, [&](World& world) {
    return world.iscan(elements.data, writable(elements), elements.count, elements.type, kind, exclusive, options);
  });
}

// ---- Requests.

nb::object result_of(const RequestHandle& self) {
  const Request& request = self.flight.request;
  check(request.status());
  const std::span<const std::byte> bytes = request.bytes();
  if (self.is_call) return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!self.is_receive) return nb::none();
  const Received got = request.received();
  return nb::make_tuple(got.source, got.tag, got.bytes,
                        nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

nb::object wait(RequestHandle& self, nb::handle timeout) {
  Request& request = self.flight.request;
  if (!request.done()) check_not_forked(*self.world);
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        if (!request.done()) (void)request.wait(slice);
        return request.done();
      });
  if (!over) throw nb::python_error();
  if (!*over) raise(Status(Code::kTimedOut, "Request.wait: not over yet; the operation goes on"));
  return result_of(self);
}

/// Over? Where no thread makes the world's progress, this makes some.
bool look(RequestHandle& self) {
  Request& request = self.flight.request;
  if (request.done()) return true;
  check_not_forked(*self.world);
  constexpr Duration kTurn = std::chrono::microseconds(1);
  if (!self.world->driven) (void)outside([&] { return request.wait(kTurn); });
  return request.done();
}

// ---- Worlds.

WorldOptions world_options(const std::string& name, nb::handle directory, nb::handle backends, nb::handle timeout) {
  ConfigSources sources = ConfigSources::from_process();
  if (!backends.is_none()) {
    std::string all;
    for (nb::handle one : nb::iter(backends)) {
      all += (all.empty() ? "" : ",") + std::string(Bytes(one, "a backend").view);
    }
    sources.overrides["backends"] = all;
  }
  const DirectoryHandle* shared = nullptr;
  if (PyUnicode_Check(directory.ptr())) {
    sources.overrides["directory"] = std::string(Bytes(directory, "directory").view);
  } else if (!directory.is_none() && !nb::try_cast(directory, shared)) {
    raise_invalid("World: directory is neither a Directory nor a text", "give file_directory(PATH), or file:/path");
  }
  const LoadedConfig config = take(outside([&] { return load_config(sources); }));
  WorldOptions options;
  options.name = name;
  for (const ConfigValue& each : config.values) options.origins[each.name] = each.origin;
  options.agent = config.options;
  options.cost_model = config.cost_model;
  if (shared != nullptr) options.agent.directory = shared->directory;
  options.join_timeout = duration_of(timeout, "timeout", options.join_timeout);
  return options;
}

RecoveryPolicy policy_of(const std::string& name) {
  if (name == "manual") return RecoveryPolicy::kManual;
  if (name == "automatic") return RecoveryPolicy::kAutomatic;
  if (name == "abort") return RecoveryPolicy::kAbort;
  raise_invalid("World: recovery '" + name + "' is none of manual, automatic and abort");
}

std::optional<Quorum> quorum_of(const std::optional<std::string>& given) {
  if (!given) return std::nullopt;
  const std::string& name = *given;
  if (name == "majority") return Quorum::kMajority;
  if (name == "none") return Quorum::kNone;
  raise_invalid("World: quorum '" + name + "' is none of none and majority");
}

BufferPool pool_of(nb::handle given, const char* call) {
  if (given.is_none()) return {};
  if (nb::isinstance<BufferPool>(given)) return nb::cast<BufferPool>(given);
  raise_invalid(std::string(call) + ": pool is no hawser.BufferPool");
}

nb::list local(Whole<std::uint32_t, "World.local: size"> size, const std::string& name, nb::handle backends,
               nb::handle timeout, const std::string& topology, const std::optional<std::string>& quorum,
               const std::string& recovery, const std::optional<std::string>& cost_model, nb::handle pool) {
  WorldOptions options = world_options(name, nb::none(), backends, timeout);
  options.pool = pool_of(pool, "World.local");
  options.topology = take(parse_topology(topology));
  options.quorum = quorum_of(quorum);
  options.recovery = policy_of(recovery);
  if (cost_model) options.cost_model = *cost_model;
  nb::list all;
  for (World& world : take(outside([&] { return World::local(size, options); }))) {
    all.append(WorldHandle{std::make_shared<WorldState>(std::move(world), true)});
  }
  return all;
}

/// Holds values under keys, as torch.distributed.Store does: set(key, bytes), wait([keys], timedelta), get(key).
WorldStore store_of(nb::handle store) {
  const auto held = std::make_shared<PythonHandler>(store);
  const auto failed = [](const char* what, const std::exception& error) {
    return Status(Code::kFailed, std::string("the store's ") + what + " raised: " + error.what());
  };
  const Status gone(Code::kCancelled, "the interpreter is at its end");
  WorldStore made;
  made.set = [held, failed, gone](const std::string& key, const std::string& value) {
    const Inside inside;
    if (!inside.granted()) return gone;
    try {
      held->function().attr("set")(key, nb::bytes(value.data(), value.size()));
      return Status();
    } catch (const std::exception& error) {
      return failed("set", error);
    }
  };
  made.get = [held, gone](const std::string& key, Duration timeout) -> Result<std::string> {
    const Inside inside;
    if (!inside.granted()) return gone;
    try {
      const double seconds = std::chrono::duration<double>(timeout).count();
      const nb::object span = nb::module_::import_("datetime").attr("timedelta")(nb::arg("seconds") = seconds);
      nb::list keys;
      keys.append(key);
      held->function().attr("wait")(keys, span);
      return std::string(Bytes(held->function().attr("get")(key), "the store's value").view);
    } catch (const std::exception& error) {
      return Status(Code::kTimedOut, std::string("the store has no '") + key + "': " + error.what());
    }
  };
  return made;
}

/// An agent of the program's, and the peers behind the ranks.
struct Guest {
  AgentRef agent;
  std::vector<Peer> ranks;
};

Guest guest_of(nb::handle agent, nb::handle peers) {
  const AgentHandle* its = nullptr;
  if (agent.is_none() || !nb::try_cast(agent, its)) {
    raise_invalid(agent.is_none() ? "World.open: peers are given, and no agent that knows them"
                                  : "World.open: agent is no hawser.Agent");
  }
  Guest guest{.agent = its->state, .ranks = {}};
  (void)agent_of(guest.agent);  // Of this process.
  for (const nb::handle each : nb::iter(peers)) {
    const PeerHandle* peer = nullptr;
    if (!each.is_none() && !nb::try_cast(each, peer)) {
      raise_invalid("World.open: an element of peers is no hawser.Peer", "at this rank's place there may be None");
    }
    guest.ranks.push_back(peer == nullptr ? Peer() : peer->peer);
  }
  return guest;
}

/// Under torchrun, where nothing says where the ranks meet: torchrun's own store, or, without torch, a seed of rank 0.
/// `make` gives the store, or None.
void meet_by_torchrun(WorldOptions& options, nb::handle make) {
  const nb::object store = make.is_none() ? nb::object(nb::none()) : make();
  if (!store.is_none()) {
    options.store = store_of(store);
    return;
  }
  const ConfigSources sources = ConfigSources::from_process();
  options.seed = launched_meeting(sources);
  options.serves_seed = !options.seed.empty();
  const auto token = sources.environment.find("HAWSER_TOKEN_FILE");
  const bool has_token = token != sources.environment.end() && options.token_file.empty();
  if (options.serves_seed && has_token) options.token_file = token->second;
}

WorldHandle open_world(MaybeWhole<std::uint32_t, "World.open: size"> size,
                       MaybeWhole<std::uint32_t, "World.open: rank"> rank, nb::handle directory,
                       const std::optional<std::string>& name, nb::handle backends, bool driven, nb::handle timeout,
                       nb::handle store, const std::optional<std::string>& seed,
                       const std::optional<std::string>& token_file, const std::optional<std::string>& topology,
                       const std::optional<std::string>& quorum, const std::string& recovery,
                       const std::optional<std::string>& cost_model, nb::handle agent, nb::handle peers,
                       nb::handle pool, nb::handle torch_store) {
  if (!peers.is_none()) {
    const Guest guest = guest_of(agent, peers);
    const bool has_others = !store.is_none() || seed || !directory.is_none() || token_file;
    if (has_others) raise_invalid("World.open: peers are given, and a place to find them, too");
    if (!rank) raise_invalid("World.open: with peers, rank says which of them this one is");
    WorldOptions options;
    options.name = name.value_or("world");
    options.driven = driven;
    options.join_timeout = duration_of(timeout, "timeout", options.join_timeout);
    options.topology = topology ? take(parse_topology(*topology)) : Topology();
    options.quorum = quorum_of(quorum);
    options.recovery = policy_of(recovery);
    if (cost_model) options.cost_model = *cost_model;
    options.pool = pool_of(pool, "World.open");
    options.size = size ? *size : 0;
    options.rank = *rank;
    World made = take(outside([&] { return World::open(guest.agent->agent, guest.ranks, std::move(options)); }));
    return {std::make_shared<WorldState>(std::move(made), driven)};
  }
  if (size.has_value() != rank.has_value()) raise_invalid("World.open: size and rank are given together, or neither");
  const Result<LaunchedRank> launched = launched_rank(ConfigSources::from_process());
  if (!size) check(launched.error());
  const std::string run = !size && !launched->run.empty() ? "world." + launched->run : "world";
  WorldOptions options = world_options(name.value_or(run), directory, backends, timeout);
  options.driven = driven;
  if (!store.is_none()) options.store = store_of(store);
  const bool is_found_elsewhere = !store.is_none() || !directory.is_none();
  if (seed) {
    options.seed = *seed;
  } else if (!is_found_elsewhere) {
    options.seed = launched_seed(ConfigSources::from_process());
    options.token_file = launched_token_file(ConfigSources::from_process());
  }
  if (token_file) options.token_file = *token_file;
  options.topology = take(topology ? parse_topology(*topology) : launched_topology(ConfigSources::from_process()));
  options.quorum = quorum_of(quorum);
  options.recovery = policy_of(recovery);
  if (cost_model) options.cost_model = *cost_model;
  options.size = size ? *size : launched->size;
  options.rank = rank ? *rank : launched->rank;
  options.pool = pool_of(pool, "World.open");
  const AgentRef guests = agent.is_none() ? nullptr : guest_of(agent, nb::list()).agent;
  if (!size) {
    for (const char* const its : {"world.rank", "world.size"}) options.origins[its] = launched->launcher;
    const bool has_place = options.store.get || !options.seed.empty() || options.agent.directory != nullptr ||
                           (guests != nullptr && guests->has_directory);
    if (launched->launcher == "torchrun" && !has_place) meet_by_torchrun(options, torch_store);
  }
  if (guests != nullptr) {
    World made = take(outside([&] { return World::open(guests->agent, std::move(options)); }));
    return {std::make_shared<WorldState>(std::move(made), driven)};
  }
  return {std::make_shared<WorldState>(take(outside([&] { return World::open(std::move(options)); })), driven)};
}

nb::object probe(const WorldHandle& self, MaybeWhole<std::uint32_t, "probe: source"> source,
                 MaybeWhole<std::uint64_t, "probe: tag"> tag, nb::handle timeout) {
  const World& world = world_of(self);
  std::optional<Received> found;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::zero()), [&](Duration slice) {
        found = world.probe(source.value_or(kAnySource), tag, slice);
        return found.has_value();
      });
  if (!over) throw nb::python_error();
  if (!found) return nb::none();
  return nb::make_tuple(found->source, found->tag, found->bytes, nb::bytes("", 0));
}

void close(const WorldHandle& self, nb::handle timeout, bool together) {
  constexpr Duration kPatience = std::chrono::seconds(30);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  World& world = self.state->world;
  if (std::exchange(self.state->closed, true)) return;
  check(outside([&] { return together ? world.shutdown(patience) : world.close(patience); }));
}

// ---- Groups.

WorldHandle group(const WorldHandle& self, const Wholes<std::uint32_t, "group: a rank">& ranks) {
  World& world = world_of(self);
  return {std::make_shared<WorldState>(take(outside([&] { return world.group(ranks.values); })), self.state->driven)};
}

WorldHandle duplicate(const WorldHandle& self) {
  World& world = world_of(self);
  return {std::make_shared<WorldState>(take(outside([&] { return world.duplicate(); })), self.state->driven)};
}

std::optional<WorldHandle> split(const WorldHandle& self, MaybeWhole<std::uint32_t, "split: color"> color,
                                 Whole<std::int64_t, "split: key"> key) {
  World& world = world_of(self);
  World made = take(outside([&] { return world.split(color, key); }));
  if (!made.valid()) return std::nullopt;
  return WorldHandle{std::make_shared<WorldState>(std::move(made), self.state->driven)};
}

std::uint32_t host_of(const WorldHandle& self, Whole<std::uint32_t, "host_of: rank"> rank) {
  const World& world = self.state->world;
  if (rank < world.size()) return world.host(rank);
  raise_invalid("World.host_of: there is no rank " + std::to_string(rank.value));
}

std::uint32_t root_rank(const WorldHandle& self, Whole<std::uint32_t, "root_rank: rank"> rank) {
  const World& world = world_of(self);
  if (rank < world.size()) return world.root_rank(rank);
  raise_invalid("World.root_rank: there is no rank " + std::to_string(rank.value));
}

// ---- Batches.

/// One message: an array, a rank or None, a tag or None.
struct BatchItem {
  BatchItem(nb::handle from, const char* call, const char* rank_what, const char* tag_what)
      : x(nb::borrow(from[nb::int_(0)])), what(call) {
    const nb::object its_rank = from[nb::int_(1)], its_tag = from[nb::int_(2)];
    if (!its_rank.is_none()) rank = whole_of<std::uint32_t>(its_rank, rank_what);
    if (!its_tag.is_none()) tag = whole_of<std::uint64_t>(its_tag, tag_what);
  }
  nb::object x;
  const char* what;
  std::uint32_t rank = kAnySource;
  std::optional<std::uint64_t> tag;
};

/// A request for each message: sends first, then receives.
std::vector<RequestHandle> ibatch(const WorldHandle& self, nb::handle sends, nb::handle receives, bool exact,
                                  const std::string& priority, nb::handle timeout) {
  const MessageOptions options{
      .timeout = deadline_of(timeout), .exact = exact, .priority = priority_of("batch", priority)};
  std::vector<OutgoingMessage> outgoing;
  std::vector<AwaitedMessage> awaited;
  std::vector<std::vector<Source>> arrays;
  for (const nb::handle each : nb::iter(sends)) {
    const BatchItem item(each, "batch", "batch: dest", "batch: tag");
    const auto array = array_of<Source>(item.x, "batch", "x of a send");
    outgoing.push_back({.bytes = {static_cast<const std::byte*>(array.data()), array.nbytes()},
                        .to = item.rank,
                        .tag = item.tag.value_or(0)});
    arrays.push_back({array});
  }
  for (const nb::handle each : nb::iter(receives)) {
    const BatchItem item(each, "batch", "batch: source", "batch: tag");
    AwaitedMessage message{.into = {}, .from = item.rank, .tag = item.tag, .any_size = item.x.is_none()};
    std::vector<Source> keep;
    if (!message.any_size) {
      const auto array = array_of<Array>(item.x, "batch", "x of a receive");
      message.into = {static_cast<std::byte*>(array.data()), array.nbytes()};
      keep.push_back(readable(array));
    }
    awaited.push_back(message);
    arrays.push_back(std::move(keep));
  }
  World& world = world_of(self);
  std::vector<Request> requests = outside([&] { return world.ibatch(outgoing, awaited, options).take(); });
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    handles.emplace_back(self.state, Flight{std::move(requests[i]), std::move(arrays[i]), {}});
    handles.back().is_receive = i >= outgoing.size();
  }
  return handles;
}

// ---- What a world has, and holds.

nb::list config_of(const WorldHandle& self) {
  nb::list all;
  for (const ConfigValue& each : world_of(self).config()) {
    all.append(nb::make_tuple(each.name, each.value, each.origin));
  }
  return all;
}

nb::dict memory_of(const WorldHandle& self) {
  World& world = world_of(self);
  nb::dict all;
  for (const MemoryUse& each : outside([&] { return world.memory(); })) {
    all[nb::str(each.kind.data(), each.kind.size())] = each.bytes;
  }
  return all;
}

// ---- Calls.

/// A name, or a number.
class HandlerName {
 public:
  HandlerName(nb::handle from, const char* call) {
    if (nb::isinstance<nb::str>(from)) {
      name_ = nb::cast<std::string>(from);
    } else if (!nb::isinstance<nb::bool_>(from) && is_number(from)) {
      number_ = whole_of<std::uint64_t>(from, call);
    } else {
      throw nb::type_error((std::string(call) + " is a str or an int").c_str());
    }
  }
  /// Calls it with the one or the other.
  template <typename Call>
  auto with(Call call) const {
    return number_ ? call(*number_) : call(name_);
  }

 private:
  std::string name_;
  std::optional<std::uint64_t> number_;
};

void register_handler(const WorldHandle& self, nb::handle name, nb::callable function) {
  const HandlerName its(name, "register: name");
  const auto handler = std::make_shared<PythonHandler>(function);
  World& world = world_of(self);
  check(its.with([&](const auto& key) {
    return world.register_handler(key, [handler](const IncomingCall& call) { return handler->call(call); });
  }));
}

RequestHandle icall(const WorldHandle& self, Whole<std::uint32_t, "call: dest"> dest, nb::handle name,
                    nb::bytes arguments, nb::handle timeout) {
  const CallOptions options{.timeout = deadline_of(timeout)};
  const HandlerName its(name, "call: name");
  const std::span bytes(reinterpret_cast<const std::byte*>(arguments.c_str()), arguments.size());
  RequestHandle made = fly(self, {}, [&](World& world) {
    return its.with([&](const auto& key) { return world.icall(dest, key, bytes, options); });
  });
  made.flight.keep = arguments;
  made.is_call = true;
  return made;
}

// ---- After a failure.

RequestHandle iagree(const WorldHandle& self, bool flag, nb::handle timeout) {
  const Duration patience = deadline_of(timeout);
  return fly(self, {}, [&](World& world) { return world.iagree(flag, patience); });
}

RequestHandle ishrink(const WorldHandle& self, const Wholes<std::uint32_t, "shrink: a rank">& without,
                      nb::handle timeout) {
  const Duration patience = deadline_of(timeout);
  return fly(self, {}, [&](World& world) { return world.ishrink(without.values, patience); });
}

bool agreed(const WorldHandle& self, const RequestHandle& request) {
  return take(outside([&] { return self.state->world.agreed(request.flight.request); }));
}

WorldHandle shrunk(const WorldHandle& self, const RequestHandle& request) {
  World made = take(outside([&] { return self.state->world.shrunk(request.flight.request); }));
  return {std::make_shared<WorldState>(std::move(made), self.state->driven)};
}

std::vector<std::uint32_t> failures(const WorldHandle& self, Whole<std::size_t, "failures: known"> known,
                                    nb::handle timeout) {
  std::vector<std::uint32_t> found;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::zero()), [&](Duration slice) {
        found = self.state->world.failures(known, slice);
        return !found.empty();
      });
  if (!over) throw nb::python_error();
  return found;
}

/// None where there is no event yet.
nb::object recovered(const WorldHandle& self, nb::handle timeout) {
  std::optional<Result<Recovered>> event;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        event.emplace(self.state->world.recovered(slice));
        return event->has_value() || event->error().code() != Code::kTimedOut;
      });
  if (!over) throw nb::python_error();
  if (!event->has_value() && event->error().code() == Code::kTimedOut) return nb::none();
  Recovered made = take(std::move(*event));
  return nb::make_tuple(WorldHandle{std::make_shared<WorldState>(std::move(made.world), self.state->driven)},
                        made.old_rank, made.failed);
}

std::uint32_t old_rank(const WorldHandle& self) {
  const World& world = self.state->world;
  return world.old_rank(world.rank());
}

void bind_failure(nb::class_<WorldHandle>& world) {
  world
      .def_prop_ro(
          "failed", [](const WorldHandle& self) { return self.state->world.failed(); }, "Ranks that failed.")
      .def_prop_ro(
          "id", [](const WorldHandle& self) { return self.state->world.id(); },
          "0 of the world that was opened; of a group a number of its own. Shrinking keeps it.")
      .def_prop_ro(
          "epoch", [](const WorldHandle& self) { return self.state->world.epoch(); }, "How often it was shrunk.")
      .def_prop_ro("old_rank", &old_rank, "Of a world that shrink made: what this rank was before.")
      .def_prop_ro(
          "last_good", [](const WorldHandle& self) { return self.state->world.last_good(); },
          "Of a world that shrink made: in the one before, the last collective that ended well, as all before it did, "
          "on all ranks of this one.")
      .def_prop_ro(
          "last_number", [](const WorldHandle& self) { return self.state->world.last_number(); },
          "The number of the last collective that this rank began here. The first is 1.")
      .def(
          "acknowledge", [](const WorldHandle& self) { return self.state->world.acknowledge(); },
          "Receives from any source work again, until another rank fails. Returns the ranks that had failed.")
      .def("_iagree", &iagree, nb::arg("flag"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_agreed", &agreed, nb::arg("request"))
      .def("_ishrink", &ishrink, nb::arg("without"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_shrunk", &shrunk, nb::arg("request"))
      .def("_take_recovered", &recovered, nb::arg("timeout") = nb::none())
      .def("_failures", &failures, nb::arg("known"), nb::arg("timeout") = nb::none())
      .def(
          "revoke", [](const WorldHandle& self) { self.state->world.revoke(Status()); },
          "Ends the world's collectives on all ranks.");
}

void bind_messages(nb::class_<WorldHandle>& world) {
  world.def("_register", &register_handler, nb::arg("name"), nb::arg("fn"))
      .def("_icall", &icall, nb::arg("dest"), nb::arg("name"), nb::arg("arguments"), nb::kw_only(),
           nb::arg("timeout") = nb::none())
      .def("isend", &isend, nb::arg("x"), nb::arg("dest"), nb::arg("tag") = 0, nb::kw_only(),
           nb::arg("priority") = "bulk", nb::arg("timeout") = nb::none())
      .def("irecv", &irecv, nb::arg("x") = nb::none(), nb::arg("source") = nb::none(), nb::arg("tag") = nb::none(),
           nb::arg("exact") = false, nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_ibatch", &ibatch, nb::arg("sends"), nb::arg("receives"), nb::kw_only(), nb::arg("exact") = false,
           nb::arg("priority") = "bulk", nb::arg("timeout") = nb::none())
      .def("_config", &config_of)
      .def("memory", &memory_of,
           "Bytes that this rank holds for the world and its groups, by kind: boards, unreceived, receives, pool, "
           "calls, "
           "collectives, relays, flight recorder.")
      .def("_probe", &probe, nb::arg("source") = nb::none(), nb::arg("tag") = nb::none(), nb::kw_only(),
           nb::arg("timeout") = nb::none());
}

/// Memory that the ranks of the host map. It goes with the last array that views it.
nb::object allocate(const WorldHandle& self, Whole<std::uint64_t, "allocate: size"> size) {
  struct Kept {
    Region region;
    const int forks = Exit::of_module().forks();
  };
  World& world = world_of(self);
  auto kept = std::make_unique<Kept>();
  kept->region = take(outside([&] { return world.allocate({.size = size}); }));
  std::byte* const bytes = kept->region.bytes().data();
  const nb::capsule owner(kept.release(), [](void* memory) noexcept {
    auto* const its = static_cast<Kept*>(memory);
    if (its->forks != Exit::of_module().forks()) return;  // It is the parent's.
    outside([&] {
      delete its;
      return 0;
    });
  });
  using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;
  return nb::cast(Bytes(bytes, {static_cast<std::size_t>(size)}, owner));
}

void bind_collectives(nb::class_<WorldHandle>& world) {
  world.def("_allocate", &allocate, nb::arg("size"));
  world.def_prop_ro(
      "_waiting", [](const WorldHandle& self) { return WorldHandle{.state = self.state, .waits = true}; },
      "The same rank. The caller waits for each collective as soon as it has begun it by this handle.");
  world.def("ibarrier", &ibarrier, nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("iall_reduce", &iall_reduce, nb::arg("x"), nb::arg("op") = "sum", nb::arg("out") = nb::none(), nb::kw_only(),
           nb::arg("reproducible") = false, nb::arg("compress") = nb::none(), nb::arg("timeout") = nb::none())
      .def("iall_reduce_bucketed", &iall_reduce_bucketed, nb::arg("x"), nb::arg("op") = "sum",
           nb::arg("bucket") = kBucketBytes, nb::kw_only(), nb::arg("reproducible") = false,
           nb::arg("timeout") = nb::none(), "As all_reduce_bucketed; a request for each bucket, in their order.")
      .def("ireduce", &ireduce, nb::arg("x"), nb::arg("root") = 0, nb::arg("op") = "sum", nb::kw_only(),
           nb::arg("timeout") = nb::none())
      .def("ibroadcast", &ibroadcast, nb::arg("x"), nb::arg("root") = 0, nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iall_gather", &iall_gather, nb::arg("out"), nb::arg("x"), nb::arg("counts") = nb::none(), nb::kw_only(),
           nb::arg("timeout") = nb::none())
      .def("_ireduce_scatter", &ireduce_scatter, nb::arg("out"), nb::arg("x"), nb::arg("op") = "sum",
           nb::arg("counts") = nb::none(), nb::kw_only(), nb::arg("reproducible") = false,
           nb::arg("timeout") = nb::none())
      .def("_igather", &igather, nb::arg("out").none(), nb::arg("x"), nb::arg("root") = 0,
           nb::arg("counts") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iscatter", &iscatter, nb::arg("out"), nb::arg("x").none(), nb::arg("root") = 0,
           nb::arg("counts") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iall_to_all", &iall_to_all, nb::arg("out"), nb::arg("x"), nb::arg("out_counts") = nb::none(),
           nb::arg("in_counts") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iscan", &iscan, nb::arg("x"), nb::arg("op") = "sum", nb::arg("exclusive") = false, nb::kw_only(),
           nb::arg("timeout") = nb::none());
}

}  // namespace

void bind_worlds(nb::module_& module) {
  nb::class_<RequestHandle>(module, "Request", nb::is_weak_referenceable(),
                            "One operation of a world under way. Dropped, it goes on, and keeps its arrays; its error "
                            "goes to the log `hawser`.")
      .def(
          "done", [](const RequestHandle& self) { return self.flight.request.done(); }, "Over? Only looks.")
      .def("_wait", &wait, nb::arg("timeout") = nb::none())
      .def("_look", &look)
      .def(
          "cancel",
          [](RequestHandle& self) {
            outside([&] {
              self.flight.request.cancel();
              return 0;
            });
          },
          "It ends now. A collective ends on all ranks, and with it the world's others.");
  nb::class_<WorldHandle> world(module, "World", nb::is_weak_referenceable(),
                                "One rank of a number of ranks that send messages and run collective operations.");
  world
      .def_static("_local", &local, nb::arg("size"), nb::kw_only(), nb::arg("name") = "world",
                  nb::arg("backends") = nb::none(), nb::arg("timeout") = nb::none(), nb::arg("topology") = "full",
                  nb::arg("quorum") = nb::none(), nb::arg("recovery") = "manual", nb::arg("cost_model") = nb::none(),
                  nb::arg("pool") = nb::none())
      .def_static("_open", &open_world, nb::arg("size").none(), nb::arg("rank").none(),
                  nb::arg("directory") = nb::none(), nb::kw_only(), nb::arg("name").none(),
                  nb::arg("backends") = nb::none(), nb::arg("driven"), nb::arg("timeout") = nb::none(),
                  nb::arg("store") = nb::none(), nb::arg("seed") = nb::none(), nb::arg("token_file") = nb::none(),
                  nb::arg("topology") = nb::none(), nb::arg("quorum") = nb::none(), nb::arg("recovery") = "manual",
                  nb::arg("cost_model") = nb::none(), nb::arg("agent") = nb::none(), nb::arg("peers") = nb::none(),
                  nb::arg("pool") = nb::none(), nb::arg("torch_store") = nb::none())
      .def_prop_ro(
          "cost_model", [](const WorldHandle& self) { return world_of(self).cost_model(); },
          "By what the algorithms of collectives are chosen: 'built in', or which rank told it, and its values.")
      .def_prop_ro("rank", [](const WorldHandle& self) { return self.state->world.rank(); })
      .def_prop_ro("size", [](const WorldHandle& self) { return self.state->world.size(); })
      .def_prop_ro(
          "is_sparse", [](const WorldHandle& self) { return self.state->world.is_sparse(); },
          "Whether ranks that are no neighbours reach one another by others.")
      .def_prop_ro(
          "host", [](const WorldHandle& self) { return self.state->world.host(self.state->world.rank()); },
          "The number of this rank's host: from 0, in the order of the hosts' first ranks.")
      .def("host_of", &host_of, nb::arg("rank"), "The number of a rank's host.")
      .def_prop_ro(
          "local_rank", [](const WorldHandle& self) { return self.state->world.local_rank(); },
          "This rank's number among the ranks of its host, from 0.")
      .def_prop_ro(
          "local_size", [](const WorldHandle& self) { return self.state->world.local_size(); },
          "How many ranks are on this rank's host.")
      .def(
          "has_direct_peer",
          [](const WorldHandle& self, Whole<std::uint32_t, "has_direct_peer: rank"> rank) {
            return self.state->world.has_direct_peer(rank);
          },
          nb::arg("rank"), "Whether the rank is a neighbour in the world's topology.")
      .def("_split", &split, nb::keep_alive<0, 1>(), nb::arg("color").none(), nb::arg("key") = 0,
           "As split, but Ctrl-C does not end it.")
      .def("duplicate", &duplicate, nb::keep_alive<0, 1>(),
           "These ranks once more, with messages and collectives of their own.")
      .def("group", &group, nb::keep_alive<0, 1>(), nb::arg("ranks"),
           "These ranks in this order; each of them calls it, and nobody else.")
      .def("root_rank", &root_rank, nb::arg("rank"), "What a rank of this group is in the world that was opened.")
      .def(
          "_shutdown", [](const WorldHandle& self, nb::handle timeout) { close(self, timeout, true); },
          nb::arg("timeout") = nb::none(), "As shutdown, but Ctrl-C does not end it.")
      .def(
          "_leave",
          [](const WorldHandle& self, nb::handle timeout) {
            const Duration patience = duration_of(timeout, "timeout", std::chrono::seconds(30));
            if (std::exchange(self.state->closed, true)) return;
            check(outside([&] { return self.state->world.leave(patience); }));
          },
          nb::arg("timeout") = nb::none(), "As leave, but Ctrl-C does not end it.")
      .def(
          "close", [](const WorldHandle& self, nb::handle timeout) { close(self, timeout, false); },
          nb::arg("timeout") = nb::none(), "Leaves at once. To the others this rank has failed.");
  bind_messages(world);
  bind_collectives(world);
  bind_failure(world);
}

}  // namespace hawser::api::python
