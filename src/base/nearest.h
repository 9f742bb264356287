#pragma once

// What somebody probably meant who typed a name that nobody knows.
//
// Thread rule: pure functions.

#include <string>
#include <string_view>
#include <vector>

namespace hawser::base {

/// Of `candidates` the nearest to `word` by letters that differ, are missing, added or swapped; empty: none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// A sentence to append, " Did you mean 'deadline'?"; empty: none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace hawser::base
