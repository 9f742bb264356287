#pragma once

// What `hawser top` shows: agents' status pages (agent/status_teller.h) as a screen of text, with rates from two looks.
//
// Thread rule: pure functions.

#include <map>
#include <string>
#include <vector>

#include <hawser/time.h>
#include <nlohmann/json.hpp>

#include "base/status_page.h"
#include "cli/json_out.h"
#include "runtime/flight_file.h"

namespace hawser::cli {

/// One look at one agent.
struct AgentLook {
  std::string page;  ///< The path of its page.
  base::StatusReading reading;
  nlohmann::json status;  ///< Its text, parsed; null: nothing was published yet, or it cannot be read.
  bool is_live = false;   ///< The status is what its process said when it was asked.
  std::string not_live;   ///< Why it is not, though its process was asked.
  std::vector<runtime::Flight> worlds = {};  ///< The flight recorders of its ranks, one for each world.
};
using Look = std::vector<AgentLook>;

/// `text` is what the page says. Text that is no JSON object of the schema hawser.status/1 gives null.
AgentLook agent_look(std::string page, base::StatusReading reading);

/// How an agent is doing: "up"; "asleep" (it waits for work, as it should); "stopped" (its process was, by a signal);
/// "stuck" (for 3 s it neither worked nor slept); "unpolled" (the same, and no driver turns it: nobody polls); "dead".
std::string state_of(const AgentLook& agent, Instant now);

/// A line for each thing in the agent that waits for another; `of_peer`: for this peer alone, if it names one.
std::string waiting_rows(const AgentLook& agent, Instant at, const std::string& of_peer);

/// `before`: an earlier look, for rates; empty: no rates. Lines end with newlines and have no other control characters,
/// whatever names agents have.
std::string top_text(const Look& now, const Look& before, Instant at);
/// The agents as the rows that --json prints.
Json top_rows(const Look& now, const Look& before, Instant at);

}  // namespace hawser::cli
