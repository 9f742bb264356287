#pragma once

// What differs between the versions of ngtcp2 that the backend is built for: 0.12 (libngtcp2.so.9), and 1.11 and later
// ones (libngtcp2.so.16). Here and in ngtcp2_version.cc the headers' version decides; all others ask these names.
//
// Later versions add members to ngtcp2's structures, so functions are told which version of a structure they get. With
// 1.x it is always that of 1.11: whatever headers were compiled, every later library serves.
//
// Thread rule: pure functions.

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace hawser::backend::quic {

#if NGTCP2_VERSION_NUM < 0x010000

// Functions in use that versions call differently: by which name they are used here, and that of this version, without
// its prefix.
#define HAWSER_NGTCP2_VERSION_FUNCTIONS(X)                                 \
  X(close_default, connection_close_error_default)                         \
  X(close_set_alert, connection_close_error_set_transport_error_tls_alert) \
  X(close_set_application, connection_close_error_set_application_error)   \
  X(close_set_error, connection_close_error_set_transport_error_liberr)    \
  X(conn_get_close, conn_get_connection_close_error)                       \
  X(conn_get_figures, conn_get_conn_stat_versioned)                        \
  X(conn_set_remote_params, conn_decode_remote_transport_params)           \
  X(conn_set_shaken, conn_handshake_completed)

/// The oldest library that serves; each 0.x has an interface of its own.
inline constexpr int kLeastNumber = NGTCP2_VERSION_NUM;
inline constexpr const char* kLeastText = NGTCP2_VERSION;

inline constexpr int kPacketVersion = NGTCP2_PKT_INFO_VERSION;
inline constexpr int kCallbacksVersion = NGTCP2_CALLBACKS_VERSION;
inline constexpr int kSettingsVersion = NGTCP2_SETTINGS_VERSION;
inline constexpr int kParamsVersion = NGTCP2_TRANSPORT_PARAMS_VERSION;
inline constexpr int kFiguresVersion = NGTCP2_CONN_STAT_VERSION;

using CloseError = ngtcp2_connection_close_error;
using ConnectionFigures = ngtcp2_conn_stat;
using CryptoLevel = ngtcp2_crypto_level;
inline constexpr CryptoLevel kInitialLevel = NGTCP2_CRYPTO_LEVEL_INITIAL;
inline constexpr CryptoLevel kHandshakeLevel = NGTCP2_CRYPTO_LEVEL_HANDSHAKE;
inline constexpr auto kApplicationClose = NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION;

inline std::span<const std::uint8_t> token_of(const ngtcp2_pkt_hd& head) { return {head.token.base, head.token.len}; }

/// Something is under way, and no timer gives it up. Where also no more may be sent, 0.12 sends nothing but
/// acknowledgements from then on, unless one is on its way to it. It comes there in two ways. After some probes without
/// an answer it has taken back all that it will send again, and counts it as under way still. Or it checks a new
/// address of an opener, which it may send three times what came from there: once that is used up it stops its timer,
/// and starts none when more comes. Meanwhile the first window counts, whatever `cwnd` says.
inline bool stands_still(const ConnectionFigures& figures) {
  return figures.bytes_in_flight > 0 && figures.loss_detection_timer == UINT64_MAX;
}

/// ngtcp2 gives this error for a packet that uses a window which it told and has not counted yet. See
/// Connection::is_still_to_count.
inline bool counts_windows_late(int error) { return error == NGTCP2_ERR_FLOW_CONTROL; }

/// Of ngtcp2_settings or ngtcp2_pkt_hd. A connection copies it when it is made.
template <typename Carrier>
void set_token(Carrier& carrier, std::span<const std::uint8_t> token) {
  carrier.token = {.base = const_cast<std::uint8_t*>(token.data()), .len = token.size()};
}

inline void set_original_id(ngtcp2_transport_params& params, const ngtcp2_cid& id) { params.original_dcid = id; }

/// A callback that hands on what all versions tell.
template <int (*kHear)(const ngtcp2_path*, ngtcp2_path_validation_result, void* self)>
int on_path_validation(ngtcp2_conn*, std::uint32_t, const ngtcp2_path* path, ngtcp2_path_validation_result result,
                       void* self) {
  return kHear(path, result, self);
}

#else

#define HAWSER_NGTCP2_VERSION_FUNCTIONS(X)                               \
  X(close_default, ccerr_default)                                        \
  X(close_set_alert, ccerr_set_tls_alert)                                \
  X(close_set_application, ccerr_set_application_error)                  \
  X(close_set_error, ccerr_set_liberr)                                   \
  X(conn_get_close, conn_get_ccerr)                                      \
  X(conn_get_figures, conn_get_conn_info_versioned)                      \
  X(conn_set_remote_params, conn_decode_and_set_remote_transport_params) \
  X(conn_set_shaken, conn_tls_handshake_completed)

inline constexpr int kLeastNumber = 0x010b00;
inline constexpr const char* kLeastText = "1.11.0";
static_assert(NGTCP2_VERSION_NUM >= kLeastNumber, "HawserDependencies.cmake lets no other version in");

inline constexpr int kPacketVersion = NGTCP2_PKT_INFO_V1;
inline constexpr int kCallbacksVersion = NGTCP2_CALLBACKS_V1;
inline constexpr int kSettingsVersion = NGTCP2_SETTINGS_V2;
inline constexpr int kParamsVersion = NGTCP2_TRANSPORT_PARAMS_V1;
inline constexpr int kFiguresVersion = NGTCP2_CONN_INFO_V1;

using CloseError = ngtcp2_ccerr;
using ConnectionFigures = ngtcp2_conn_info;
using CryptoLevel = ngtcp2_encryption_level;
inline constexpr CryptoLevel kInitialLevel = NGTCP2_ENCRYPTION_LEVEL_INITIAL;
inline constexpr CryptoLevel kHandshakeLevel = NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE;
inline constexpr auto kApplicationClose = NGTCP2_CCERR_TYPE_APPLICATION;

inline std::span<const std::uint8_t> token_of(const ngtcp2_pkt_hd& head) { return {head.token, head.tokenlen}; }

/// 0.12 does. 1.x does not tell its timer; no run has shown it in that state.
inline bool stands_still(const ConnectionFigures&) { return false; }

inline bool counts_windows_late(int) { return false; }

template <typename Carrier>
void set_token(Carrier& carrier, std::span<const std::uint8_t> token) {
  carrier.token = token.data();
  carrier.tokenlen = token.size();
}

inline void set_original_id(ngtcp2_transport_params& params, const ngtcp2_cid& id) {
  params.original_dcid = id;
  params.original_dcid_present = 1;
}

template <int (*kHear)(const ngtcp2_path*, ngtcp2_path_validation_result, void* self)>
int on_path_validation(ngtcp2_conn*, std::uint32_t, const ngtcp2_path* path, const ngtcp2_path*,
                       ngtcp2_path_validation_result result, void* self) {
  return kHear(path, result, self);
}

#endif

}  // namespace hawser::backend::quic
