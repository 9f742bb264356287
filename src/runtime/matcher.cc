#include "runtime/matcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/planted.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

namespace {

constexpr std::size_t kEmptyMax = 4096;

}  // namespace

std::size_t Matcher::Hash::operator()(const Key& key) const {
  std::uint64_t mixed = key.world;
  for (const std::uint64_t part : {key.tag, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(key.source)),
                                   static_cast<std::uint64_t>(key.use)}) {
    mixed = (mixed ^ part) * 0x9E3779B97F4A7C15ULL;
    mixed ^= mixed >> 32;
  }
  return static_cast<std::size_t>(mixed);
}

bool Matcher::fits(const Pattern& pattern, const wire::MessageEnvelope& envelope, const void* source) {
  const bool may_be_any = pattern.members == nullptr || pattern.members->contains(source);
  const bool is_from_right = pattern.source == nullptr ? may_be_any : pattern.source == source;
  return pattern.world == envelope.world && pattern.use == envelope.use && is_from_right &&
         (!pattern.tag || *pattern.tag == envelope.tag);
}

Matcher::~Matcher() {
  for_each_kept([this](Arrived& arrived) { drop(arrived); });
}

Receive* Matcher::take_receive(const wire::MessageEnvelope& envelope, const void* source) {
  Receive* oldest = nullptr;
  const auto bucket = buckets_.find({envelope.world, envelope.tag, source, envelope.use});
  if (bucket != buckets_.end()) oldest = bucket->second.receives.front();
  const auto use = uses_.find({envelope.world, envelope.use});
  if (use != uses_.end()) {
    for (Receive& receive : use->second.receives) {
      if (oldest != nullptr && oldest->order < receive.order && !planted(Planted::kOlderReceivePassed)) break;
      if (!fits(receive.pattern, envelope, source)) continue;
      oldest = &receive;
      break;
    }
  }
  if (oldest != nullptr) forget(*oldest);
  return oldest;
}

Arrived* Matcher::find(const Pattern& pattern) {
  if (is_exact(pattern)) {
    const auto bucket = buckets_.find({pattern.world, *pattern.tag, pattern.source, pattern.use});
    if (bucket == buckets_.end()) return nullptr;
    return planted(Planted::kNewestTaken) ? bucket->second.messages.back() : bucket->second.messages.front();
  }
  if (planted(Planted::kWorldsMixed)) return find_in_any_world(pattern);
  const auto use = uses_.find({pattern.world, pattern.use});
  if (use == uses_.end()) return nullptr;
  for (Arrived& arrived : use->second.messages) {
    if (fits(pattern, arrived.envelope, arrived.source)) return &arrived;
  }
  return nullptr;
}

Arrived* Matcher::find_in_any_world(const Pattern& pattern) {
  Arrived* found = nullptr;
  for_each_kept([&](Arrived& arrived) {
    Pattern its = pattern;
    its.world = arrived.envelope.world;
    if (found == nullptr && fits(its, arrived.envelope, arrived.source)) found = &arrived;
  });
  return found;
}

const Arrived* Matcher::find_misfit(std::uint64_t world, std::uint64_t number, std::optional<std::uint64_t> digest) {
  const auto use = uses_.find({world, wire::MessageUse::kCollective});
  if (use == uses_.end()) return nullptr;
  for (const Arrived& arrived : use->second.messages) {
    if (arrived.envelope.tag == number && arrived.envelope.digest != digest) return &arrived;
  }
  return nullptr;
}

void Matcher::wait(Receive& receive) {
  const Pattern& pattern = receive.pattern;
  receive.order = next_order_++;
  ++waiting_;
  if (is_exact(pattern)) {
    buckets_[{pattern.world, *pattern.tag, pattern.source, pattern.use}].receives.push_back(receive);
  } else {
    uses_[{pattern.world, pattern.use}].receives.push_back(receive);
  }
}

void Matcher::forget(Receive& receive) {
  if (!receive.hook.is_linked()) return;
  receive.hook.unlink();
  --waiting_;
  if (is_exact(receive.pattern)) {
    tidy({receive.pattern.world, *receive.pattern.tag, receive.pattern.source, receive.pattern.use});
  } else {
    tidy_use(receive.pattern.world, receive.pattern.use);
  }
}

Arrived& Matcher::keep(std::unique_ptr<Arrived> arrived) {
  Arrived& kept = *arrived.release();  // `drop` deletes it.
  kept.order = next_order_++;
  ++kept_;
  const wire::MessageEnvelope& envelope = kept.envelope;
  buckets_[{envelope.world, envelope.tag, kept.source, envelope.use}].messages.push_back(kept);
  uses_[{envelope.world, envelope.use}].messages.push_back(kept);
  return kept;
}

void Matcher::drop(Arrived& arrived) {
  const Key key = {arrived.envelope.world, arrived.envelope.tag, arrived.source, arrived.envelope.use};
  delete &arrived;
  --kept_;
  tidy(key);
  tidy_use(key.world, key.use);
}

void Matcher::tidy_use(std::uint64_t world, wire::MessageUse use) {
  if (uses_.size() <= kEmptyMax) return;
  const auto found = uses_.find({world, use});
  if (found == uses_.end() || !found->second.receives.empty() || !found->second.messages.empty()) return;
  uses_.erase(found);
}

void Matcher::tidy(const Key& key) {
  if (buckets_.size() <= kEmptyMax) return;
  const auto found = buckets_.find(key);
  if (found == buckets_.end() || !found->second.receives.empty() || !found->second.messages.empty()) return;
  buckets_.erase(found);
}

void Matcher::for_each_waiting(const std::function<void(Receive&)>& visit) {
  std::vector<Receive*> all;  // A visit may end them.
  for (auto& [key, bucket] : buckets_) {
    for (Receive& receive : bucket.receives) all.push_back(&receive);
  }
  for (auto& [key, use] : uses_) {
    for (Receive& receive : use.receives) all.push_back(&receive);
  }
  std::ranges::sort(all, {}, &Receive::order);  // The tables' order depends on addresses.
  for (Receive* const receive : all) visit(*receive);
}

void Matcher::for_each_kept(const std::function<void(Arrived&)>& visit) {
  std::vector<Arrived*> all;
  for (auto& [key, use] : uses_) {
    for (Arrived& arrived : use.messages) all.push_back(&arrived);
  }
  std::ranges::sort(all, {}, &Arrived::order);
  for (Arrived* const arrived : all) visit(*arrived);
}

}  // namespace hawser::runtime
