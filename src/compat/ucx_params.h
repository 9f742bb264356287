#pragma once

// What UCX's parameters mean for Hawser, which answers to its name: a list of transports limits the backends, a list of
// devices chooses among RDMA devices; all else changes nothing, and what a user may count on says so.
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
  bool is_lenient = false;            ///< Some of them may be absent, as long as one is there.
  std::string devices;                ///< Of the backend verbs, as it takes them; empty: its own choice.
  std::string wants_rdma;             ///< What asked for RDMA, for who is told that there is none; empty: nothing.
  std::vector<std::string> warnings;
};

/// kBackend for what UCX refuses, too: a list of devices that is given and empty.
/// `is_interface` tells whether a name is one of the host's network interfaces, which UCX lists among its devices.
Result<UcxChoice> choose_for_ucx(const Params& given, bool (*is_interface)(const std::string& name));

}  // namespace compat
HAWSER_NAMESPACE_END
