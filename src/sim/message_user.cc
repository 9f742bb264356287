#include "sim/message_user.h"

#include <array>
#include <string>

namespace hawser::simulation {

void MessageUser::send(Life& life) {
  Life* const to = peers_.pick(life);
  if (to == nullptr) return;
  Bond& bond = life.bonds[to];
  const std::uint32_t channel = kChannels[rng_.below(std::size(kChannels))];
  const std::size_t burst = rng_.chance(0.2) ? 20 : 1 + rng_.below(3);
  for (std::size_t i = 0; i < burst; ++i) {
    const std::size_t size = rng_.chance(0.1) ? 1 + rng_.below(20'000) : rng_.below(200);
    const std::string text = message_of(life, channel, bond.sent[channel], size);
    const Result<std::uint64_t> sent = bond.peer.send(channel, std::as_bytes(std::span(text)));
    if (!sent) {
      const Code code = sent.error().code();
      // No credit yet, or none left; or the peer is gone.
      const bool gone = bond.broken || bond.peer.state() == PeerState::kDown || life.closing;
      if (code != Code::kBusy && !(code == Code::kDisconnected && gone)) {
        theater_.judge().fail(life, "send was refused: " + sent.error().to_string());
      }
      return;
    }
    theater_.judge().messages().on_sent(life, *to, channel, *sent);
  }
}

void MessageUser::note(Life& life) {
  Life* const to = peers_.pick(life);
  if (to == nullptr) return;
  Bond& bond = life.bonds[to];
  const std::uint64_t uid = theater_.judge().new_writer();
  const Status sent = bond.peer.notify(note_of(uid));
  if (sent.ok()) {
    bond.notes_sent.insert(uid);
  } else if (sent.code() != Code::kBusy &&
             !(sent.code() == Code::kDisconnected && (bond.broken || bond.peer.state() == PeerState::kDown))) {
    theater_.judge().fail(life, "notify was refused: " + sent.to_string());
  }
}

void MessageUser::read(Life& life) {
  if (!life.alive) return;
  Judge& judge = theater_.judge();
  judge.observe(life);
  while (!judge.failed()) {
    auto event = life.agent.take_event();
    if (!event) break;
    judge.messages().on_event(life, *event);
  }
  std::array<Notification, 16> notes;
  const std::size_t count = life.agent.take_notifications(notes);
  for (std::size_t i = 0; i < count && !judge.failed(); ++i) judge.on_notification(life, notes[i]);
  for (const std::uint32_t channel : kChannels) {
    for (int i = 0; i < 8 && !judge.failed(); ++i) {
      auto message = life.agent.take_message(channel);
      if (!message) break;
      judge.messages().on_message(life, *message);
    }
  }
  life.host->wake();
}

}  // namespace hawser::simulation
