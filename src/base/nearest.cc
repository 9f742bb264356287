#include "base/nearest.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"

namespace hawser::base {
namespace {

constexpr std::size_t kWordMax = 64;  ///< A longer word is nobody's mistyped one.

/// Damerau's and Levenshtein's distance, where no part is edited twice ("optimal string alignment").
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

/// Edits that make one of the other. A beginning, and a name with or without what it is below, counts as one.
std::size_t edits_of(std::string_view word, std::string_view candidate) {
  const auto is_below = [](std::string_view whole, std::string_view last) {
    return whole.size() > last.size() && whole.ends_with(last) && whole[whole.size() - last.size() - 1] == '.';
  };
  if (candidate.starts_with(word) || is_below(word, candidate) || is_below(candidate, word)) return 1;
  return distance(word, candidate);
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kWordMax) return {};
  std::string best;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;  // As near as this counts no more.
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edits_of(word, candidate);
    if (edits >= least) continue;
    least = edits;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? std::string() : base::format(" Did you mean '{}'?", near);
}

}  // namespace hawser::base
