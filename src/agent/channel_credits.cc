#include "agent/channel_credits.h"

#include "base/format.h"

namespace hawser::agent {

Result<bool> ChannelCredits::on_credit(const wire::Credit& credit) {
  const base::SpinGuard guard(lock_);
  if (all_ == nullptr) all_ = std::make_unique<All>();
  auto at = all_->find(credit.channel);
  if (at == all_->end()) {
    if (credit.channel >= wire::kUserChannelMin && users() >= kUsersMax) {
      return Status(Code::kCorrupt, base::format("credit for more than {} channels", kUsersMax));
    }
    at = all_->emplace(credit.channel, Open{.credit = {}, .priority = credit.priority}).first;
  }
  if (at->second.priority != credit.priority) {
    return Status(Code::kCorrupt, base::format("channel {} is in another class than before", credit.channel));
  }
  return at->second.credit.on_credit(credit.limits);
}

std::vector<std::pair<std::uint32_t, ChannelCredits::Numbered>> ChannelCredits::numbered() const {
  std::vector<std::pair<std::uint32_t, Numbered>> all;
  const base::SpinGuard guard(lock_);
  if (all_ == nullptr) return all;
  for (auto at = all_->lower_bound(wire::kUserChannelMin); at != all_->end(); ++at) {
    if (const Numbered its = numbers_of(at->second); its.last > 0) all.emplace_back(at->first, its);
  }
  return all;
}

}  // namespace hawser::agent
