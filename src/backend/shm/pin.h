#pragma once

// Pins: how an initiator that copies in a peer's memory shows that it is inside, so that the owner can take the memory
// back and know when nobody touches it.
//
// The initiator stores what it enters in its pin, which the owner can read, and then looks whether the region's gate
// still shows the generation it means. The owner shuts the gate and then looks at the pins. Each side stores before it
// loads, so at least one sees the other. That takes a fence on both sides; where both processes are registered for
// membarrier, the owner's membarrier is the fence of both, and a pin costs the initiator two plain stores.
//
// Thread rule: one thread per pin. Lifetime: pin and gate lie in shared memory that outlives the call.

#include <cstdint>

#include "backend/shm/atomics.h"

namespace hawser::backend::shm {

/// Never 0: generations begin at 1.
constexpr std::uint64_t pin_value(std::uint32_t index, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | index;
}

/// How the initiator orders its pin before its look at the gate.
enum class PinFence : std::uint8_t {
  kLight,  ///< The closer calls membarrier.
  kFull,
};

/// True: inside; call leave_pin() when the last store is done (streamed stores fenced). False: the region is closed.
template <typename A>
bool enter_pin(typename A::Word& pin, const typename A::GateWord& gate, std::uint32_t index, std::uint32_t generation,
               PinFence fence) {
  pin.store(pin_value(index, generation), std::memory_order_release);
  if (fence == PinFence::kLight) {
    A::light_fence();
  } else {
    A::fence();
  }
  if (gate.load(std::memory_order_acquire) == generation) [[likely]]
    return true;
  pin.store(0, std::memory_order_release);
  return false;
}

template <typename A>
void leave_pin(typename A::Word& pin) {
  pin.store(0, std::memory_order_release);
}

/// For the owner, after the gate was shut and the fence or membarrier is done.
template <typename A>
bool is_inside(const typename A::Word& pin, std::uint32_t index, std::uint32_t generation) {
  return pin.load(std::memory_order_acquire) == pin_value(index, generation);
}

}  // namespace hawser::backend::shm
