#pragma once

// The answer to a call with wrong words: it names the wrong word, and what was probably meant.
//
// Thread rule: pure functions.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hawser::cli {

/// `arguments` are the call's, without the program. Names the command that the parser was in.
struct UsageError {
  std::string command;  ///< Empty: none was recognised.
  std::string text;     ///< One sentence or two.
};
UsageError explain_usage(const CLI::App& root, const std::vector<std::string>& arguments, const CLI::ParseError& error);

}  // namespace hawser::cli
