#include "agent/engine/service_table.h"

#include <algorithm>

#include "agent/session.h"
#include "base/check.h"

namespace hawser::agent {

void ServiceTable::add(Service& service) {
  HAWSER_ASSERT(count_ < kServicesMax, "an agent has no more services");
  for (const OwnChannel& channel : service.channels()) {
    HAWSER_ASSERT(channel.id < wire::kUserChannelMin && of(channel.id) == nullptr, "a channel has one owner");
    by_channel_[channel.id] = &service;
    channels_.add_own(channel.id, {.credit = channel.window, .priority = channel.priority});
  }
  service.take_place(count_);
  places_[count_++] = &service;
}

bool ServiceTable::pump(Session& session, std::size_t* work) const {
  return !session.has_tenancies ||
         std::ranges::all_of(all(), [&](Service* const service) { return service->pump(session, work); });
}

void ServiceTable::on_control(Session& session) const {
  for (Service* const service : all()) service->on_control(session);
}

void ServiceTable::end(Session& session, const Status& status) const {
  for (Service* const service : all()) service->end(session, status);
}

void ServiceTable::close(const Status& why, Instant now) const {
  for (Service* const service : all()) service->on_closing(why, now);
}

void ServiceTable::note_deadline() {
  for (const Service* const service : all()) earliest_ = std::min(earliest_, service->next_deadline());
}

std::size_t ServiceTable::expire(Instant now) {
  if (now < earliest_) return 0;
  std::size_t ended = 0;
  earliest_ = Instant::max();
  for (Service* const service : all()) {
    if (now >= service->next_deadline()) ended += service->expire(now);
  }
  note_deadline();
  return ended;
}

bool ServiceTable::prepare_sleep() {
  bool is_idle = true;
  for (Service* const service : all()) is_idle = service->prepare_sleep() && is_idle;
  earliest_ = Instant::max();
  note_deadline();
  return is_idle;
}

void ServiceTable::describe(const Visitor& visitor) const {
  for (const Service* const service : all()) service->describe(visitor);
}

}  // namespace hawser::agent
