#include "schedule/schedule.h"

#include "base/check.h"

namespace hawser::schedule {

void Schedule::add(const Step& step) {
  const bool has_from = step.action != Action::kReceive && step.action != Action::kRead;
  const bool is_empty = (has_from ? step.from : step.to).count == 0;
  if (!is_empty) steps_.push_back(step);
}

void Schedule::end_round() {
  if (steps_.size() > last_end()) ends_.push_back(steps_.size());
}

void Schedule::append(const Schedule& other) {
  end_round();
  for (std::size_t index = 0; index < other.rounds(); ++index) {
    const std::span<const Step> steps = other.round(index);
    steps_.insert(steps_.end(), steps.begin(), steps.end());
    end_round();
  }
}

std::uint64_t Schedule::take_scratch(std::uint64_t count) {
  const std::uint64_t at = scratch_;
  scratch_ += count;
  return at;
}

std::span<const Step> Schedule::round(std::size_t index) const {
  HAWSER_ASSERT(index < rounds(), "there is no such round");
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  const std::size_t end = index < ends_.size() ? ends_[index] : steps_.size();
  return std::span(steps_).subspan(begin, end - begin);
}

Blocks::Blocks(std::span<const std::uint64_t> counts) {
  for (const std::uint64_t count : counts) starts_.push_back(starts_.back() + count);
}

Blocks Blocks::even(std::uint64_t count, std::uint32_t blocks) {
  Blocks all;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    all.starts_.push_back(all.starts_.back() + count / blocks + (i < count % blocks ? 1 : 0));
  }
  return all;
}

Blocks Blocks::equal(std::uint64_t count, std::uint32_t blocks) {
  Blocks all;
  for (std::uint32_t i = 0; i < blocks; ++i) all.starts_.push_back(all.starts_.back() + count);
  return all;
}

Blocks Blocks::shifted(std::uint64_t at) const {
  Blocks made = *this;
  for (std::uint64_t& start : made.starts_) start += at;
  return made;
}

}  // namespace hawser::schedule
