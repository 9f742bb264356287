#include "identity/trust.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/try.h"
#include "identity/signature.h"
#include "identity/unix_time.h"

namespace hawser::identity {
namespace {

/// GnuTLS's verdict in words.
std::string_view words_of(unsigned verdict) {
  if ((verdict & GNUTLS_CERT_REVOKED) != 0) return "its authority has revoked it";
  if ((verdict & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA)) != 0) {
    return "no authority that is trusted here has issued it";
  }
  if ((verdict & GNUTLS_CERT_SIGNATURE_FAILURE) != 0) return "its authority's signature is wrong";
  if ((verdict & GNUTLS_CERT_INSECURE_ALGORITHM) != 0) return "its signature is of a kind that is not safe any more";
  if ((verdict & GNUTLS_CERT_EXPIRED) != 0) return "the certificate of its authority has expired";
  if ((verdict & GNUTLS_CERT_NOT_ACTIVATED) != 0) return "the certificate of its authority is not valid yet";
  if ((verdict & GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED) != 0) return "the authority's list of revoked ones is too old";
  if ((verdict & GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE) != 0) {
    return "the authority's list of revoked ones is of the future: compare the clocks";
  }
  return "GnuTLS does not take it";
}

/// The number of a list: lists of one authority count up. 0: it has none, or one of more than 64 bits.
std::uint64_t number_of(const tls::Gnutls& library, gnutls_x509_crl_t list) {
  std::array<unsigned char, 32> bytes;
  std::size_t size = bytes.size();
  if (library.x509_crl_get_number(list, bytes.data(), &size, nullptr) < 0) return 0;
  std::uint64_t number = 0;
  for (const unsigned char byte : std::span(bytes).first(size)) {
    if (number >> 56 != 0) return 0;
    number = number << 8 | byte;
  }
  return number;
}

Status denied(const Holder& holder, std::string_view why) {
  return Status(Code::kDenied,
                base::format("the certificate of {} (serial {}): {}", holder.id.text(), holder.serial, why));
}

}  // namespace

Result<std::shared_ptr<const Trust>> Trust::make(std::string_view authorities, std::string_view revoked,
                                                 std::string_view domain) {
  HAWSER_TRY_ASSIGN(const tls::Gnutls* library, tls::gnutls());
  std::shared_ptr<Trust> trust(new Trust(*library));
  trust->domain_ = domain;
  gnutls_x509_trust_list_t list = nullptr;
  const int result = library->x509_trust_list_init(&list, 0);
  if (result < 0) return library->error(Code::kFailed, "a list of authorities", result);
  trust->list_ = {list, [](gnutls_x509_trust_list_t each) {
                    if (const auto opened = tls::gnutls()) (*opened)->x509_trust_list_deinit(each, 1);
                  }};
  HAWSER_TRY(trust->add_authorities(authorities));
  if (!revoked.empty()) HAWSER_TRY(trust->add_revoked(revoked));
  return std::shared_ptr<const Trust>(std::move(trust));
}

Status Trust::add_authorities(std::string_view pem) {
  HAWSER_TRY_ASSIGN(std::vector<Certificate> certificates, certificates_from_pem(library_, pem));
  for (Certificate& each : certificates) {
    unsigned is_authority = 0;
    static_cast<void>(library_.x509_crt_get_basic_constraints(each.get(), nullptr, &is_authority, nullptr));
    if (is_authority == 0) return Status(Code::kInvalid, "a certificate among those to be trusted is no authority's");
    gnutls_x509_crt_t handle = each.release();  // The list frees it, also where it does not take it.
    const int added = library_.x509_trust_list_add_cas(list_.get(), &handle, 1, 0);
    if (added != 1) return Status(Code::kInvalid, "GnuTLS does not take an authority's certificate");
  }
  return {};
}

