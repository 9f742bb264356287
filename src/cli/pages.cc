#include "cli/pages.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

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

std::vector<WorldLook> look_at_world(const std::vector<std::string>& folders, const std::string& name, bool dead) {
  std::vector<runtime::Flight> flights;
  for (const std::string& folder : folders) {
    for (const std::string& path : runtime::list_flights(folder)) {
      Result<runtime::Flight> flight = runtime::read_flight(path);
      if (flight && runtime::text_of(flight->header.world_name) == name) flights.push_back(std::move(*flight));
    }
  }
  std::vector<WorldLook> all = formations(std::move(flights));
  if (!dead) {
    std::erase_if(all, [](const WorldLook& look) { return std::ranges::none_of(look, &runtime::Flight::is_alive); });
  }
  return all;
}

}  // namespace hawser::cli
