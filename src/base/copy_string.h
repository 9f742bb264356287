#pragma once

// Copies by the processor's own string instruction, where it has one.

#include <cstddef>
#include <cstring>

namespace hawser::base {

inline void string_move(std::byte* target, const std::byte* source, std::size_t size) noexcept {
#if defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(size) : : "memory");
#else
  std::memcpy(target, source, size);
#endif
}

}  // namespace hawser::base
