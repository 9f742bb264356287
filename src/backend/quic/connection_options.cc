#include "backend/quic/connection_options.h"

namespace hawser::backend::quic {
namespace {

constexpr std::uint64_t kOpenersWindow = 256 * 1024;
constexpr std::uint64_t kAcceptorsWindow = 32 * 1024;
/// An acknowledgement waits so long at most. The peer waits for it before it takes the end of a burst for lost; 25 ms
/// are usual.
constexpr Duration kAckDelay = std::chrono::milliseconds(5);

ngtcp2_duration duration_of(Duration time) { return static_cast<ngtcp2_duration>(time.count()); }

ngtcp2_cc_algo algorithm(Congestion congestion) {
  switch (congestion) {
    case Congestion::kReno:
      return NGTCP2_CC_ALGO_RENO;
    case Congestion::kBbr:
      return NGTCP2_CC_ALGO_BBR;
    case Congestion::kCubic:
      break;
  }
  return NGTCP2_CC_ALGO_CUBIC;
}

}  // namespace

std::uint64_t first_window(bool is_opener) { return is_opener ? kOpenersWindow : kAcceptorsWindow; }

ngtcp2_settings settings_of(const ConnectionOptions& options, const Ngtcp2& library, RandomSource& random,
                            Instant now) {
  ngtcp2_settings settings = {};
  library.settings_default_versioned(kSettingsVersion, &settings);
  settings.initial_ts = stamp(now);
  settings.rand_ctx.native_handle = &random;
  settings.cc_algo = algorithm(options.congestion);
  settings.max_tx_udp_payload_size = options.datagram_max;
  settings.no_tx_udp_payload_size_shaping = options.is_probed ? 0 : 1;
  // It always looks for longer datagrams, though it need not where they are not probed: with `no_pmtud` ngtcp2 (0.12,
  // 1.11) stops the process once a peer is back at its first address before its second one has answered.
  settings.no_pmtud = 0;
  settings.handshake_timeout = duration_of(options.handshake_timeout);
  settings.max_window = options.window;
  settings.max_stream_window = 0;  // Ours to widen: see StreamWindow.
  return settings;
}

ngtcp2_transport_params params_of(const ConnectionOptions& options, const Ngtcp2& library, bool is_opener) {
  ngtcp2_transport_params params = {};
  library.transport_params_default_versioned(kParamsVersion, &params);
  const std::uint64_t first = first_window(is_opener);
  params.initial_max_stream_data_bidi_local = first;
  params.initial_max_stream_data_bidi_remote = first;
  params.initial_max_data = 4 * first;
  params.initial_max_streams_bidi = is_opener ? 0 : kStreamsPerConnection;
  params.initial_max_streams_uni = 0;
  params.max_idle_timeout = duration_of(options.idle_timeout);
  params.max_udp_payload_size = kDatagramMost;
  params.max_ack_delay = duration_of(kAckDelay);
  // Each address that an opener goes on from takes one, and further ones come once somebody hears it there.
  params.active_connection_id_limit = is_opener ? 4 : 2;
  return params;
}

}  // namespace hawser::backend::quic
