#include "sim/user.h"

namespace hawser::simulation {

void User::act(Life& life) {
  if (!life.alive || life.closing) return;
  const std::uint64_t dice = rng_.below(100);
  if (dice < 40) {
    transfers_.submit_new(life);
  } else if (dice < 49) {
    transfers_.submit_again(life);
  } else if (dice < 55) {
    rng_.chance(0.7) ? transfers_.cancel(life) : atomics_.cancel(life);
  } else if (dice < 64) {
    atomics_.ask(life);
  } else if (dice < 78) {
    messages_.send(life);
  } else if (dice < 82) {
    messages_.note(life);
  } else if (dice < 86) {
    regions_.close_one(life);
  } else if (dice < 88) {
    regions_.open_one(life);
  } else if (dice < 89) {
    forget(life);
  } else if (dice < 92) {
    if (Life* other = peers_.pick(life)) theater_.introduce(life, *other);
  } else if (dice < 94) {
    life.greedy_until =
        static_cast<std::uint64_t>((theater_.universe().world.now() + std::chrono::milliseconds(40)).ns());
  }
  const auto now = static_cast<std::uint64_t>(theater_.universe().world.now().ns());
  if (now >= life.greedy_until) read(life);
  theater_.judge().observe(life);
  life.host->wake();
}

void User::forget(Life& life) {
  Life* const other = peers_.pick(life);
  if (other == nullptr) return;
  Bond& bond = life.bonds[other];
  bond.broken = true;
  theater_.universe().world.note("invalidate", life.name, other->number);
  if (const Status gone = life.agent.invalidate(bond.peer); !gone.ok()) {
    theater_.judge().fail(life, "invalidate: " + gone.to_string());
  }
}

}  // namespace hawser::simulation
