// hawser top: what the agents of this user on this host do, from their status pages.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>

#include "base/events.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/live.h"
#include "cli/pages.h"
#include "cli/status_exit.h"
#include "cli/top_view.h"

namespace hawser::cli {
namespace {

constexpr const char* kTopExamples =
    "  hawser top\n"
    "  hawser top --once\n"
    "  hawser top --once --json | jq '.agents[] | select(.state == \"stuck\")'\n"
    "  hawser top --dead prefill-0\n"
    "  hawser top --live prefill-0\n"
    "  hawser top trainer\n"
    "  hawser top --post-mortem\n"
    "  hawser top trainer --post-mortem --json > ranks.json";

constexpr const char* kTopNote =
    "\nWith the name of a world: its ranks on this host, from their flight recorders, and which rank the\n"
    "others wait for. Recorders of ranks that died stay an hour (--post-mortem where all have). With\n"
    "--post-mortem the name may be an agent's, for all worlds that it was in; without a name all are shown.\n"
    "\nShown are agents of this user whose pages are in a folder that this process sees: those of other\n"
    "containers are not. A page tells an agent's state once a second while the agent works; that of an\n"
    "agent that died stays an hour (--dead). With --live each agent's process is asked, by a socket that\n"
    "this user alone can reach: then all peers and all that waits are shown, and not 16 of each. States: up; asleep "
    "(it waits for work); stopped (its process\n"
    "is, by a signal); stuck (for 3 s it neither worked nor slept); unpolled (the same, and it has no\n"
    "driver: nobody polls it); dead.\n";

constexpr Duration kIntervalMin = std::chrono::milliseconds(10);

struct TopWanted {
  Common common;
  std::string name;  ///< Empty: all agents.
  std::string folder;
  Duration interval = std::chrono::seconds(1);
  bool once = false;
  bool dead = false;
  bool live = false;
  bool post_mortem = false;
};

/// Until the next look, or Ctrl-C.
void pause(Duration time) {
  const Instant until = Clock::steady().now() + time;
  const Result<base::Epoll> nothing = base::Epoll::open();
  for (Instant now = Clock::steady().now(); nothing && !interrupted() && now < until; now = Clock::steady().now()) {
    std::array<epoll_event, 1> events;
    (void)nothing->wait(events, std::min<Duration>(until - now, std::chrono::milliseconds(100))).has_value();
  }
}

void show(const Look& now, const Look& before, const TopWanted& wanted) {
  const Instant at = Clock::steady().now();
  if (wanted.common.json) {
    Json json = document("top");
    json["agents"] = top_rows(now, before, at);
    if (wanted.once) {
      print(json);
    } else {
      print_line(json);
    }
    return;
  }
  std::string text = top_text(now, before, at) + not_live_text(now, at);
  if (now.empty()) text += "no agent runs here\n";
  // Home, the text, and nothing below it: what was there before does not flicker.
  const bool redraws = !wanted.once && ::isatty(STDOUT_FILENO) == 1;
  if (redraws) fmt::print("\x1b[H\x1b[2J");
  fmt::print("{}{}", text, wanted.once || redraws ? "" : "\n");
  std::fflush(stdout);
}

void show_worlds(const std::vector<WorldLook>& worlds, const TopWanted& wanted) {
  const Instant at = Clock::steady().now();
  if (wanted.common.json) {
    Json json = document("top");
    json["worlds"] = Json::array();
    for (const WorldLook& look : worlds) json["worlds"].push_back(world_json(look, at));
    if (wanted.once || wanted.post_mortem) return print(json);
    return print_line(json);
  }
  const bool redraws = !wanted.once && !wanted.post_mortem && ::isatty(STDOUT_FILENO) == 1;
  if (redraws) fmt::print("\x1b[H\x1b[2J");
  for (const WorldLook& look : worlds) fmt::print("{}\n", world_text(look, at));
  std::fflush(stdout);
}

Look look_now(const TopWanted& wanted, const std::vector<std::string>& places) {
  Look pages = look_at(places, wanted.name, wanted.dead);
  const std::vector<WorldLook> worlds = look_at_worlds(places, Recorded::kAll, {}, wanted.dead);
  for (AgentLook& agent : pages) agent.worlds = worlds_on(worlds, agent);
  return wanted.live ? ask_live(std::move(pages)) : pages;
}

std::vector<WorldLook> worlds_now(const TopWanted& wanted, const std::vector<std::string>& places) {
  const bool dead = wanted.dead || wanted.post_mortem;
  if (wanted.name.empty() && !wanted.post_mortem) return {};
  std::vector<WorldLook> worlds =
      look_at_worlds(places, wanted.name.empty() ? Recorded::kAll : Recorded::kWorld, wanted.name, dead);
  if (worlds.empty() && wanted.post_mortem) worlds = look_at_worlds(places, Recorded::kAgent, wanted.name, dead);
  return worlds;
}

/// Nothing: there is no world to show.
std::optional<int> run_worlds(const TopWanted& wanted, const std::vector<std::string>& places) {
  std::vector<WorldLook> worlds = worlds_now(wanted, places);
  if (worlds.empty()) return std::nullopt;
  show_worlds(worlds, wanted);
  while (!wanted.once && !wanted.post_mortem && !worlds.empty()) {
    pause(wanted.interval);
    if (interrupted()) break;
    worlds = worlds_now(wanted, places);
    show_worlds(worlds, wanted);
  }
  return kExitOk;
}

int run_top(const TopWanted& wanted) {
  if (wanted.interval < kIntervalMin) {
    return fail("top", wanted.common.json,
                Status(Code::kInvalid, "--interval is below 10ms").with_advice("pages change once a second"));
  }
  const Result<std::vector<std::string>> places = page_folders(wanted.common.config, wanted.folder);
  if (!places) return fail("top", wanted.common.json, places.error());
  catch_interrupts();
  if (const std::optional<int> done = run_worlds(wanted, *places)) return *done;
  if (wanted.post_mortem) {
    return fail(
        "top", wanted.common.json,
        Status(Code::kNotFound, wanted.name.empty() ? "no rank has left a flight recorder here"
                                                    : "neither a rank of a world nor an agent '" + wanted.name +
                                                          "' has left a flight recorder here")
            .with_advice(
                "give the name of a world or an agent; recorders stay an hour after a rank died, in the folder of "
                "its status page"));
  }
  Look before = look_now(wanted, *places);
  do {
    // Pages change once a second, so a shorter look sees no rates.
    pause(wanted.interval);
    if (interrupted()) break;
    Look now = look_now(wanted, *places);
    if (wanted.once && !wanted.name.empty() && now.empty()) {
      return fail("top", wanted.common.json,
                  Status(Code::kNotFound, "no agent '" + wanted.name + "' of this user runs here")
                      .with_advice("`hawser top --once` lists those that do; --dead shows those that died"));
    }
    show(now, before, wanted);
    before = std::move(now);
  } while (!wanted.once);
  return kExitOk;
}

}  // namespace

void add_top(Shell& shell) {
  auto wanted = std::make_shared<TopWanted>();
  CLI::App* command = add_command(shell, "top", "Show what the agents of this user on this host do, and who waits",
                                  kTopExamples, wanted->common);
  command->add_option("name", wanted->name, "Show the ranks of this world, or the agents of this name only");
  command->add_flag("--once", wanted->once, "Look twice, an interval apart, print, and end");
  command->add_flag("--live", wanted->live, "Ask the agents' processes instead of reading their pages");
  command->add_flag("--dead", wanted->dead, "Show agents that died within the last hour, too");
  command->add_flag(
      "--post-mortem", wanted->post_mortem,
      "What the ranks of a world, of an agent's worlds, or of all worlds did last, also where all are dead");
  command->add_option("--folder", wanted->folder, "Look for pages here (default: where agents put them)");
  add_duration(command, "--interval", wanted->interval, "Between two looks (default 1s; pages change once a second)");
  command->footer(command->get_footer() + kTopNote);
  on_run(shell, command, [wanted] { return run_top(*wanted); });
}

}  // namespace hawser::cli
