#include "backend/sim/world.h"

#include <utility>

#include "base/check.h"

namespace hawser::sim {

World::World(WorldOptions options) : options_(std::move(options)), rng_(options_.seed) {}

void World::at(Instant when, std::function<void()> action) {
  HAWSER_ASSERT(events_.size() < kEventsMax, "the world makes events in a loop");
  events_.push({std::max(when, now()), next_number_++, std::move(action)});
}

bool World::step() {
  if (events_.empty()) return false;
  // The queue gives out const references only; the event is taken from it before it runs and makes others.
  auto& top = const_cast<Event&>(events_.top());
  const std::function<void()> action = std::move(top.action);
  clock_->set(top.when);
  events_.pop();
  ++steps_;
  action();
  return true;
}

void World::run_until(Instant until) {
  while (!events_.empty() && events_.top().when <= until) step();
  clock_->set(std::max(until, now()));
}

bool World::run_until(Instant until, const std::function<bool()>& done) {
  while (!done()) {
    if (events_.empty() || events_.top().when > until) {
      clock_->set(std::max(until, now()));
      return false;
    }
    step();
  }
  return true;
}

void World::mix(std::uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    hash_ = (hash_ ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3U;
  }
}

void World::note(std::string_view what, std::string_view who, std::uint64_t a, std::uint64_t b) {
  mix(static_cast<std::uint64_t>(now().ns()));
  for (const char c : what) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  for (const char c : who) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  mix(a);
  mix(b);
  if (!options_.trace) return;
  std::string line(who);
  line.append(" ").append(what);
  line.append(" ").append(std::to_string(a)).append(" ").append(std::to_string(b));
  options_.trace(now(), line);
}

}  // namespace hawser::sim
