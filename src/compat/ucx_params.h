#pragma once

// What UCX's parameters mean for Hawser, which answers to its name: a list of transports that is tcp alone or shared
// memory alone limits the backends; all else changes nothing, and what a user may count on says so.
//
// Thread rule: pure functions.

#include <string>
#include <vector>

#include <hawser/backends.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct UcxChoice {
  std::vector<std::string> backends;  ///< Hawser's; empty: no limit.
  std::vector<std::string> warnings;
};

/// kBackend for what UCX refuses, too: a list of devices that is given and empty.
Result<UcxChoice> choose_for_ucx(const Params& given);

}  // namespace compat
HAWSER_NAMESPACE_END
