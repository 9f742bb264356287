#include "backend/verbs/path/lost_flights.h"

#include <algorithm>
#include <iterator>

namespace hawser::backend::verbs {

void LostFlights::add(std::vector<Flight> flights, std::uint32_t epoch, Instant now, Duration patience) {
  if (flights.empty()) return;
  if (flights_.empty()) {
    quiet_at_ = now + kLinger;
    stuck_at_ = now + patience;
  }
  epoch_ = epoch;
  std::ranges::move(flights, std::back_inserter(flights_));
}

void LostFlights::cancel(std::uint64_t transfer) {
  for (Flight& flight : flights_) flight.cancelled |= flight.chunk.transfer == transfer;
}

std::vector<Flight> LostFlights::take_all() {
  stuck_at_ = quiet_at_ = Instant::max();
  return std::exchange(flights_, {});
}

std::vector<Flight> LostFlights::take_quiet(Instant now) {
  if (now < quiet_at_) return {};
  return take([](const Flight& flight) { return flight.cancelled; });
}

std::vector<Flight> LostFlights::take_counted(std::uint32_t epoch, std::uint64_t counted) {
  if (epoch != epoch_) return {};
  return take([counted](const Flight& flight) { return flight.immediate != 0 && flight.immediate <= counted; });
}

Instant LostFlights::next_deadline() const {
  if (flights_.empty()) return Instant::max();
  const bool has_cancelled = std::ranges::any_of(flights_, &Flight::cancelled);
  return has_cancelled ? std::min(stuck_at_, quiet_at_) : stuck_at_;
}

}  // namespace hawser::backend::verbs
