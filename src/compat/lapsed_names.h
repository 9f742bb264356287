#pragma once

// LapsedNames: agents that the exchange of metadata invalidated and the user did not. Where the user invalidates one of
// them, too, that is no error.
//
// Thread rule: one thread at a time. Bound: kNamesMax; of more than that some are forgotten.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

class LapsedNames {
 public:
  static constexpr std::size_t kNamesMax = 4096;

  void add(std::string_view name) {
    if (names_.size() == kNamesMax) names_.erase(names_.begin());
    names_.emplace(name);
  }
  /// True: it was there.
  bool take(std::string_view name) { return names_.erase(std::string(name)) > 0; }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
