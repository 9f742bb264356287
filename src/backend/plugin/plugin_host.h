#pragma once

// What the host does for plug-ins: the functions behind hawser_plugin_host.
//
// Thread rule: thread-safe, as far as the agent's own table, log and clock are: they all are.

#include <string>

#include <hawser/plugin.h>
#include <hawser/time.h>

#include "backend/region_table.h"
#include "base/log.h"

/// One agent's side of an open backend. Lives as long as that backend is open.
struct hawser_plugin_agent {
  hawser::backend::RegionTable& regions;
  const hawser::base::Logger& log;
  const hawser::Clock& clock;
  std::string label;  ///< Before each line of the log: agent and backend.
};

namespace hawser::backend {

const hawser_plugin_host& plugin_host();

}  // namespace hawser::backend
