#include "cli/pages.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "base/home.h"
#include "base/shown.h"
#include "base/status_page.h"
#include "base/try.h"
#include "cli/command.h"

namespace hawser::cli {

Result<std::vector<std::string>> page_folders(const std::string& config_file, const std::string& folder) {
  std::error_code unseen;
  if (!folder.empty() && !std::filesystem::is_directory(folder, unseen)) {
    return Status(Code::kNotFound, "there is no folder '" + base::shown(folder) + "'")
        .with_advice("leave --folder out for the folder that agents of this user use by default");
  }
  if (!folder.empty()) return std::vector{folder};
  HAWSER_TRY_ASSIGN(const LoadedConfig config, configuration(config_file));
  const std::string& place = config.options.status_page;
  if (place != "auto" && place != "off") return std::vector{place};
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  return base::existing_homes(base::usual_homes(runtime == nullptr ? "" : runtime));
}

Look look_at(const std::vector<std::string>& folders, const std::string& name, bool dead) {
  Look found;
  for (const std::string& folder : folders) {
    for (const std::string& page : base::list_status_pages(folder)) {
      Result<base::StatusReading> reading = base::read_status_page(page);
      if (!reading || (!reading->is_alive && !dead)) continue;
      AgentLook agent = agent_look(page, std::move(*reading));
      const bool is_named = !agent.status.is_null() && agent.status.value("agent", "") == name;
      if (name.empty() || is_named) found.push_back(std::move(agent));
    }
  }
  const auto name_of = [](const AgentLook& agent) {
    return agent.status.is_null() ? std::string() : agent.status.value("agent", "");
  };
  std::ranges::stable_sort(found, [&](const auto& a, const auto& b) { return name_of(a) < name_of(b); });
  return found;
}

namespace {

/// By name: formations of worlds of different names are never one, whatever their numbers are.
std::map<std::string, std::vector<runtime::Flight>> all_flights(const std::vector<std::string>& folders) {
  std::map<std::string, std::vector<runtime::Flight>> all;
  for (const std::string& folder : folders) {
    for (const std::string& path : runtime::list_flights(folder)) {
      Result<runtime::Flight> flight = runtime::read_flight(path);
      if (!flight) continue;
      const std::string world = runtime::text_of(flight->header.world_name);
      all[world].push_back(std::move(*flight));
    }
  }
  return all;
}

bool is_on(const WorldLook& look, const std::string& agent) {
  return std::ranges::any_of(
      look, [&](const runtime::Flight& flight) { return runtime::text_of(flight.header.agent) == agent; });
}

}  // namespace

std::vector<WorldLook> look_at_worlds(const std::vector<std::string>& folders, Recorded of, const std::string& name,
                                      bool dead) {
  std::vector<WorldLook> all;
  for (auto& [world, flights] : all_flights(folders)) {
    if (of == Recorded::kWorld && world != name) continue;
    std::ranges::move(formations(std::move(flights)), std::back_inserter(all));
  }
  std::erase_if(all, [&](const WorldLook& look) {
    const bool is_gone = !dead && std::ranges::none_of(look, &runtime::Flight::is_alive);
    return is_gone || (of == Recorded::kAgent && !is_on(look, name));
  });
  return all;
}

std::vector<runtime::Flight> worlds_on(const std::vector<WorldLook>& all, const AgentLook& agent) {
  std::vector<runtime::Flight> its;
  const std::string name = agent.status.is_null() ? "" : agent.status.value("agent", "");
  for (const WorldLook& look : all) {
    for (const runtime::Flight& flight : look) {
      const bool is_its =
          runtime::text_of(flight.header.agent) == name && flight.header.process == agent.reading.process;
      if (is_its) its.push_back(flight);
    }
  }
  return its;
}

}  // namespace hawser::cli
