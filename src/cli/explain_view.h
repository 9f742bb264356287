#pragma once

// What `hawser explain` shows: the paths between an agent and a peer, why there is no better one, and who waits.
//
// Thread rule: pure functions.

#include <string>

#include <hawser/time.h>

#include "cli/json_out.h"
#include "cli/top_view.h"

namespace hawser::cli {

/// Explains each peer of the page, or `peer` alone. `is_found` tells whether there was one. Lines end with
/// newlines and have no other control characters, whatever names there are.
std::string explain_text(const AgentLook& agent, const std::string& peer, Instant at, bool* is_found);
/// As explain_text, in the rows that --json prints.
Json explain_rows(const AgentLook& agent, const std::string& peer);

}  // namespace hawser::cli
