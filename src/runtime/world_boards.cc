#include "runtime/world_boards.h"

#include <utility>

#include "agent/inner.h"

namespace hawser::runtime {

void WorldBoards::open(Site site, const std::vector<std::uint32_t>& several_hosts) {
  site_ = site;
  if (site_.is_sparse) return;
  MappedCall::Uses seen = uses();
  room_ = std::make_unique<BoardRoom>(BoardRoom::Site{.world = site_.world,
                                                      .rank = site_.roster->own(),
                                                      .ranks = site_.roster->peers(),
                                                      .mailbox = site_.seat->mailbox.get(),
                                                      .memory = &mapped_memory_,
                                                      .place = std::move(seen.place),
                                                      .view = std::move(seen.view)});
  room_->know_hosts(several_hosts);
}

MappedCall::Uses WorldBoards::uses() {
  return {.memory = mapped_memory_,
          .place =
              [this](std::span<const std::byte> bytes) { return agent::inner::mapped_place(site_.seat->agent, bytes); },
          .view = [this](const RankRegion& region) { return view(region); }};
}

Result<std::unique_ptr<backend::View>> WorldBoards::view(const RankRegion& region) const {
  const Peer& peer = site_.roster->peer(region.rank);
  return site_.seat->mailbox->view(peer, agent::inner::told_region(peer, region.id, region.size));
}

BoardRoom* WorldBoards::room_with_memory() {
  std::call_once(has_memory_, [this] {
    if (room_->size() < 2) return;  // Nobody would read it.
    Result<BoardShelf::Memory> memory = site_.seat->boards().take();
    if (memory) memory_ = std::move(*memory);
  });
  return room_.get();
}

void WorldBoards::furnish() {
  if (!memory_) return;
  room_->give_memory(memory_->bytes, std::move(memory_->owner));
  memory_.reset();
}

std::unique_ptr<MappedCall> WorldBoards::mapped_call(const CollectiveCall& call) {
  return std::make_unique<MappedCall>(uses(), call.call, static_cast<const std::byte*>(call.input),
                                      static_cast<const std::byte*>(call.output));
}

}  // namespace hawser::runtime
