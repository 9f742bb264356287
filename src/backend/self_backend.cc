#include "backend/self_backend.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kInboxMax = 64;  // Messages given out by one poll.

std::uint64_t key_of(std::uint32_t index, std::uint32_t generation) { return std::uint64_t{generation} << 32 | index; }

Status reaches_only(const SelfKind& kind, std::string_view what) {
  return Status(Code::kUnsupported, base::format("{} reaches {} only", kind.name, what));
}

}  // namespace

Result<Binding*> SelfPath::bind(const RemoteRegionRef& region) {
  const auto found = bindings_.find(key_of(region.index, region.generation));
  if (found != bindings_.end()) return found->second.get();
  HAWSER_TRY_ASSIGN(auto entry, port_.context().regions.find(region.index, region.generation, region.key, Rights::kNone,
                                                             port_.context().identity.incarnation));
  if (!reaches(*entry)) return reaches_only(port_.kind(), port_.kind().regions);
  auto& made = bindings_[key_of(region.index, region.generation)];
  made = std::make_unique<SelfBinding>(std::move(entry));
  return made.get();
}

void SelfPath::unbind(std::uint32_t index, std::uint32_t generation) { bindings_.erase(key_of(index, generation)); }

std::uint32_t SelfPath::enqueue(std::span<const Chunk> chunks) {
  std::uint32_t taken = 0;
  for (; is_up_ && taken < chunks.size() && chunk_count_ < chunks_max_; ++taken, ++chunk_count_) {
    Job* job = port_.queue().make(*this, chunks[taken]);
    if (job == nullptr) break;
    port_.queue().schedule(*job);
  }
  return taken;
}

void SelfPath::chunk_ended(const Chunk& chunk, const Status& status) {
  if (status.ok()) count_chunk(chunk);
  --chunk_count_;
  port_.push(PortEvent::Kind::kChunkDone, *this, status.with_peer(port_.context().identity.name), chunk.cookie);
  tell_down();
}

void SelfPath::end(const Status& why) {
  if (!std::exchange(is_up_, false)) return;
  why_down_ = why;
  end_chunks(why);
  tell_down();
}

void SelfPath::tell_down() {
  if (is_up_ || has_chunks() || std::exchange(is_told_, true)) return;
  port_.push(PortEvent::Kind::kPathDown, *this, why_down_);
}

bool SelfPath::send(wire::Link, std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t size = head.size() + body.size();
  if (!is_up_ || messages_.size() == kMessagesMax || message_bytes_ + size > kMessageBytesMax) return false;
  std::string& message = messages_.emplace_back();
  message.reserve(size);
  for (const auto& part : {head, body}) message.append(reinterpret_cast<const char*>(part.data()), part.size());
  message_bytes_ += size;
  ++counts_.messages_out;
  return true;
}

bool SelfPath::each_untaken(const SeeMessage& see) const {
  const auto show = [&see](const std::string& message) { see(std::as_bytes(std::span<const char>(message))); };
  for (std::size_t i = 0; i < port_.inbox_paths_.size(); ++i) {
    if (port_.inbox_paths_[i] == this) show(port_.inbox_[i]);
  }
  std::ranges::for_each(messages_, show);
  return true;
}

bool SelfPath::take(std::string* out) {
  if (messages_.empty()) return false;
  *out = std::move(messages_.front());
  messages_.pop_front();
  message_bytes_ -= out->size();
  ++counts_.messages_in;
  return true;
}

PathCounters SelfPath::counters() const {
  PathCounters counters = counts_;
  counters.peer = port_.context().identity.name;
  counters.backend = port_.kind().name;
  counters.state = is_up_ ? "up" : "down";
  counters.epochs = 1;
  return counters;
}

void SelfPort::push(PortEvent::Kind kind, SelfPath& path, Status status, std::uint64_t cookie) {
  PortEvent& event = events_.emplace_back();
  event.kind = kind;
  event.path = &path;
  event.cookie = cookie;
  event.peer = &context_.identity;
  event.session = path.session_;
  event.status = std::move(status);
}

Result<Path*> SelfPort::open_path(const PathTarget& target, Instant) {
  if (is_closing_) return Status(Code::kDisconnected, "this agent is closing");
  if (target.address != address_) return reaches_only(kind_, kind_.agent);
  paths_.push_back(make_path());
  push(PortEvent::Kind::kPathUp, *paths_.back(), {});
  return paths_.back().get();
}

/// Of paths that are up the agent tells of transfers. A device that is not done with the chunks of one that ended holds
/// their memory.
void SelfPort::describe(const WaitVisitor& visitor) const {
  for (const auto& path : paths_) {
    if (path->is_up_ || !path->has_chunks()) continue;
    visitor({.who = kind_.name,
             .what = "chunks of an ended path",
             .peer = context_.identity.name,
             .count = path->chunk_count_});
  }
}

void SelfPort::release_path(Path* released) {
  const auto found = std::ranges::find(paths_, released, &std::unique_ptr<SelfPath>::get);
  if (found == paths_.end()) return;
  (*found)->end(Status(Code::kDisconnected, "released"));
  (*found)->let_go();
  std::erase_if(events_, [&](const PortEvent& event) { return event.path == released; });
  paths_.erase(found);
}

std::size_t SelfPort::news() const {
  std::size_t count = events_.size();
  for (const auto& path : paths_) count += path->has_message() ? 1 : 0;
  return count;
}

std::size_t SelfPort::poll(std::span<PortEvent> out) {
  std::size_t count = 0;
  for (; count < out.size() && !events_.empty(); ++count) {
    out[count] = std::move(events_.front());
    events_.pop_front();
  }
  if (inbox_.empty()) inbox_.resize(kInboxMax);
  std::size_t used = 0;
  inbox_paths_.clear();
  for (const auto& path : paths_) {
    while (count < out.size() && used < kInboxMax && events_.empty() && path->take(&inbox_[used])) {
      PortEvent& event = out[count++];
      event = {};
      event.kind = PortEvent::Kind::kMessage;
      event.path = path.get();
      event.peer = &context_.identity;
      event.bytes = std::as_bytes(std::span<const char>(inbox_[used++]));
      inbox_paths_.push_back(path.get());
    }
  }
  return count;
}

void SelfPort::begin_close(Instant) {
  is_closing_ = true;
  for (const auto& path : paths_) path->end(Status(Code::kDisconnected, "this agent closes").with_scope(Scope::kPeer));
}

SelfBackend::SelfBackend(const Context& context, const SelfKind& kind, const ParamReader& read,
                         std::vector<std::string> warnings)
    : context_(context), kind_(kind), params_(read.in_force()), warnings_(std::move(warnings)) {
  traits_.name = kind.name;
  traits_.same_host_only = true;
  traits_.self_only = true;
  traits_.direct = true;
  traits_.lossless = true;
  traits_.checks_holder = true;
  traits_.chunk_pieces_max = 1024;
}

std::string SelfBackend::address() const {
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.id(context_.identity.incarnation);
  return bytes;
}

Status SelfBackend::reachable(std::string_view peer_address) const {
  return peer_address == address() ? Status() : reaches_only(kind_, kind_.agent);
}

}  // namespace hawser::backend
