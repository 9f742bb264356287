#include "identity/name_rules.h"

#include <algorithm>

#include "base/format.h"
#include "base/shown.h"

namespace hawser::identity {
namespace {

/// Whether `agent` is the path of the identity, or beneath it.
bool is_beneath(std::string_view agent, std::string_view path) {
  if (path.empty() || !agent.starts_with(path)) return false;
  return agent.size() == path.size() || agent[path.size()] == '/';
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {  // The last * takes one more.
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<NameRules> NameRules::parse(std::string_view text) {
  NameRules rules;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t at = one.find('=');
    if (at == 0 || at == std::string_view::npos || at + 1 == one.size() || !one.starts_with("spiffe://")) {
      return Status(Code::kInvalid, base::format("'{}' is no rule for names of agents", base::shown(one)))
          .with_advice("write IDENTITY=NAMES, such as spiffe://example.org/ns/inference/*=decoder-*");
    }
    rules.rules_.push_back({std::string(one.substr(0, at)), std::string(one.substr(at + 1))});
  }
  return rules;
}

bool NameRules::allows(const Holder& holder, std::string_view agent) const {
  if (is_beneath(agent, holder.id.path())) return true;
  if (std::ranges::any_of(holder.dns, [agent](const std::string& each) { return matches(each, agent); })) return true;
  return std::ranges::any_of(
      rules_, [&](const Rule& rule) { return matches(rule.identity, holder.id.text()) && matches(rule.names, agent); });
}

std::string NameRules::names_of(const Holder& holder) const {
  const std::string path(holder.id.path());
  std::string text = base::format("{0}, {0}/*", path);
  for (const std::string& each : holder.dns) text += ", " + base::shown(each);
  for (const Rule& rule : rules_) {
    if (matches(rule.identity, holder.id.text())) text += ", " + rule.names;
  }
  return text;
}

}  // namespace hawser::identity