Status Trust::add_revoked(std::string_view pem) {
  gnutls_x509_crl_t* lists = nullptr;
  unsigned count = 0;
  const gnutls_datum_t bytes = datum_of(pem);
  const int result = library_.x509_crl_list_import2(&lists, &count, &bytes, GNUTLS_X509_FMT_PEM, 0);
  if (result < 0) return library_.error(Code::kInvalid, "there is no list of revoked certificates in PEM", result);
  int added = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t number = number_of(library_, lists[i]);
    const int taken = library_.x509_trust_list_add_crls(list_.get(), &lists[i], 1, GNUTLS_TL_VERIFY_CRL, 0);
    if (taken == 1) ++added;
    if (taken == 1) revocations_ = std::max(revocations_, number);
    if (taken != 1) library_.x509_crl_deinit(lists[i]);
  }
  (*library_.free)(lists);
  if (added == static_cast<int>(count)) return {};
  return Status(Code::kInvalid, "the list of revoked certificates is not signed by an authority that is trusted here");
}

/// By the holder's own times, in words that show both clocks.
Status Trust::check_now(const Holder& holder) const {
  const std::int64_t now = unix_seconds();
  if (now < holder.begins) {
    return denied(holder, base::format("it is valid from {} on, and by this host's clock it is {}",
                                       time_text(holder.begins), time_text(now)))
        .with_advice("compare the clocks of the hosts");
  }
  if (now < holder.ends) return {};
  return denied(holder, base::format("it expired at {}, and by this host's clock it is {}", time_text(holder.ends),
                                     time_text(now)))
      .with_advice("renew it (`hawser ca issue`, or what writes the files), or compare the clocks of the hosts");
}

Result<Holder> Trust::verify(std::span<const std::string> chain,
                             const std::function<Status(const Holder&)>& look) const {
  if (chain.empty() || chain.size() > kChainMax) {
    return Status(Code::kCorrupt, base::format("a chain of {} certificates", chain.size()));
  }
  std::vector<Certificate> owned;
  std::vector<gnutls_x509_crt_t> handles;
  for (const std::string& der : chain) {
    HAWSER_TRY_ASSIGN(Certificate certificate, certificate_from_der(library_, der));
    handles.push_back(certificate.get());
    owned.push_back(std::move(certificate));
  }
  HAWSER_TRY_ASSIGN(Holder holder, holder_of(library_, handles.front()));
  if (holder.id.domain() != domain_) {
    return Status(Code::kDenied, base::format("{} is of another domain than {}", holder.id.text(), domain_));
  }
  if (look != nullptr) HAWSER_TRY(look(holder));
  unsigned verdict = 0;
  const int result = library_.x509_trust_list_verify_crt2(
      list_.get(), handles.data(), static_cast<unsigned>(handles.size()), nullptr, 0, 0, &verdict, nullptr);
  if (result < 0) return library_.error(Code::kDenied, "looking at a chain of certificates", result);
  const bool is_only_late =
      verdict != 0 &&
      (verdict & ~static_cast<unsigned>(GNUTLS_CERT_INVALID | GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED)) == 0;
  if (verdict == 0 || is_only_late) HAWSER_TRY(check_now(holder));
  if (verdict != 0) return denied(holder, words_of(verdict));
  return holder;
}

Status Trust::check(const std::string& certificate, const Signature& signature, std::string_view content) const {
  HAWSER_TRY_ASSIGN(const Certificate shown, certificate_from_der(library_, certificate));
  HAWSER_TRY_ASSIGN(const auto key, make_owned(library_, library_.pubkey_init, library_.pubkey_deinit));
  int result = library_.pubkey_import_x509(key.get(), shown.get(), 0);
  if (result < 0) return library_.error(Code::kDenied, "the key of a certificate", result);
  const SignatureScheme* const scheme = scheme_of_number(signature.scheme);
  if (scheme == nullptr || library_.pubkey_get_pk_algorithm(key.get(), nullptr) != static_cast<int>(scheme->key)) {
    return Status(Code::kDenied, base::format("a signature of kind {:#06x} is not taken here", signature.scheme));
  }
  const gnutls_datum_t bytes = datum_of(content), proof = datum_of(signature.bytes);
  result = library_.pubkey_verify_data2(key.get(), scheme->algorithm, 0, &bytes, &proof);
  if (result >= 0) return {};
  return library_.error(Code::kDenied, "whoever shows the certificate did not prove to have its key", result);
}

}  // namespace hawser::identity
