// hawser metrics: the figures of a running agent, as text for Prometheus.

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/live.h"
#include "cli/page_fields.h"
#include "cli/pages.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr const char* kMetricsExamples =
    "  hawser metrics prefill-0\n"
    "  hawser metrics prefill-0 | grep hawser_agent_bytes_total\n"
    "  hawser metrics prefill-0 --process 4711 > /var/lib/node_exporter/prefill-0.prom";

constexpr const char* kMetricsNote =
    "\nAsks the agent's process, by a socket that this user alone can reach. The text is what the process\n"
    "serves over HTTP where HAWSER_METRICS is set (docs/metrics.md), and its last line is \"# EOF\". Whoever\n"
    "makes progress for the agent answers: a process that is stopped, or polls nothing, does not.\n";

struct MetricsWanted {
  Common common;
  std::string agent, folder;
  std::uint32_t process = 0;  ///< 0: any.
};

/// The one agent that is meant.
Result<AgentLook> choose(const MetricsWanted& wanted, Look agents) {
  if (wanted.process != 0) {
    std::erase_if(agents, [&](const AgentLook& each) { return each.reading.process != wanted.process; });
  }
  if (agents.size() == 1) return std::move(agents.front());
  if (agents.empty()) {
    return Status(Code::kNotFound, "no agent '" + wanted.agent + "' of this user runs here" +
                                       (wanted.process != 0 ? " in that process" : ""))
        .with_advice("`hawser top --once` lists those that do");
  }
  std::string processes;
  for (const AgentLook& each : agents) processes += fmt::format(" {}", each.reading.process);
  return Status(Code::kInvalid,
                fmt::format("{} agents are called '{}', in the processes{}", agents.size(), wanted.agent, processes))
      .with_advice("choose one by --process, or give each agent a name of its own");
}

Status failed(const AgentLook& agent, Code code, const std::string& why) {
  return Status(code, fmt::format("agent '{}' (process {}) told nothing: {}", text(agent.status, "agent"),
                                  agent.reading.process, why))
      .with_advice("`hawser top --once` shows what it did last; so does a page that is old");
}

Result<std::string> metrics_of(const AgentLook& agent) {
  const Result<std::string> socket = socket_of(agent);
  if (!socket) return socket.error();
  const Question question{*socket, "metrics " + incarnation_of(agent)};
  Reply reply = std::move(ask({&question, 1}).front());
  if (!reply.status.ok()) return failed(agent, reply.status.code(), std::string(reply.status.message()));
  if (reply.text.starts_with("# busy")) {
    return failed(agent, Code::kTimedOut, "a thread of its process has held the agent for 500 ms");
  }
  if (!reply.text.ends_with("\n# EOF\n")) {
    return failed(agent, Code::kDisconnected, "its process ended the answer before its end");
  }
  return std::move(reply.text);
}

int run_metrics(const MetricsWanted& wanted) {
  const Result<std::vector<std::string>> places = page_folders(wanted.common.config, wanted.folder);
  if (!places) return fail("metrics", wanted.common.json, places.error());
  catch_interrupts();
  const Result<AgentLook> agent = choose(wanted, look_at(*places, wanted.agent, false));
  if (!agent) return fail("metrics", wanted.common.json, agent.error());
  const Result<std::string> all = metrics_of(*agent);
  if (!all) return fail("metrics", wanted.common.json, all.error());
  if (wanted.common.json) {
    Json json = document("metrics");
    json["agent"] = wanted.agent;
    json["process"] = agent->reading.process;
    json["text"] = *all;
    print(json);
  } else {
    fmt::print("{}", *all);
  }
  return kExitOk;
}

}  // namespace

void add_metrics_command(Shell& shell) {
  auto wanted = std::make_shared<MetricsWanted>();
  CLI::App* command = add_command(shell, "metrics", "Print the figures of a running agent as text for Prometheus",
                                  kMetricsExamples, wanted->common);
  command->add_option("agent", wanted->agent, "An agent of this user on this host")->required();
  command->add_option("--process", wanted->process, "Of several agents of this name, the one in this process");
  command->add_option("--folder", wanted->folder, "Look for pages here (default: where agents put them)");
  command->footer(command->get_footer() + kMetricsNote);
  on_run(shell, command, [wanted] { return run_metrics(*wanted); });
}

}  // namespace hawser::cli
