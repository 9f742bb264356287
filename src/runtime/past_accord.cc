#include "runtime/past_accord.h"

#include <algorithm>
#include <utility>

namespace hawser::runtime {

PastAccord::PastAccord(std::uint64_t world, std::uint32_t rank, std::vector<Peer> ranks, std::shared_ptr<Accord> accord,
                       Mailbox& mailbox)
    : world_(world), rank_(rank), ranks_(std::move(ranks)), accord_(std::move(accord)), mailbox_(mailbox) {
  mailbox_.add_past(world_, *this);
}

PastAccord::~PastAccord() { mailbox_.remove_past(world_); }

std::optional<std::uint32_t> PastAccord::rank_of(const Peer& peer) const {
  const auto found = std::ranges::find_if(ranks_, [&](const Peer& each) { return source_of(each) == source_of(peer); });
  if (found == ranks_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - ranks_.begin());
}

void PastAccord::note_failed(std::optional<std::uint32_t> rank) {
  if (rank && *rank != rank_ && *rank < ranks_.size()) accord_->note_failed(*rank, mailbox_.now());
}

void PastAccord::on_down(const Peer& peer, const Status&) { note_failed(rank_of(peer)); }
void PastAccord::on_left(const Peer& peer) { note_failed(rank_of(peer)); }

void PastAccord::on_failed(const Peer& by, std::uint32_t rank, bool) {
  if (rank_of(by)) note_failed(rank);
}

void PastAccord::on_agreement(const Peer& by, const wire::RuntimeMessage& message) {
  if (const std::optional<std::uint32_t> rank = rank_of(by)) accord_->hear(*rank, message, mailbox_.now());
}

}  // namespace hawser::runtime
