#pragma once

// GnuTLS, opened at run time, so that one binary runs where it is missing. Its header gives the signatures.
//
// Thread rule: any thread. Lifetime: once opened it stays until the process ends.

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::tls {

// The functions in use, without their prefix.
#define HAWSER_GNUTLS_FUNCTIONS(X)    \
  X(alpn_set_protocols)               \
  X(certificate_allocate_credentials) \
  X(certificate_free_credentials)     \
  X(certificate_get_peers)            \
  X(certificate_server_set_request)   \
  X(certificate_set_flags)            \
  X(certificate_set_x509_key)         \
  X(check_version)                    \
  X(credentials_set)                  \
  X(deinit)                           \
  X(free)                             \
  X(handshake)                        \
  X(handshake_set_max_packet_length)  \
  X(alert_get)                        \
  X(alert_get_name)                   \
  X(alert_send_appropriate)           \
  X(bye)                              \
  X(init)                             \
  X(prf_rfc5705)                      \
  X(priority_deinit)                  \
  X(priority_init)                    \
  X(priority_set)                     \
  X(privkey_deinit)                   \
  X(privkey_get_pk_algorithm)         \
  X(privkey_import_ecc_raw)           \
  X(privkey_import_x509_raw)          \
  X(privkey_init)                     \
  X(privkey_sign_data2)               \
  X(pubkey_deinit)                    \
  X(pubkey_export)                    \
  X(pubkey_get_pk_algorithm)          \
  X(pubkey_import_privkey)            \
  X(pubkey_import_x509)               \
  X(pubkey_init)                      \
  X(pubkey_verify_data2)              \
  X(packet_deinit)                    \
  X(packet_get)                       \
  X(record_recv)                      \
  X(record_recv_packet)               \
  X(record_send)                      \
  X(session_get_desc)                 \
  X(session_set_ptr)                  \
  X(strerror)                         \
  X(transport_set_errno)              \
  X(transport_set_ptr)                \
  X(transport_set_pull_function)      \
  X(transport_set_vec_push_function)  \
  X(x509_crl_deinit)                  \
  X(x509_crl_export2)                 \
  X(x509_crl_get_crt_count)           \
  X(x509_crl_get_crt_serial)          \
  X(x509_crl_get_number)              \
  X(x509_crl_import)                  \
  X(x509_crl_init)                    \
  X(x509_crl_list_import2)            \
  X(x509_crl_set_authority_key_id)    \
  X(x509_crl_set_crt_serial)          \
  X(x509_crl_set_next_update)         \
  X(x509_crl_set_number)              \
  X(x509_crl_set_this_update)         \
  X(x509_crl_set_version)             \
  X(x509_crl_sign2)                   \
  X(x509_crt_deinit)                  \
  X(x509_crt_export2)                 \
  X(x509_crt_get_activation_time)     \
  X(x509_crt_get_basic_constraints)   \
  X(x509_crt_get_expiration_time)     \
  X(x509_crt_get_key_usage)           \
  X(x509_crt_get_pk_ecc_raw)          \
  X(x509_crt_get_serial)              \
  X(x509_crt_get_subject_alt_name)    \
  X(x509_crt_get_subject_key_id)      \
  X(x509_crt_import)                  \
  X(x509_crt_init)                    \
  X(x509_crt_list_import2)            \
  X(x509_crt_set_activation_time)     \
  X(x509_crt_set_authority_key_id)    \
  X(x509_crt_set_basic_constraints)   \
  X(x509_crt_set_dn_by_oid)           \
  X(x509_crt_set_expiration_time)     \
  X(x509_crt_set_key)                 \
  X(x509_crt_set_key_purpose_oid)     \
  X(x509_crt_set_key_usage)           \
  X(x509_crt_set_pubkey)              \
  X(x509_crt_set_serial)              \
  X(x509_crt_set_subject_alt_name)    \
  X(x509_crt_set_subject_key_id)      \
  X(x509_crt_set_version)             \
  X(x509_crt_sign2)                   \
  X(x509_privkey_deinit)              \
  X(x509_privkey_export2_pkcs8)       \
  X(x509_privkey_generate)            \
  X(x509_privkey_import)              \
  X(x509_privkey_import_ecc_raw)      \
  X(x509_privkey_init)                \
  X(x509_trust_list_add_cas)          \
  X(x509_trust_list_add_crls)         \
  X(x509_trust_list_deinit)           \
  X(x509_trust_list_init)             \
  X(x509_trust_list_verify_crt2)

/// The bytes stay the caller's. GnuTLS takes them by a pointer that is not const, and does not change them.
inline gnutls_datum_t datum_of(std::span<const std::byte> bytes) {
  return {.data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data())),
          .size = static_cast<unsigned>(bytes.size())};
}

struct Gnutls {
#define HAWSER_GNUTLS_MEMBER(name) decltype(&gnutls_##name) name = nullptr;
  HAWSER_GNUTLS_FUNCTIONS(HAWSER_GNUTLS_MEMBER)
#undef HAWSER_GNUTLS_MEMBER
  std::string version;

  /// What a failed call means, as a Status that begins with `doing`.
  Status error(Code code, std::string_view doing, int result) const;
};

/// The process's one; opened by the first call (some ms), which may block for the loader's files. Errors: kUnsupported:
/// the library is missing or too old, and what to install. A failure is kept, too: the next call does not try again.
Result<const Gnutls*> gnutls();

}  // namespace hawser::tls
