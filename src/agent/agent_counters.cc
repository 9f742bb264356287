#include "agent/agent_counters.h"

namespace hawser::agent {

void count_inbox(const Inbox& inbox, AgentCounters* counters) {
  counters->events_dropped = inbox.events_dropped();
  counters->notification_bytes_gauge = inbox.notification_bytes();
}

void count_regions(const backend::RegionTable& regions, AgentCounters* counters) {
  for (const auto& entry : regions.all()) {
    if (entry->is_grant) {
      ++counters->grants_gauge;
      continue;
    }
    ++counters->regions_gauge;
    counters->region_bytes_gauge += entry->size;
    if (!entry->pages || !entry->pages->was_asked()) continue;
    const bool is_adopted = entry->pages->file().has_value();
    ++(is_adopted ? counters->regions_adopted_gauge : counters->regions_not_adopted_gauge);
    if (is_adopted) counters->region_bytes_adopted_gauge += entry->size;
  }
}

}  // namespace hawser::agent
