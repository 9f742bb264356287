#include "backend/plugin/plugin_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "base/format.h"
#include "wire/limits.h"

namespace hawser::backend {
namespace {

template <typename Enum>
constexpr bool same(Enum ours, int theirs) {
  return static_cast<int>(ours) == theirs;
}
static_assert(same(Code::kInvalid, HAWSER_PLUGIN_INVALID) && same(Code::kNotFound, HAWSER_PLUGIN_NOT_FOUND) &&
              same(Code::kUnsupported, HAWSER_PLUGIN_UNSUPPORTED) && same(Code::kBusy, HAWSER_PLUGIN_BUSY) &&
              same(Code::kDisconnected, HAWSER_PLUGIN_DISCONNECTED) && same(Code::kTimedOut, HAWSER_PLUGIN_TIMED_OUT) &&
              same(Code::kCancelled, HAWSER_PLUGIN_CANCELLED) && same(Code::kCorrupt, HAWSER_PLUGIN_CORRUPT) &&
              same(Code::kDenied, HAWSER_PLUGIN_DENIED) && same(Code::kFailed, HAWSER_PLUGIN_FAILED));
static_assert(same(Scope::kRequest, HAWSER_PLUGIN_SCOPE_REQUEST) && same(Scope::kPath, HAWSER_PLUGIN_SCOPE_PATH) &&
              same(Scope::kPeer, HAWSER_PLUGIN_SCOPE_PEER) && same(Scope::kAgent, HAWSER_PLUGIN_SCOPE_AGENT));
static_assert(same(BufferState::kUntouched, HAWSER_PLUGIN_BUFFER_UNTOUCHED) &&
              same(BufferState::kPartlyWritten, HAWSER_PLUGIN_BUFFER_PARTLY_WRITTEN) &&
              same(BufferState::kComplete, HAWSER_PLUGIN_BUFFER_COMPLETE));
static_assert(same(Rights::kRead, HAWSER_PLUGIN_RIGHT_READ) && same(Rights::kWrite, HAWSER_PLUGIN_RIGHT_WRITE));
static_assert(same(Operation::kWrite, HAWSER_PLUGIN_WRITE) && same(Operation::kRead, HAWSER_PLUGIN_READ));
static_assert(same(Priority::kCritical, HAWSER_PLUGIN_CRITICAL) && same(Priority::kRealtime, HAWSER_PLUGIN_REALTIME) &&
              same(Priority::kBulk, HAWSER_PLUGIN_BULK));
static_assert(same(DeviceKind::kHost, HAWSER_PLUGIN_DEVICE_HOST));
static_assert(same(Security::kDefault, HAWSER_PLUGIN_SECURITY_DEFAULT) &&
              same(Security::kNone, HAWSER_PLUGIN_SECURITY_NONE) &&
              same(Security::kAuthenticate, HAWSER_PLUGIN_SECURITY_AUTHENTICATE) &&
              same(Security::kEncrypt, HAWSER_PLUGIN_SECURITY_ENCRYPT));
// A chunk's pieces are not copied: both sides read the same bytes.
static_assert(sizeof(Piece) == sizeof(hawser_plugin_piece) && alignof(Piece) == alignof(hawser_plugin_piece) &&
              offsetof(Piece, local) == offsetof(hawser_plugin_piece, local) &&
              offsetof(Piece, remote) == offsetof(hawser_plugin_piece, remote) &&
              offsetof(Piece, size) == offsetof(hawser_plugin_piece, size));

template <std::size_t kSize>
std::string text_in(const char (&buffer)[kSize]) {
  return std::string(buffer, ::strnlen(buffer, kSize));
}

template <std::size_t kSize>
void put_text(std::string_view text, char (&buffer)[kSize]) {
  const std::size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(buffer, text.data(), size);
  buffer[size] = '\0';
}

}  // namespace

hawser_plugin_region region_of(const RegionEntry& entry) {
  hawser_plugin_region region{};
  region.index = entry.index;
  region.generation = entry.generation;
  region.key = id_of(entry.key);
  region.base = entry.base;
  region.size = entry.size;
  region.rights = static_cast<std::uint32_t>(entry.rights);
  region.device_kind = static_cast<std::uint32_t>(entry.device.kind);
  region.device_ordinal = entry.device.ordinal;
  // The interface has no place for where in its file a region begins.
  const bool is_whole = entry.arena && entry.base == entry.arena->bytes().data();
  region.memory_fd = is_whole ? entry.arena->fd() : -1;
  region.name = text_of(entry.name);
  return region;
}

hawser_plugin_remote_region remote_region_of(const RemoteRegionRef& region) {
  hawser_plugin_remote_region remote{};
  remote.index = region.index;
  remote.generation = region.generation;
  remote.key = id_of(region.key);
  remote.size = region.size;
  remote.rights = static_cast<std::uint32_t>(region.rights);
  remote.device_kind = static_cast<std::uint32_t>(region.device.kind);
  remote.device_ordinal = region.device.ordinal;
  remote.extra = text_of(region.extra);
  return remote;
}

hawser_plugin_identity identity_of(const Identity& identity) {
  hawser_plugin_identity result{};
  result.name = text_of(identity.name);
  result.incarnation = id_of(identity.incarnation);
  std::memcpy(result.public_key, identity.public_key.data(), sizeof(result.public_key));
  result.driven = identity.driven ? 1 : 0;
  result.version_min = identity.version_min;
  result.version_max = identity.version_max;
  return result;
}

hawser_plugin_chunk chunk_of(const Chunk& chunk, std::uint64_t cookie, hawser_plugin_binding* target) {
  hawser_plugin_chunk result{};
  result.op = static_cast<std::uint32_t>(chunk.op);
  result.priority = static_cast<std::uint32_t>(chunk.priority);
  result.covered = chunk.covered ? 1 : 0;
  result.index = chunk.index;
  result.transfer = chunk.transfer;
  result.cookie = cookie;
  result.target = target;
  result.pieces = reinterpret_cast<const hawser_plugin_piece*>(chunk.pieces.data());
  result.piece_count = chunk.pieces.size();
  result.bytes = chunk.bytes;
  return result;
}

void fill_reason(const Status& status, hawser_plugin_reason* reason) {
  if (reason == nullptr) return;
  reason->scope = static_cast<std::uint32_t>(status.scope());
  reason->buffer = static_cast<std::uint32_t>(status.buffer());
  put_text(status.message(), reason->message);
  put_text(status.advice(), reason->advice);
}

Status status_from(const PluginLibrary& library, std::uint32_t code, const hawser_plugin_reason* reason) {
  if (code == HAWSER_PLUGIN_OK) return {};
  if (code > HAWSER_PLUGIN_FAILED) {
    return Status(Code::kFailed,
                  base::format("plug-in {} ({}) gave the unknown code {}", library.name, library.origin, code));
  }
  std::string text = reason == nullptr ? std::string() : text_in(reason->message);
  if (text.empty()) text = base::format("plug-in {} gave no reason", library.name);
  Status status(static_cast<Code>(code), std::move(text));
  if (reason == nullptr) return status;
  if (reason->scope <= HAWSER_PLUGIN_SCOPE_AGENT) status = status.with_scope(static_cast<Scope>(reason->scope));
  if (reason->buffer <= HAWSER_PLUGIN_BUFFER_COMPLETE)
    status = status.with_buffer(static_cast<BufferState>(reason->buffer));
  const std::string advice = text_in(reason->advice);
  return advice.empty() ? status : status.with_advice(advice);
}

hawser_plugin_traits default_traits() {
  const Traits ours;
  hawser_plugin_traits traits{};
  traits.chunk_pieces_max = ours.chunk_pieces_max;
  traits.chunk_bytes_max = ours.chunk_bytes_max;
  traits.inline_bytes_max = ours.inline_bytes_max;
  traits.quiesce_max_ns = ours.quiesce_max.count();
  traits.latency_ns = ours.latency_ns;
  traits.bytes_per_ns = ours.bytes_per_ns;
  traits.piece_ns = ours.piece_ns;
  return traits;
}

Result<Traits> traits_from(const PluginLibrary& library, const hawser_plugin_traits& traits) {
  constexpr std::uint32_t kFlags = HAWSER_PLUGIN_SAME_HOST_ONLY | HAWSER_PLUGIN_SELF_ONLY | HAWSER_PLUGIN_DIRECT |
                                   HAWSER_PLUGIN_CARRIES_ARRIVALS | HAWSER_PLUGIN_LOSSLESS;
  const auto sensible = [](double value) { return std::isfinite(value) && value >= 0; };
  if ((traits.flags & ~kFlags) != 0 || traits.chunk_pieces_max == 0 || traits.chunk_bytes_max == 0 ||
      traits.quiesce_max_ns < 0 || !sensible(traits.latency_ns) || !sensible(traits.piece_ns) ||
      !sensible(traits.bytes_per_ns) || traits.bytes_per_ns == 0) {
    return Status(
        Code::kFailed,
        base::format("plug-in {} ({}) has traits that make no sense: flags {:#x}, chunks of {} pieces and {} "
                     "bytes, {} ns to quiet, {} ns, {} bytes/ns, {} ns a piece",
                     library.name, library.origin, traits.flags, traits.chunk_pieces_max, traits.chunk_bytes_max,
                     traits.quiesce_max_ns, traits.latency_ns, traits.bytes_per_ns, traits.piece_ns));
  }
  Traits result;
  result.name = library.name;
  result.same_host_only = (traits.flags & HAWSER_PLUGIN_SAME_HOST_ONLY) != 0;
  result.self_only = (traits.flags & HAWSER_PLUGIN_SELF_ONLY) != 0;
  result.direct = (traits.flags & HAWSER_PLUGIN_DIRECT) != 0;
  result.carries_arrivals = (traits.flags & HAWSER_PLUGIN_CARRIES_ARRIVALS) != 0;
  // The table has no word on which messages the peer has taken, so the agent acknowledges them on every plug-in.
  result.lossless = false;
  result.chunk_bytes_max = traits.chunk_bytes_max;
  result.chunk_pieces_max = traits.chunk_pieces_max;
  result.inline_bytes_max = traits.inline_bytes_max;
  result.quiesce_max = Duration(traits.quiesce_max_ns);
  result.latency_ns = traits.latency_ns;
  result.bytes_per_ns = traits.bytes_per_ns;
  result.piece_ns = traits.piece_ns;
  return result;
}

Result<Identity> identity_from(const hawser_plugin_identity& identity, const Identity& ours) {
  const std::string_view name = identity.name.data == nullptr || identity.name.size > wire::kNameMax
                                    ? std::string_view()
                                    : std::string_view(identity.name.data, identity.name.size);
  if (!wire::is_agent_name(name) || id_from(identity.incarnation).is_zero() ||
      identity.version_min > identity.version_max) {
    return Status(Code::kCorrupt, "the peer's name, incarnation or versions cannot be those of an agent");
  }
  if (identity.version_min > ours.version_max || identity.version_max < ours.version_min) {
    return Status(Code::kUnsupported,
                  base::format("'{}' speaks versions {} to {}, this agent {} to {}", name, identity.version_min,
                               identity.version_max, ours.version_min, ours.version_max));
  }
  Identity result;
  result.name = name;
  result.incarnation = id_from(identity.incarnation);
  std::memcpy(result.public_key.data(), identity.public_key, sizeof(identity.public_key));
  result.driven = identity.driven != 0;
  result.version_min = identity.version_min;
  result.version_max = identity.version_max;
  return result;
}

std::string PluginSink::text() const {
  std::string all;
  for (const std::string& item : items_) all += item;
  return all;
}

void PluginSink::put(void* to, const char* data, std::size_t size) noexcept {
  auto& sink = *static_cast<PluginSink*>(to);
  if (data == nullptr && size > 0) {
    sink.overflowed_ = true;
    return;
  }
  try {
    // Items count too: many empty ones must not fill the memory.
    const std::size_t cost = size + 1;
    if (cost > sink.left_) {
      sink.overflowed_ = true;
      return;
    }
    sink.items_.emplace_back(data == nullptr ? "" : data, size);
    sink.left_ -= cost;
  } catch (...) {  // No exception may cross the border.
    sink.overflowed_ = true;
  }
}

}  // namespace hawser::backend
