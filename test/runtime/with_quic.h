#pragma once

// Backends that a suite runs over, and quic where this build has it.

#include <utility>
#include <vector>

namespace hawser {

template <typename Setting>
std::vector<Setting> with_quic(std::vector<Setting> settings, [[maybe_unused]] Setting quic) {
#ifdef HAWSER_WITH_QUIC
  settings.push_back(std::move(quic));
#endif
  return settings;
}

}  // namespace hawser
