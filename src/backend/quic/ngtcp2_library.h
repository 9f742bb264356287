#pragma once

// ngtcp2 and its binding to GnuTLS, opened at run time, so that one binary runs where they are missing. Their headers
// give the signatures; they are of version 0.12, whose binary interface differs from that of 1.0 and later.
//
// Thread rule: any thread. Lifetime: once opened it stays until the process ends.

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include <string>

#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::backend::quic {

// The functions in use, without their prefix.
#define HAWSER_NGTCP2_FUNCTIONS(X)                        \
  X(accept)                                               \
  X(conn_client_new_versioned)                            \
  X(conn_del)                                             \
  X(conn_extend_max_offset)                               \
  X(conn_extend_max_stream_offset)                        \
  X(conn_get_conn_stat_versioned)                         \
  X(conn_get_connection_close_error)                      \
  X(conn_get_cwnd_left)                                   \
  X(conn_get_expiry)                                      \
  X(conn_get_max_data_left)                               \
  X(conn_get_max_stream_data_left)                        \
  X(conn_get_send_quantum)                                \
  X(conn_get_streams_bidi_left)                           \
  X(conn_get_tls_alert)                                   \
  X(conn_handle_expiry)                                   \
  X(conn_initiate_immediate_migration)                    \
  X(conn_open_bidi_stream)                                \
  X(conn_read_pkt_versioned)                              \
  X(conn_server_new_versioned)                            \
  X(conn_set_tls_native_handle)                           \
  X(conn_shutdown_stream)                                 \
  X(conn_update_pkt_tx_time)                              \
  X(conn_write_connection_close_versioned)                \
  X(conn_writev_stream_versioned)                         \
  X(connection_close_error_default)                       \
  X(connection_close_error_set_application_error)         \
  X(connection_close_error_set_transport_error_liberr)    \
  X(connection_close_error_set_transport_error_tls_alert) \
  X(err_is_fatal)                                         \
  X(pkt_decode_version_cid)                               \
  X(pkt_write_stateless_reset)                            \
  X(pkt_write_version_negotiation)                        \
  X(settings_default_versioned)                           \
  X(strerror)                                             \
  X(transport_params_default_versioned)                   \
  X(version)

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
#undef HAWSER_NGTCP2_MEMBER
  struct Crypto {
#define HAWSER_NGTCP2_CRYPTO_MEMBER(name) decltype(&ngtcp2_crypto_##name) name = nullptr;
    HAWSER_NGTCP2_CRYPTO_FUNCTIONS(HAWSER_NGTCP2_CRYPTO_MEMBER)
#undef HAWSER_NGTCP2_CRYPTO_MEMBER
  } crypto;
  std::string version_text;
};

/// The process's one; opened by the first call (some ms), which may block for the loader's files. A failure is kept,
/// and the next call tries nothing. Errors: kUnsupported (a library is missing or of another version: what to install).
Result<const Ngtcp2*> ngtcp2();

/// Nanoseconds of the same clock.
inline ngtcp2_tstamp stamp(Instant at) { return static_cast<ngtcp2_tstamp>(at.ns()); }

}  // namespace hawser::backend::quic
