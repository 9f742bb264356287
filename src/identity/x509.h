#pragma once

// What is done with GnuTLS's X.509 objects: ownership, PEM and DER, and what a certificate says.
//
// Thread rule: any thread; an object by one at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hawser/status.h>

#include "base/bytes.h"
#include "identity/holder.h"
#include "tls/gnutls_library.h"

namespace hawser::identity {

/// Most certificates from a leaf up to, and without, an authority that is trusted.
inline constexpr std::size_t kChainMax = 4;
inline constexpr std::size_t kChainBytesMax = 12 * 1024;  ///< Bytes of all of them in DER.
inline constexpr unsigned kNamesMax = 64;                 ///< Of one certificate, its URI among them.

template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, void (*)(Handle)>;
using Certificate = Owned<gnutls_x509_crt_t>;

/// An object that `init` makes and `deinit` frees.
template <typename Handle>
Result<Owned<Handle>> make_owned(const tls::Gnutls& library, int (*init)(Handle*), void (*deinit)(Handle)) {
  Handle handle = nullptr;
  const int result = init(&handle);
  if (result < 0) return library.error(Code::kFailed, "an object of GnuTLS", result);
  return Owned<Handle>(handle, deinit);
}

inline gnutls_datum_t datum_of(std::string_view bytes) { return tls::datum_of(base::as_bytes(bytes)); }
/// Takes what GnuTLS allocated.
std::string take_datum(const tls::Gnutls& library, gnutls_datum_t& datum);

Result<Certificate> make_certificate(const tls::Gnutls& library);
Result<Certificate> certificate_from_der(const tls::Gnutls& library, std::string_view der);
/// One or more. Errors: kInvalid (no certificate in it).
Result<std::vector<Certificate>> certificates_from_pem(const tls::Gnutls& library, std::string_view pem);
Result<std::string> der_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate);
Result<std::string> pem_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate);

/// What a workload's certificate says. Errors: kInvalid: it is none as the standard X.509-SVID wants it (one URI, which
/// is a SPIFFE ID with a path; no authority).
Result<Holder> holder_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate);
/// The domain that an authority's certificate is for; empty where it does not say (an authority of other software).
std::string domain_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate);
/// Hexadecimal digits.
std::string hex_text(std::string_view bytes);
std::string serial_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate);

}  // namespace hawser::identity
