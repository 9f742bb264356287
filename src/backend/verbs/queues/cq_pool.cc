#include "backend/verbs/queues/cq_pool.h"

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {

Result<std::unique_ptr<CqPool>> CqPool::open(std::shared_ptr<Domain> domain, std::uint32_t depth) {
  // A device that tells no limit (0) is believed to have none.
  const auto limit = static_cast<std::uint32_t>(std::max(domain->attributes().max_cqe, 0));
  const std::uint32_t sharers = limit == 0 ? kSharersMax : std::min(kSharersMax, limit / depth);
  if (sharers == 0) {
    return Status(Code::kUnsupported, base::format("a completion queue of {} holds {} entries, one queue pair needs {}",
                                                   domain->name(), limit, depth))
        .with_advice("lower the parameter send_depth");
  }
  ibv_comp_channel* channel = domain->verbs().create_comp_channel(domain->context());
  if (channel == nullptr) {
    return base::errno_status(base::format("making a completion channel of {}", domain->name()), errno);
  }
  std::unique_ptr<CqPool> pool(new CqPool(std::move(domain), channel, depth, sharers));
  HAWSER_TRY(base::set_nonblocking(channel->fd));
  return pool;
}

CqPool::~CqPool() {
  drain_events();
  for (const Queue& queue : queues_) destroy(queue.cq);
  domain_->end([verbs = &domain_->verbs(), channel = channel_] { return verbs->destroy_comp_channel(channel); });
}

Result<ibv_cq*> CqPool::lease() {
  for (Queue& queue : queues_) {
    if (queue.sharers == queue.room || queue.broken) continue;
    ++queue.sharers;
    return queue.cq;
  }
  const std::uint32_t room = std::min(queues_.empty() ? kSharersFirst : 2 * queues_.back().room, sharers_max_);
  const int entries = static_cast<int>(depth_ * room);
  ibv_cq* cq = domain_->verbs().create_cq(domain_->context(), entries, nullptr, channel_, 0);
  if (cq == nullptr) {
    return base::errno_status(base::format("making a completion queue of {} entries on {}", entries, domain_->name()),
                              errno);
  }
  queues_.push_back({.cq = cq, .sharers = 1, .room = room, .broken = false});
  return cq;
}

void CqPool::give_back(ibv_cq* cq) {
  const auto found = std::ranges::find(queues_, cq, &Queue::cq);
  if (--found->sharers > 0 || (queues_.size() == 1 && !found->broken)) return;
  drain_events();  // A queue that still has events cannot be destroyed.
  destroy(cq);
  queues_.erase(found);
}

void CqPool::destroy(ibv_cq* cq) {
  domain_->end([verbs = &domain_->verbs(), cq] { return verbs->destroy_cq(cq); });
}

bool CqPool::is_broken(const ibv_cq* cq) const {
  return std::ranges::any_of(queues_, [cq](const Queue& queue) { return queue.cq == cq && queue.broken; });
}

bool CqPool::mark_broken(const ibv_cq* cq) {
  const auto found = std::ranges::find(queues_, cq, &Queue::cq);
  if (found == queues_.end()) return false;
  found->broken = true;
  return true;
}

int CqPool::poll(std::span<ibv_wc> out) {
  if (std::exchange(tells_break_, false)) return -1;
  int filled = 0;
  if (++first_ >= queues_.size()) first_ = 0;
  std::size_t at = first_;
  for (std::size_t left = queues_.size(); left > 0 && filled < static_cast<int>(out.size()); --left) {
    Queue& queue = queues_[at];
    if (++at == queues_.size()) at = 0;
    if (queue.broken) continue;
    const auto rest = out.subspan(static_cast<std::size_t>(filled));
    const int count = domain_->verbs().poll_cq(queue.cq, static_cast<int>(rest.size()), rest.data());
    if (count < 0) {
      queue.broken = true;
      if (filled == 0) return -1;
      tells_break_ = true;  // Those of other queues are taken already, and nobody would see them again.
      break;
    }
    filled += count;
  }
  return filled;
}

bool CqPool::arm() {
  return std::ranges::all_of(
      queues_, [this](const Queue& queue) { return queue.broken || domain_->verbs().req_notify_cq(queue.cq, 0) == 0; });
}

void CqPool::drain_events() {
  ibv_cq* cq = nullptr;
  while (domain_->verbs().get_cq_event(channel_, &cq) == 0) domain_->verbs().ack_cq_events(cq, 1);
}

}  // namespace hawser::backend::verbs
