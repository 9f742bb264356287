#pragma once

// What POSIX's parameters mean for Hawser's backend file, which answers to its name: the engine and how many operations
// are in flight. All else changes nothing.
//
// Thread rule: pure functions.

#include <string>
#include <vector>

#include <hawser/backends.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct PosixChoice {
  Params file;  ///< Of the backend file: `engine`, `depth`; what is not in it stays as it is.
  std::vector<std::string> warnings;
};

/// kInvalidParam for a flag that is neither yes nor no, and a queue size that is no number or 0.
Result<PosixChoice> choose_for_posix(const Params& given);

}  // namespace compat
HAWSER_NAMESPACE_END
