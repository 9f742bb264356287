#include "runtime/hearing.h"

#include <algorithm>
#include <utility>

#include "runtime/rank_bitmap.h"

namespace hawser::runtime {
namespace {

/// So long a court waits for ranks that do not answer.
constexpr Duration kCourtMax = std::chrono::seconds(1);

}  // namespace

Hearing::Hearing(const Site& site, Mailbox& mailbox, Hooks hooks)
    : world_(site.world),
      ranks_(site.ranks.begin(), site.ranks.end()),
      heartbeat_(site.heartbeat),
      peer_timeout_(site.peer_timeout),
      mailbox_(mailbox),
      hooks_(std::move(hooks)),
      court_(site.rank, static_cast<std::uint32_t>(site.ranks.size()),
             {.tell = [this](std::uint32_t to, const std::vector<bool>& lost, bool asks) { tell(to, lost, asks); },
              .convict = hooks_.convict}) {
  alarm_.listener = this;
}

Hearing::~Hearing() { mailbox_.clear_deadline(alarm_); }

void Hearing::tell(std::uint32_t to, const std::vector<bool>& lost, bool asks) {
  mailbox_.tell(ranks_[to], {{.kind = wire::RuntimeKind::kLost, .world = world_, .flag = asks}, bitmap_of(lost)},
                mailbox_.now());
}

void Hearing::note_lost(std::uint32_t rank) {
  court_.note_lost(rank);
  watch();
}

void Hearing::note_gone(std::uint32_t rank) {
  court_.note_gone(rank);
  watch();
}

void Hearing::hear(std::uint32_t from, std::span<const std::byte> lost, bool asks) {
  court_.hear(from, ranks_of(lost, ranks_.size()), asks);
  watch();
}

/// As long as something is undecided, its time runs.
void Hearing::watch() {
  if (!is_undecided()) {
    mailbox_.clear_deadline(alarm_);
    stage_ = Stage::kNone;
    return hooks_.decided(mailbox_.now());
  }
  if (stage_ != Stage::kNone) return;
  stage_ = Stage::kSettling;
  mailbox_.set_deadline(alarm_, mailbox_.now() + std::min(2 * heartbeat_, kCourtMax / 2));
}

void Hearing::on_late(Operation&, Instant now) {
  if (stage_ == Stage::kSettling) {
    stage_ = Stage::kGivingUp;
    mailbox_.set_deadline(alarm_, now + std::min(peer_timeout_, kCourtMax));
    court_.settle();
  } else {
    stage_ = Stage::kNone;
    court_.give_up();
  }
  watch();
}

}  // namespace hawser::runtime
