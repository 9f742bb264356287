#include "compat/backend_set.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

void BackendSet::add(CreatedBackend made) {
  const Plugin* const plugin = made.plugin;
  if (all_.empty()) first_ = plugin;
  all_.push_back(std::move(made));
  if (plugin->remote) remote_.fetch_or(BackendMask{1} << (all_.size() - 1), std::memory_order_acq_rel);
  count_.store(all_.size(), std::memory_order_release);
}

bool BackendSet::has(const Plugin& plugin) const {
  return std::ranges::any_of(all_, [&](const CreatedBackend& one) { return one.plugin == &plugin; });
}

Backend BackendSet::first(BackendMask mask) const { return (mask & 1) != 0 && has_any() ? handle(*first_) : Backend(); }

Backend BackendSet::first_of(BackendMask mask) const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if ((mask >> i & 1) != 0) return handle(*all_[i].plugin);
  }
  return {};
}

Result<BackendMask> BackendSet::named(std::string_view call, const OptArgs* opt) const {
  if (opt == nullptr || opt->backends.empty()) return kAllBackends;
  BackendMask mask = 0;
  for (const Backend& wanted : opt->backends) {
    const auto found =
        std::ranges::find_if(all_, [&](const CreatedBackend& one) { return one.plugin->name == wanted.name(); });
    if (wanted.agent() != owner_ || found == all_.end()) {
      return refusal(NixlCode::kInvalidParam, call,
                     base::format("backend '{}' in the options is not one of agent '{}'", wanted.name(), agent_));
    }
    mask |= BackendMask{1} << (found - all_.begin());
  }
  return mask;
}

Result<BackendMask> BackendSet::takers(std::string_view call, MemType type, const OptArgs* opt) const {
  if (all_.empty()) return refusal(NixlCode::kNotFound, call, "the agent has no backend yet");
  HAWSER_TRY_ASSIGN(const BackendMask wanted, named(call, opt));
  BackendMask mask = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (takes(*all_[i].plugin, type)) mask |= BackendMask{1} << i;
  }
  if ((mask & wanted) != 0) return mask & wanted;
  return refusal(NixlCode::kNotFound, call,
                 base::format("no backend of agent '{}' takes {} memory", agent_, to_string(type)));
}

std::string BackendSet::names() const {
  std::string names;
  for (const CreatedBackend& one : all_) names.append(names.empty() ? "" : ", ").append(one.plugin->name);
  return names;
}

}  // namespace compat
HAWSER_NAMESPACE_END
