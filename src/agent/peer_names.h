#pragma once

// What peers, their states and their events are called, in counters, JSON and Python alike. Header-only: the library
// exports nothing of this layer to the extension modules.
//
// Thread rule: pure functions.

#include <string_view>

#include <hawser/peer.h>

namespace hawser::agent {

/// "name@host:port"; a peer that is known may have such a name, too.
constexpr bool is_address(std::string_view name) {
  const std::size_t at = name.rfind('@');
  return at != std::string_view::npos && name.find(':', at) != std::string_view::npos;
}

constexpr std::string_view name_of(PeerState state) {
  switch (state) {
    case PeerState::kKnown:
      return "known";
    case PeerState::kUp:
      return "up";
    case PeerState::kSuspect:
      return "suspect";
    case PeerState::kDown:
      return "down";
  }
  return "unknown";
}

constexpr std::string_view name_of(PeerEvent::Kind kind) {
  switch (kind) {
    case PeerEvent::Kind::kUp:
      return "up";
    case PeerEvent::Kind::kSuspect:
      return "suspect";
    case PeerEvent::Kind::kDown:
      return "down";
    case PeerEvent::Kind::kCardChanged:
      return "card_changed";
    case PeerEvent::Kind::kDisplaced:
      return "displaced";
  }
  return "unknown";
}

}  // namespace hawser::agent
