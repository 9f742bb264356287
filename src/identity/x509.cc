#include "identity/x509.h"

#include <array>
#include <span>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::identity {
namespace {

constexpr std::size_t kSerialMax = 64;  ///< Bytes; the standard allows 20.

struct Names {
  std::vector<std::string> uris, dns;
  bool are_all = false;  ///< There are no more than kNamesMax.
};

Names names_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  Names names;
  for (unsigned i = 0; i <= kNamesMax; ++i) {
    std::array<char, kSpiffeIdMax + 1> text;
    std::size_t size = text.size();
    const int type = library.x509_crt_get_subject_alt_name(certificate, i, text.data(), &size, nullptr);
    names.are_all = type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
    if (names.are_all) break;
    if (type == GNUTLS_SAN_URI) names.uris.emplace_back(text.data(), size);
    if (type == GNUTLS_E_SHORT_MEMORY_BUFFER) names.uris.emplace_back();  // Too long for a SPIFFE ID: it counts as bad.
    if (type == GNUTLS_SAN_DNSNAME) names.dns.emplace_back(text.data(), size);
  }
  return names;
}

/// Empty: it is a workload's.
std::string_view why_not_leaf(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  unsigned is_authority = 0, usage = 0;
  if (library.x509_crt_get_basic_constraints(certificate, nullptr, &is_authority, nullptr) >= 0 && is_authority != 0) {
    return "it is an authority's, not a workload's";
  }
  if (library.x509_crt_get_key_usage(certificate, &usage, nullptr) < 0) return "it does not say what its key is for";
  if ((usage & GNUTLS_KEY_DIGITAL_SIGNATURE) == 0) return "its key is not for signatures";
  if ((usage & (GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN)) != 0) return "its key may sign certificates";
  return {};
}

Status no_svid(std::string_view why) {
  return Status(Code::kInvalid, base::format("the certificate is no X.509-SVID: {}", why));
}

Result<std::string> exported(const tls::Gnutls& library, gnutls_x509_crt_t certificate, gnutls_x509_crt_fmt_t format) {
  gnutls_datum_t out = {};
  const int result = library.x509_crt_export2(certificate, format, &out);
  if (result < 0) return library.error(Code::kFailed, "writing a certificate", result);
  return take_datum(library, out);
}

}  // namespace

std::string take_datum(const tls::Gnutls& library, gnutls_datum_t& datum) {
  std::string bytes(reinterpret_cast<const char*>(datum.data), datum.size);
  (*library.free)(datum.data);
  datum = {};
  return bytes;
}

Result<Certificate> make_certificate(const tls::Gnutls& library) {
  return make_owned(library, library.x509_crt_init, library.x509_crt_deinit);
}

Result<Certificate> certificate_from_der(const tls::Gnutls& library, std::string_view der) {
  HAWSER_TRY_ASSIGN(Certificate certificate, make_certificate(library));
  const gnutls_datum_t bytes = datum_of(der);
  const int result = library.x509_crt_import(certificate.get(), &bytes, GNUTLS_X509_FMT_DER);
  if (result < 0) return library.error(Code::kCorrupt, "a certificate", result);
  return certificate;
}

Result<std::vector<Certificate>> certificates_from_pem(const tls::Gnutls& library, std::string_view pem) {
  gnutls_x509_crt_t* list = nullptr;
  unsigned count = 0;
  const gnutls_datum_t bytes = datum_of(pem);
  const int result = library.x509_crt_list_import2(&list, &count, &bytes, GNUTLS_X509_FMT_PEM, 0);
  if (result < 0) return library.error(Code::kInvalid, "there is no certificate in PEM", result);
  std::vector<Certificate> certificates;
  for (gnutls_x509_crt_t each : std::span(list, count)) certificates.emplace_back(each, library.x509_crt_deinit);
  (*library.free)(list);
  return certificates;
}

Result<std::string> der_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  return exported(library, certificate, GNUTLS_X509_FMT_DER);
}

Result<std::string> pem_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  return exported(library, certificate, GNUTLS_X509_FMT_PEM);
}

Result<Holder> holder_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  if (const std::string_view why = why_not_leaf(library, certificate); !why.empty()) return no_svid(why);
  Names names = names_of(library, certificate);
  if (!names.are_all) return no_svid(base::format("it has more than {} names", kNamesMax));
  if (names.uris.size() != 1) return no_svid(base::format("it has {} URIs, and has to have one", names.uris.size()));
  Result<SpiffeId> id = SpiffeId::parse(names.uris.front());
  if (!id) return no_svid(id.error().message());
  if (id->path().empty()) return no_svid(base::format("{} is a domain, not a workload", id->text()));
  return Holder{.id = *std::move(id),
                .dns = std::move(names.dns),
                .begins = library.x509_crt_get_activation_time(certificate),
                .ends = library.x509_crt_get_expiration_time(certificate),
                .serial = serial_of(library, certificate)};
}

std::string domain_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  const Names names = names_of(library, certificate);
  if (names.uris.size() != 1) return {};
  const Result<SpiffeId> id = SpiffeId::parse(names.uris.front());
  return id ? std::string(id->domain()) : std::string();
}

std::string hex_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += base::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string serial_of(const tls::Gnutls& library, gnutls_x509_crt_t certificate) {
  std::array<char, kSerialMax> bytes;
  std::size_t size = bytes.size();
  if (library.x509_crt_get_serial(certificate, bytes.data(), &size) < 0) return {};
  return hex_text({bytes.data(), size});
}

}  // namespace hawser::identity
