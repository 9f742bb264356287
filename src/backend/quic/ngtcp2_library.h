#pragma once

// ngtcp2 and its binding to GnuTLS, opened at run time, so that one binary runs where they are missing. Their headers
// give the signatures, and with them the one binary interface that a build can use: see ngtcp2_version.h.
//
// Thread rule: any thread. Lifetime: once opened it stays until the process ends.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/quic/ngtcp2_version.h"

namespace hawser::backend::quic {

// The functions in use that all versions have, without their prefix.
#define HAWSER_NGTCP2_FUNCTIONS(X)         \
  X(accept)                                \
  X(conn_client_new_versioned)             \
  X(conn_del)                              \
  X(conn_extend_max_offset)                \
  X(conn_extend_max_stream_offset)         \
  X(conn_get_cwnd_left)                    \
  X(conn_get_expiry)                       \
  X(conn_set_keep_alive_timeout)           \
  X(conn_get_max_data_left)                \
  X(conn_get_max_stream_data_left)         \
  X(conn_get_path_max_tx_udp_payload_size) \
  X(conn_get_pto)                          \
  X(conn_get_send_quantum)                 \
  X(conn_get_streams_bidi_left)            \
  X(conn_get_tls_alert)                    \
  X(conn_handle_expiry)                    \
  X(conn_initiate_immediate_migration)     \
  X(conn_open_bidi_stream)                 \
  X(conn_read_pkt_versioned)               \
  X(conn_server_new_versioned)             \
  X(conn_set_tls_native_handle)            \
  X(conn_shutdown_stream)                  \
  X(conn_update_pkt_tx_time)               \
  X(conn_write_connection_close_versioned) \
  X(conn_writev_stream_versioned)          \
  X(err_is_fatal)                          \
  X(pkt_decode_version_cid)                \
  X(pkt_write_stateless_reset)             \
  X(pkt_write_version_negotiation)         \
  X(settings_default_versioned)            \
  X(strerror)                              \
  X(transport_params_default_versioned)    \
  X(version)

// Functions of the core for a handshake without GnuTLS. The simulator has one.
#define HAWSER_NGTCP2_HANDSHAKE_FUNCTIONS(X) \
  X(conn_encode_local_transport_params)      \
  X(conn_get_dcid)                           \
  X(conn_get_tls_native_handle)              \
  X(conn_initiate_key_update)                \
  X(conn_install_initial_key)                \
  X(conn_install_rx_handshake_key)           \
  X(conn_install_rx_key)                     \
  X(conn_install_tx_handshake_key)           \
  X(conn_install_tx_key)                     \
  X(conn_set_crypto_ctx)                     \
  X(conn_set_initial_crypto_ctx)             \
  X(conn_set_retry_aead)                     \
  X(conn_set_tls_alert)                      \
  X(conn_submit_crypto_data)                 \
  X(pkt_write_retry)

#define HAWSER_NGTCP2_CRYPTO_FUNCTIONS(X) \
  X(client_initial_cb)                    \
  X(decrypt_cb)                           \
  X(delete_crypto_aead_ctx_cb)            \
  X(delete_crypto_cipher_ctx_cb)          \
  X(encrypt_cb)                           \
  X(generate_retry_token)                 \
  X(get_path_challenge_data_cb)           \
  X(gnutls_configure_client_session)      \
  X(gnutls_configure_server_session)      \
  X(hp_mask_cb)                           \
  X(recv_client_initial_cb)               \
  X(recv_crypto_data_cb)                  \
  X(recv_retry_cb)                        \
  X(update_key_cb)                        \
  X(verify_retry_token)                   \
  X(version_negotiation_cb)               \
  X(write_retry)

struct Ngtcp2 {
#define HAWSER_NGTCP2_MEMBER(name) decltype(&ngtcp2_##name) name = nullptr;
  HAWSER_NGTCP2_FUNCTIONS(HAWSER_NGTCP2_MEMBER)
  HAWSER_NGTCP2_HANDSHAKE_FUNCTIONS(HAWSER_NGTCP2_MEMBER)
#undef HAWSER_NGTCP2_MEMBER
#define HAWSER_NGTCP2_MEMBER(member, name) decltype(&ngtcp2_##name) member = nullptr;
  HAWSER_NGTCP2_VERSION_FUNCTIONS(HAWSER_NGTCP2_MEMBER)
#undef HAWSER_NGTCP2_MEMBER
  struct Crypto {
#define HAWSER_NGTCP2_CRYPTO_MEMBER(name) decltype(&ngtcp2_crypto_##name) name = nullptr;
    HAWSER_NGTCP2_CRYPTO_FUNCTIONS(HAWSER_NGTCP2_CRYPTO_MEMBER)
#undef HAWSER_NGTCP2_CRYPTO_MEMBER
  } crypto;
  std::string version_text;

  // What versions have by other names or signatures.
  int shutdown_stream(ngtcp2_conn* connection, std::int64_t id, std::uint64_t code) const;
  CloseError close_by_code(std::uint64_t code) const;  ///< The application's.
  CloseError close_by_alert(std::uint8_t alert) const;
  CloseError close_by_error(int error) const;          ///< One of ngtcp2's.
  CloseError close_of(ngtcp2_conn* connection) const;  ///< What the peer said; its text lives as the connection does.
  ConnectionFigures figures(ngtcp2_conn* connection) const;
};

/// The process's one; opened by the first call (some ms), which may block for the loader's files. A failure is kept,
/// and the next call tries nothing. Errors: kUnsupported (a library is missing or of another version: what to install).
Result<const Ngtcp2*> ngtcp2();

/// Whether a library that calls itself `text` and has that number is new enough. Errors: kUnsupported.
Status is_new_enough(std::string_view name, int number, std::string_view text);

/// Nanoseconds of the same clock.
inline ngtcp2_tstamp stamp(Instant at) { return static_cast<ngtcp2_tstamp>(at.ns()); }

}  // namespace hawser::backend::quic
