#include "backend/stream/lobby.h"

#include <algorithm>

#include "base/check.h"

namespace hawser::backend::stream {

Instant Lobby::next_room() const { return guests_.empty() ? Instant::min() : guests_.front().since + kHeldAtLeast; }

Lobby::Guest Lobby::enter(Guest guest, std::uint64_t source, bool is_kin, Instant now) {
  HAWSER_ASSERT(has_room(now), "somebody is let in who has no room");
  Guest out = nullptr;
  if (!is_kin && count_of(source) >= kPlacesPerSource) out = take_oldest(false, &source, now);
  if (out == nullptr && guests_.size() >= kPlaces) out = take_oldest(false, nullptr, now);
  if (out == nullptr && guests_.size() >= kPlaces) out = take_oldest(true, nullptr, now);
  guests_.push_back({.guest = guest, .source = source, .is_kin = is_kin, .since = now});
  if (!is_kin && count_of(source) > kPlacesPerSource) surplus_at_ = std::min(surplus_at_, now);  // It looks for itself.
  return out;
}

std::size_t Lobby::count_of(std::uint64_t source) const {
  const auto is_it = [source](const Entry& entry) { return !entry.is_kin && entry.source == source; };
  return static_cast<std::size_t>(std::ranges::count_if(guests_, is_it));
}

Lobby::Guest Lobby::take_surplus(Instant now) {
  if (now < surplus_at_) return nullptr;
  surplus_at_ = Instant::max();
  const auto found = std::ranges::find_if(
      guests_, [this](const Entry& entry) { return !entry.is_kin && count_of(entry.source) > kPlacesPerSource; });
  if (found == guests_.end()) return nullptr;
  surplus_at_ = found->since + kHeldAtLeast;
  if (now < surplus_at_) return nullptr;
  const Guest out = found->guest;
  guests_.erase(found);
  return out;
}

Lobby::Guest Lobby::take_oldest(bool is_kin, const std::uint64_t* source, Instant now) {
  const auto found = std::ranges::find_if(guests_, [&](const Entry& entry) {
    return entry.is_kin == is_kin && (source == nullptr || entry.source == *source);
  });
  if (found == guests_.end() || now < found->since + kHeldAtLeast) return nullptr;
  const Guest out = found->guest;
  guests_.erase(found);
  return out;
}

void Lobby::leave(Guest guest) {
  std::erase_if(guests_, [guest](const Entry& entry) { return entry.guest == guest; });
}

void Lobby::rename(Guest from, Guest to) {
  for (Entry& entry : guests_) {
    if (entry.guest == from) entry.guest = to;
  }
}

}  // namespace hawser::backend::stream
