#include "runtime/hearing.h"

#include <utility>

#include "runtime/rank_bitmap.h"

namespace hawser::runtime {

Hearing::Hearing(const Site& site, Mailbox& mailbox, Hooks hooks)
    : world_(site.world),
      ranks_(site.ranks.begin(), site.ranks.end()),
      mailbox_(mailbox),
      hooks_(std::move(hooks)),
      court_(site.rank, static_cast<std::uint32_t>(site.ranks.size()),
             {.tell = [this](std::uint32_t to, const std::vector<bool>& lost, bool asks) { tell(to, lost, asks); },
              .convict = hooks_.convict}),
      clock_(mailbox, site.heartbeat, site.peer_timeout,
             {.settle =
                  [this] {
                    court_.settle();
                    watch();
                  },
              .give_up =
                  [this] {
                    court_.give_up();
                    watch();
                  }}) {}

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

void Hearing::watch() {
  clock_.watch(is_undecided());
  if (!is_undecided()) hooks_.decided(mailbox_.now());
}

}  // namespace hawser::runtime
