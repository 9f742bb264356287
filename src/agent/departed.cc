#include "agent/departed.h"

#include <algorithm>

namespace hawser::agent {

void Departed::add(const base::Id128& incarnation, const Status& cause) {
  if (!deaths_.try_emplace(incarnation, Death{cause, {}}).second) return;
  order_.push_back(incarnation);
  if (order_.size() <= kDepartedMax) return;
  deaths_.erase(order_.front());
  order_.pop_front();
}

void Departed::remove(const base::Id128& incarnation) {
  if (deaths_.erase(incarnation) > 0) std::erase(order_, incarnation);
}

std::optional<Status> Departed::judge(const base::Id128& incarnation, std::uint64_t version) {
  const auto found = deaths_.find(incarnation);
  if (found == deaths_.end()) return std::nullopt;
  std::optional<std::uint64_t>& known = found->second.version;
  if (!known) known = version;
  if (*known == version) return found->second.cause;
  remove(incarnation);
  return std::nullopt;
}

}  // namespace hawser::agent
