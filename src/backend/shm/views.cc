#include "backend/shm/views.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace hawser::backend::shm {
namespace {

/// The mapping stays for as long as the view does, so that a reader that comes late reads bytes of no meaning at worst.
class ShmView final : public View {
 public:
  ShmView(std::shared_ptr<Views::Pins> pins, std::size_t slot, const ShmBinding& region)
      : pins_(std::move(pins)),
        slot_(slot),
        mapping_(region.mapping),
        bytes_(region.base + region.head, static_cast<std::size_t>(region.size - region.head - region.tail)),
        first_(region.head) {}
  ~ShmView() override { let_go(); }

  std::span<const std::byte> bytes() const override {
    return pins_->words.empty() ? std::span<const std::byte>() : bytes_;
  }
  std::uint64_t first() const override { return first_; }
  void let_go() override {
    if (!std::exchange(holds_, false) || pins_->words.empty() || pins_->process != ::getpid()) return;
    leave_pin<Atomics>(pins_->words[slot_]);
    pins_->taken[slot_] = false;
  }

 private:
  bool holds_ = true;
  const std::shared_ptr<Views::Pins> pins_;
  const std::size_t slot_;
  const std::shared_ptr<Mapping> mapping_;
  const std::span<const std::byte> bytes_;
  const std::uint64_t first_;
};

}  // namespace

void Views::begin(std::span<Atomics::Word> pins) {
  pins_ = std::make_shared<Pins>();
  pins_->words = pins;
  pins_->process = ::getpid();
}

Result<std::unique_ptr<View>> Views::take(const ShmBinding& region, PinFence fence) {
  if (pins_ == nullptr) return Status(Code::kUnsupported, "the peer's Hawser is older than views");
  switch (region.state) {
    case ShmBinding::State::kMapped:
      break;
    case ShmBinding::State::kAsking:
      return Status(Code::kBusy, "the peer has not said yet where the region lies");
    case ShmBinding::State::kForeign:
      return Status(Code::kUnsupported, "the region is not mapped: its owner neither allocated nor adopted it");
    case ShmBinding::State::kFailed:
      return region.status;
  }
  if (!allows(region.rights, Rights::kRead)) return Status(Code::kDenied, "the region may not be read");
  const auto free = std::ranges::find(pins_->taken, false);
  if (free == pins_->taken.end() || pins_->words.empty()) {
    return Status(Code::kBusy, base::format("{} views of this path are held, which is the limit", kViewsMax));
  }
  const auto slot = static_cast<std::size_t>(free - pins_->taken.begin());
  if (!enter_pin<Atomics>(pins_->words[slot], *region.gate, region.index, region.generation, fence)) {
    return Status(Code::kDenied, "the region was closed by its owner").with_scope(Scope::kRequest);
  }
  *free = true;
  return std::unique_ptr<View>(std::make_unique<ShmView>(pins_, slot, region));
}

void Views::end_all() {
  if (pins_ == nullptr || pins_->words.empty()) return;
  if (pins_->process == ::getpid()) {
    for (Atomics::Word& pin : pins_->words) leave_pin<Atomics>(pin);
  }
  pins_->words = {};
}

std::string Views::text() const {
  if (pins_ == nullptr) return "no";
  return base::format("{} of {}", std::ranges::count(pins_->taken, true), kViewsMax);
}

}  // namespace hawser::backend::shm
