#pragma once

// ConnectionOptions: what a connection goes by, and what they make of ngtcp2's settings and transport parameters.
//
// Thread rule: values, pure functions.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <hawser/time.h>

#include "backend/quic/ngtcp2_library.h"
#include "backend/quic/random_source.h"

namespace hawser::backend::quic {

/// Streams that a peer may open in one connection.
inline constexpr unsigned kStreamsPerConnection = 16;

enum class Congestion : std::uint8_t { kCubic, kReno, kBbr };

struct ConnectionOptions {
  Congestion congestion = Congestion::kCubic;
  std::size_t datagram_max = 1452;     ///< UDP bytes of a datagram: what the route surely takes, or is probed for.
  bool is_probed = true;               ///< From 1,200 bytes up to datagram_max; else that at once.
  bool is_lent = false;                ///< Large parts are sent from where they lie; see SendQueue.
  bool is_paced = true;                ///< Spread over the round trip, as for networks; loopback needs it not.
  std::uint64_t window = 16ull << 20;  ///< Bytes that the peer may have under way, in all streams.
  std::uint64_t stream_window = 2ull << 20;  ///< Bytes that it may send ahead of their reader in one stream,
  std::uint64_t unread_max = 16ull << 20;    ///< and in all: `window` more at most. See Connection::trust.
  std::string qlog = {};                     ///< The folder for a log of each connection; empty: none.
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration idle_timeout = std::chrono::seconds(60);
  /// An end that has heard nothing for so long asks for a sign; zero: it does not. An agent's paths have heartbeats of
  /// their own.
  Duration keep_alive = Duration::zero();
};

/// What the peer may send at first in one stream; four times that in all. It grows with what is read. An acceptor's is
/// smaller: it knows nothing of its peer yet.
std::uint64_t first_window(bool is_opener);
/// `random` has to live as long as a connection that is made by them.
ngtcp2_settings settings_of(const ConnectionOptions& options, const Ngtcp2& library, RandomSource& random, Instant now);
ngtcp2_transport_params params_of(const ConnectionOptions& options, const Ngtcp2& library, bool is_opener);

/// The largest datagram of UDP (RFC 9000, section 18.2).
inline constexpr std::size_t kDatagramMost = 65'527;

}  // namespace hawser::backend::quic
