#include "backend/sim/mapped.h"

#include <algorithm>

#include "backend/sim/mapped_port.h"
#include "base/planted.h"

namespace hawser::sim {

Status MappedHub::listen(const std::string& address, MappedPort* port) {
  const bool fresh = listening_.try_emplace(address, port).second;
  return fresh ? Status() : Status(Code::kInvalid, "somebody listens on " + address + " already");
}

void MappedHub::leave(MappedPort* port) {
  std::erase_if(listening_, [port](const auto& entry) { return entry.second == port; });
}

MappedPort* MappedHub::find(std::string_view address) {
  const auto at = listening_.find(address);
  return at == listening_.end() ? nullptr : at->second;
}

void MappedHub::wake(const std::shared_ptr<Host>& host) {
  world_.after(options_.wake_latency, [weak = std::weak_ptr(host)] {
    if (const auto alive = weak.lock()) alive->wake();
  });
}

void MappedHub::add(const std::shared_ptr<MappedLink>& link) {
  std::erase_if(links_, [](const auto& weak) { return weak.expired(); });
  links_.push_back(link);
}

std::optional<MappedHub::Phase> MappedHub::phase_of(const std::shared_ptr<Host>& from,
                                                    const std::shared_ptr<Host>& to) const {
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (!link || link->hosts[0] != from || link->hosts[1] != to || link->seen_up || !link->ended.ok()) continue;
    if (link->ports[0] != nullptr) return link->ports[1] == nullptr ? Phase::kKnocking : Phase::kAnswered;
  }
  return std::nullopt;
}

void MappedHub::sever(const std::shared_ptr<Host>& one, const std::shared_ptr<Host>& other, std::array<bool, 2> loses) {
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (!link || !link->ended.ok()) continue;
    const bool is_reversed = link->hosts[0] == other && link->hosts[1] == one;
    if (!is_reversed && (link->hosts[0] != one || link->hosts[1] != other)) continue;
    link->ended = Status(Code::kDisconnected, "what both share broke").with_scope(Scope::kPath);
    for (std::size_t end = 0; end < 2; ++end) {
      if (!loses[is_reversed ? 1 - end : end]) continue;
      link->rings[end].clear();
      link->ring_used[end] = 0;
    }
    for (const auto& host : link->hosts) wake(host);
  }
}

void MappedHub::died(const std::shared_ptr<Host>& host) {
  std::erase_if(listening_, [&](const auto& entry) { return entry.second->host() == host; });
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (!link) continue;
    for (int end = 0; end < 2; ++end) {
      if (link->hosts[end] != host) continue;
      link->ports[end] = nullptr;
      const Duration notice(world_.rng().range(0, options_.death_notice_max.count()));
      world_.after(notice, [link, end] {
        link->noticed_death[end] = true;
        if (!base::planted(base::Planted::kDeadPinKept)) link->pins[end].reset();  // A dead holder holds nothing.
        link->views[end].clear();
        link->hosts[1 - end]->wake();
      });
    }
  }
}

}  // namespace hawser::sim
