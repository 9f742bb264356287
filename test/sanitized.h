#pragma once

// Whether the build has a sanitizer: malloc's statistics do not see its heap, and each step takes many times as long.

namespace hawser {

#if defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_SANITIZE_ADDRESS_UNDEFINED)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace hawser
