#include "backend/verbs/path/way_search.h"

#include <algorithm>

#include "base/format.h"

namespace hawser::backend::verbs {

void WaySearch::begin() {
  if (is_met_ && !is_proved_) ++in_vain_;
  is_met_ = is_proved_ = false;
}

void WaySearch::on_met(std::string_view from, std::string_view to) {
  is_met_ = true;
  std::string way = base::format("{} to {}", from, to);
  if (!tried_.empty() && tried_.back().starts_with(way)) return;
  if (tried_.size() == kWaysMax) tried_.erase(tried_.begin());
  tried_.push_back(std::move(way));
}

void WaySearch::on_failed(std::string_view why) {
  if (!is_met_ || is_proved_ || tried_.empty() || tried_.back().find(" (") != std::string::npos) return;
  tried_.back() += base::format(" ({})", why);
}

bool WaySearch::on_broken(std::uint8_t mtu, bool lost_full, bool carried_full) {
  if (!lost_full || carried_full || mtu <= kMtuLeast) return false;
  mtu_max_ = static_cast<std::uint8_t>(mtu - 1);
  return true;
}

void WaySearch::forget() {
  in_vain_ = 0;
  mtu_max_ = 0;
  tried_.clear();
}

bool WaySearch::has_more(std::uint32_t pairs) const {
  const std::uint32_t failed = in_vain_ + (is_met_ && !is_proved_ ? 1 : 0);
  return is_met_ && failed < std::min(pairs, kWaysMax);
}

std::string WaySearch::tried() const {
  std::string text;
  for (const std::string& way : tried_) text += (text.empty() ? "" : "; ") + way;
  return text;
}

}  // namespace hawser::backend::verbs
