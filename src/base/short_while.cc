#include "base/short_while.h"

#include <array>
#include <string_view>

#include "base/small_file.h"

namespace hawser::base {
namespace {

/// The kernel takes these sources only after it has found the counter to be steady and the same on all cores.
bool is_by_counter(std::string_view source) {
  return source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
}

}  // namespace

bool counter_keeps_time() noexcept {
#if defined(__x86_64__)
  constexpr bool kIsRead = true;
#else
  constexpr bool kIsRead = false;  // Other processors' counters mostly run too slowly to tell so little time.
#endif
  static const bool keeps = [] {
    std::array<char, kSmallFileMax> room;
    return kIsRead &&
           is_by_counter(read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", room));
  }();
  return keeps;
}

}  // namespace hawser::base
