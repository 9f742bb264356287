#include "agent/engine/service_table.h"

#include <algorithm>

#include "agent/session.h"
#include "base/check.h"

namespace hawser::agent {

void ServiceTable::add(Service& service) {
  HAWSER_ASSERT(all_.size() < kServicesMax, "an agent has no more services");
  if (all_.capacity() == 0) all_.reserve(kServicesMax);  // Sessions keep a span of them.
  for (const OwnChannel& channel : service.channels()) {
    HAWSER_ASSERT(channel.id < wire::kUserChannelMin && of(channel.id) == nullptr, "a channel has one owner");
    by_channel_[channel.id] = &service;
    channels_.add_own(channel.id, {.credit = channel.window, .priority = channel.priority});
  }
  service.take_place(all_.size());
  all_.push_back(&service);
}

bool ServiceTable::pump(Session& session, std::size_t* work) const {
  return !session.has_tenancies ||
         std::ranges::all_of(all_, [&](Service* const service) { return service->pump(session, work); });
}

void ServiceTable::on_control(Session& session) const {
  for (Service* const service : all_) service->on_control(session);
}

void ServiceTable::end(Session& session, const Status& status) const {
  for (Service* const service : all_) service->end(session, status);
}

void ServiceTable::note_deadline() {
  for (const Service* const service : all_) earliest_ = std::min(earliest_, service->next_deadline());
}

std::size_t ServiceTable::expire(Instant now) {
  if (now < earliest_) return 0;
  std::size_t ended = 0;
  earliest_ = Instant::max();
  for (Service* const service : all_) {
    if (now >= service->next_deadline()) ended += service->expire(now);
  }
  note_deadline();
  return ended;
}

bool ServiceTable::prepare_sleep() {
  bool is_idle = true;
  for (Service* const service : all_) is_idle = service->prepare_sleep() && is_idle;
  earliest_ = Instant::max();
  note_deadline();
  return is_idle;
}

void ServiceTable::describe(const Visitor& visitor) const {
  for (const Service* const service : all_) service->describe(visitor);
}

}  // namespace hawser::agent
