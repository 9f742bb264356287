#include "config/settings.h"

#include "base/quantity.h"

namespace hawser::config {

void overlay(Settings& settings, Settings over) {
  for (auto& [name, setting] : over) settings[name] = std::move(setting);
}

bool split_words(std::string_view text, std::vector<std::string>& words) {
  words.clear();
  while (true) {
    const std::size_t comma = text.find(',');
    words.push_back(base::to_lower(base::trim(text.substr(0, comma))));
    if (words.back().empty()) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string> backends_named(const Settings& settings) {
  std::vector<std::string> names;
  if (const auto listed = settings.find("backends"); listed != settings.end()) {
    split_words(listed->second.text, names);
  }
  for (auto at = settings.lower_bound(kBackendPrefix); at != settings.end() && at->first.starts_with(kBackendPrefix);
       ++at) {
    const std::size_t dot = at->first.rfind('.');
    if (dot > kBackendPrefix.size()) {
      names.push_back(at->first.substr(kBackendPrefix.size(), dot - kBackendPrefix.size()));
    }
  }
  return names;
}

}  // namespace hawser::config
