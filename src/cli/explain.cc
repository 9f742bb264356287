// hawser explain: which paths lead from an agent of this host to a peer, and why there is no better one.

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/explain_view.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/live.h"
#include "cli/pages.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr const char* kExplainExamples =
    "  hawser explain prefill-0\n"
    "  hawser explain prefill-0 decode-3\n"
    "  hawser explain prefill-0 decode-3 --live\n"
    "  hawser explain prefill-0 decode-3 --json";

constexpr const char* kNote =
    "\nWithout --live it asks nobody: it reads the page that each agent of this user publishes once a second, or every "
    "10 s\n"
    "while nothing happens (see `hawser top`). So it works for a process that hangs, too. A page explains\n"
    "the 16 peers that moved most. A path that is \"no\" comes with its reason and what would mend it;\n"
    "\"not here\" is a backend that this agent could not open at all.\n"
    "\nWith --live it asks the agent's process, by a socket that this user alone can reach. It then tells\n"
    "of all peers, and of this moment. A process that does not answer within a second is named, and its\n"
    "page is shown with its age.\n";

struct Wanted {
  Common common;
  std::string agent, peer, folder;
  bool dead = false;
  bool live = false;
};

Status no_agent(const Wanted& wanted) {
  return Status(Code::kNotFound, "no agent '" + wanted.agent + "' of this user runs here")
      .with_advice("`hawser top --once` lists those that do; --dead shows those that died");
}

Status no_peer(const Wanted& wanted) {
  if (wanted.peer.empty()) {
    return Status(Code::kNotFound, "agent '" + wanted.agent + "' has no session with a peer")
        .with_advice("it opens one when it first moves something, or by connect");
  }
  return Status(Code::kNotFound, "the page of agent '" + wanted.agent + "' tells of no peer '" + wanted.peer + "'")
      .with_advice("a page has the 16 peers that moved most; with --live all are told of");
}

int run_explain(const Wanted& wanted) {
  const Result<std::vector<std::string>> places = page_folders(wanted.common.config, wanted.folder);
  if (!places) return fail("explain", wanted.common.json, places.error());
  Look agents = look_at(*places, wanted.agent, wanted.dead);
  if (agents.empty()) return fail("explain", wanted.common.json, no_agent(wanted));
  catch_interrupts();
  if (wanted.live) agents = ask_live(std::move(agents));
  const Instant at = Clock::steady().now();
  std::string text;
  Json json = document("explain");
  json["peers"] = Json::array();
  for (const AgentLook& agent : agents) {
    bool is_found = false;
    const std::string one = explain_text(agent, wanted.peer, at, &is_found);
    if (is_found) text += (text.empty() ? "" : "\n") + one;
    for (Json& row : explain_rows(agent, wanted.peer)) json["peers"].push_back(std::move(row));
  }
  if (text.empty()) return fail("explain", wanted.common.json, no_peer(wanted));
  if (wanted.common.json) {
    print(json);
  } else {
    fmt::print("{}{}", not_live_text(agents, at), text);
  }
  return kExitOk;
}

}  // namespace

void add_explain(Shell& shell) {
  auto wanted = std::make_shared<Wanted>();
  CLI::App* command =
      add_command(shell, "explain", "Show which paths lead from an agent to a peer, and why no better one",
                  kExplainExamples, wanted->common);
  command->add_option("agent", wanted->agent, "An agent of this user on this host")->required();
  command->add_option("peer", wanted->peer, "Its peer (default: all that it tells of)");
  command->add_flag("--live", wanted->live, "Ask the agent's process instead of reading its page");
  command->add_flag("--dead", wanted->dead, "An agent that died within the last hour, too");
  command->add_option("--folder", wanted->folder, "Look for pages here (default: where agents put them)");
  command->footer(command->get_footer() + kNote);
  on_run(shell, command, [wanted] { return run_explain(*wanted); });
}

}  // namespace hawser::cli
