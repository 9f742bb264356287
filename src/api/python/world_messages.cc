// Messages of a world: send, receive, probe, batches.

#include <hawser/world.h>

#include <utility>

#include "api/python/elements.h"
#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

bool is_list(nb::handle x) { return nb::isinstance<nb::list>(x) || nb::isinstance<nb::tuple>(x); }

/// The memory of the arrays in `x`, a message that is a list of them. `arrays` keeps them.
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

}  // namespace

void bind_messages(nb::class_<WorldHandle>& world) {
  world
      .def("isend", &isend, nb::arg("x"), nb::arg("dest"), nb::arg("tag") = 0, nb::kw_only(),
           nb::arg("priority") = "bulk", nb::arg("timeout") = nb::none())
      .def("irecv", &irecv, nb::arg("x") = nb::none(), nb::arg("source") = nb::none(), nb::arg("tag") = nb::none(),
           nb::arg("exact") = false, nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_ibatch", &ibatch, nb::arg("sends"), nb::arg("receives"), nb::kw_only(), nb::arg("exact") = false,
           nb::arg("priority") = "bulk", nb::arg("timeout") = nb::none())
      .def("_probe", &probe, nb::arg("source") = nb::none(), nb::arg("tag") = nb::none(), nb::kw_only(),
           nb::arg("timeout") = nb::none());
}

}  // namespace hawser::api::python
