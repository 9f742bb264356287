#pragma once

// The answer to a call with wrong words: it names the wrong word, and what was probably meant.
//
// Thread rule: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace hawser::cli {

/// Of `candidates` the nearest to `word` by letters that differ, are missing, added or swapped; empty: none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `arguments` are the call's, without the program. Names the command that the parser was in.
struct UsageError {
  std::string command;  ///< Empty: none was recognised.
  std::string text;     ///< One sentence or two.
};
UsageError explain_usage(const CLI::App& root, const std::vector<std::string>& arguments, const CLI::ParseError& error);

}  // namespace hawser::cli
