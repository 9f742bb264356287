// Addresses of tcp in cards from anyone: parsing answers, what it accepts survives being written again, and says where
// to connect or why not.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backend/places/locator.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::backend;
  const auto parsed = parse_locator({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  HAWSER_ASSERT(!parsed->places.empty() && parsed->places.size() <= kPlacesMax, "too few places, or too many");
  const std::string text = to_string(*parsed);
  const auto second = parse_locator(text);
  HAWSER_ASSERT(second && second->host == parsed->host && to_string(*second) == text, "a locator changed");
  for (const bool beyond_host : {false, true}) {
    const auto places = places_from(*parsed, parsed->host, beyond_host);
    HAWSER_ASSERT(!places || !places->empty(), "nowhere to connect, and no reason");
    const auto leaves = [](const auto& place) { return !hawser::base::is_loopback(place); };
    HAWSER_ASSERT(beyond_host || !places || std::none_of(places->begin(), places->end(), leaves), "it left its host");
  }
  return 0;
}
