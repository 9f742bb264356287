#include "agent/engine/lent_writes.h"

#include <algorithm>
#include <utility>

#include "agent/peer_core.h"
#include "base/check.h"

namespace hawser::agent {
namespace {

/// Names a write at the path, apart from all transfers.
constexpr std::uint64_t kTransferBits = std::uint64_t{3} << 62;

}  // namespace

std::uint64_t LentWrites::begin(Service& service, Session& session, const wire::Lent& lent, std::uint64_t size,
                                Priority priority, std::uint64_t cookie) {
  PathEntry* const control = session.control();
  if (control == nullptr || !ports_.traits(control->backend).quits_at_once) return 0;
  const Result<backend::Binding*> binding = control->path->bind({.index = lent.index,
                                                                 .generation = lent.generation,
                                                                 .key = lent.key,
                                                                 .size = size,
                                                                 .rights = Rights::kWrite,
                                                                 .device = {},
                                                                 .extra = {}});
  if (!binding) return 0;
  const std::uint64_t number = next_write_++;
  writes_.emplace(number, Write{.service = &service,
                                .session = &session,
                                .path_serial = control->serial,
                                .lent = lent,
                                .binding = *binding,
                                .cookie = cookie,
                                .priority = priority});
  return number;
}

PathEntry* LentWrites::path_of(Write& write) {
  PathEntry* const entry = write.session->find(write.path_serial);
  return entry != nullptr && entry->up ? entry : nullptr;
}

LentWrite LentWrites::write(std::uint64_t number, std::uint64_t offset, std::span<const std::byte> bytes, Instant now) {
  const auto found = writes_.find(number);
  if (found == writes_.end()) return LentWrite::kLost;
  Write& its = found->second;
  PathEntry* const entry = path_of(its);
  if (entry == nullptr) return LentWrite::kLost;
  auto made = std::make_unique<Chunk>();
  made->write = number;
  made->piece = {const_cast<std::byte*>(bytes.data()), offset, bytes.size()};  // A write only reads it.
  const std::uint64_t cookie = kCookieBit | next_chunk_;
  const backend::Chunk chunk{.op = Operation::kWrite,
                             .priority = its.priority,
                             .index = static_cast<std::uint32_t>(next_chunk_),
                             .transfer = kTransferBits | number,
                             .cookie = cookie,
                             .target = its.binding,
                             .pieces = {&made->piece, 1},
                             .bytes = bytes.size()};
  const backend::Submitted result = entry->path->submit({&chunk, 1}, now);
  HAWSER_ASSERT(result.done == 0, "a path that quits at once tells of its chunks' ends");
  if (result.taken == 0) {
    sessions_.block(*its.session, now);
    return LentWrite::kNoRoom;
  }
  ++next_chunk_;
  ++its.chunks;
  ++its.session->lent_chunks;
  chunks_.emplace(cookie, std::move(made));
  return LentWrite::kYes;
}

void LentWrites::end(std::uint64_t number) {
  const auto found = writes_.find(number);
  if (found == writes_.end()) return;
  Write& its = found->second;
  its.is_over = true;
  if (its.chunks == 0) return drop(number, its);
  if (PathEntry* const entry = its.session->find(its.path_serial)) entry->path->cancel(kTransferBits | number);
}

/// Nothing of it is under way.
void LentWrites::drop(std::uint64_t number, Write& write) {
  if (PathEntry* const entry = path_of(write)) entry->path->unbind(write.lent.index, write.lent.generation);
  writes_.erase(number);
}

void LentWrites::on_chunk_done(const backend::PortEvent& event) {
  const auto chunk = chunks_.find(event.cookie);
  if (chunk == chunks_.end() || paths_.find(event.path) == nullptr) return;  // Its path was released meanwhile.
  const std::uint64_t number = chunk->second->write;
  const std::uint64_t size = chunk->second->piece.size;
  chunks_.erase(chunk);
  Write& its = writes_.at(number);
  --its.chunks;
  --its.session->lent_chunks;
  if (its.is_over) {
    if (its.chunks == 0) drop(number, its);
    return;
  }
  PathEntry* const entry = its.session->find(event.path);
  if (entry != nullptr && event.status.ok()) ++entry->carried;
  its.service->on_written(*its.session, its.cookie, size, event.status);
}

void LentWrites::on_paths_gone(Session& session) {
  session.lent_chunks = 0;
  std::erase_if(chunks_, [&](const auto& entry) { return writes_.at(entry.second->write).session == &session; });
  std::erase_if(writes_, [&](const auto& entry) { return entry.second.session == &session; });
}

}  // namespace hawser::agent
