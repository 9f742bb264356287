#include "strangers.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "backend/places/locator.h"
#include "backend/stream/lobby.h"
#include "sim/stranger_hello.h"
#include "wire/card.h"

namespace hawser::storm {
namespace {

constexpr std::size_t kOpenMax = 3 * backend::stream::Lobby::kPlaces;

/// Where the agent of this card listens; nothing where it does not.
std::vector<base::SocketAddress> places_in(const std::string& bytes) {
  const Result<wire::Card> card = wire::decode_card(std::as_bytes(std::span(bytes)));
  if (!card || card->find_backend("tcp") < 0) return {};
  const auto& backend = card->backends[static_cast<std::size_t>(card->find_backend("tcp"))];
  const Result<backend::Locator> locator = backend::parse_locator(backend.address);
  return locator ? locator->places : std::vector<base::SocketAddress>{};
}

bool was_sent_away(const base::Fd& socket) {
  std::array<char, 512> heard;
  for (;;) {
    const ssize_t got = ::recv(socket.get(), heard.data(), heard.size(), MSG_DONTWAIT);
    if (got > 0) continue;
    return got == 0 || (errno != EAGAIN && errno != EINTR);
  }
}

}  // namespace

Strangers::Strangers(Board& board, const StormOptions& options, std::uint64_t seed)
    : board_(board), workers_(options.workers), rng_(seed) {}

std::string Strangers::words(bool* is_proven) {
  const std::uint64_t kind = rng_.below(4);
  if (kind == 0) return {};
  if (kind == 1) {
    std::string noise(1 + rng_.below(300), '\0');
    for (char& c : noise) c = static_cast<char>(rng_.below(256));
    return noise;
  }
  const auto admission = rng_.chance(0.5) ? wire::Admission::kUser : wire::Admission::kCard;
  std::string bytes = wire::encode(simulation::stranger_hello(rng_, admission));
  if (kind == 2) bytes.resize(1 + rng_.below(bytes.size() - 1));
  *is_proven = kind == 3 && admission == wire::Admission::kUser;
  return bytes;
}

void Strangers::come(std::size_t worker) {
  std::uint32_t life = 0;
  const std::optional<std::string> card = board_.posts[worker].card(&life);
  if (!card || open_[worker].size() == kOpenMax) return;
  for (const base::SocketAddress& place : places_in(*card)) {
    // It waits for nobody: the queue of a listener whose process is stopped may be full.
    base::Fd socket(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || (::connect(socket.get(), place.get(), place.size) != 0 && errno != EINPROGRESS)) continue;
    bool is_proven = false;
    const std::string said = words(&is_proven);
    static_cast<void>(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    open_[worker].push_back({.socket = std::move(socket), .is_proven = is_proven});
    ++came_;
    return;
  }
}

void Strangers::look() {
  for (auto& strangers : open_) std::erase_if(strangers, [](const Stranger& one) { return was_sent_away(one.socket); });
}

void Strangers::leave() {
  for (auto& strangers : open_) strangers.clear();
}

void Strangers::act() {
  look();
  come(rng_.below(workers_));
}

bool Strangers::are_few() {
  look();
  return std::ranges::all_of(open_, [](const auto& strangers) {
    const auto unproven = std::ranges::count_if(strangers, [](const Stranger& one) { return !one.is_proven; });
    return static_cast<std::size_t>(unproven) <= backend::stream::Lobby::kPlaces;
  });
}

bool Strangers::are_out() {
  look();
  return std::ranges::all_of(open_, [](const auto& strangers) { return strangers.empty(); });
}

}  // namespace hawser::storm
