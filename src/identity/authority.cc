#include "identity/authority.h"

#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"
#include "identity/files.h"
#include "identity/whole_file.h"
#include "tls/key_pair.h"
#include "tls/steps.h"

namespace hawser::identity {
namespace {

constexpr std::size_t kAuthorityFileMax = 16u << 20;
constexpr std::size_t kSerialBytes = 16;
constexpr std::size_t kKeyIdBytes = 20;
constexpr std::size_t kCommonNameMax = 64;  ///< RFC 5280, ub-common-name.
constexpr unsigned kX509Third = 3, kCrlSecond = 2;
constexpr mode_t kSecret = 0600, kPublic = 0644;

struct Keys {
  Owned<gnutls_x509_privkey_t> handle{nullptr, nullptr};
  std::string pem;
};

/// From libsodium's random numbers, as all keys of agents.
int make_ed25519(const tls::Gnutls& library, gnutls_x509_privkey_t key) {
  const tls::KeyPair pair = tls::KeyPair::make();
  const gnutls_datum_t x = tls::datum_of(pair.public_key()), k = tls::datum_of(pair.seed());
  return library.x509_privkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_ED25519, &x, nullptr, &k);
}

int make_key(const tls::Gnutls& library, gnutls_x509_privkey_t key, KeyKind kind) {
  constexpr unsigned kRsaBits = 2048;
  switch (kind) {
    case KeyKind::kEd25519:
      break;
    case KeyKind::kP256:
      return library.x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    case KeyKind::kRsa2048:
      return library.x509_privkey_generate(key, GNUTLS_PK_RSA, kRsaBits, 0);
  }
  return make_ed25519(library, key);
}

Result<Keys> make_keys(const tls::Gnutls& library, KeyKind kind) {
  Keys keys;
  HAWSER_TRY_ASSIGN(keys.handle, make_owned(library, library.x509_privkey_init, library.x509_privkey_deinit));
  gnutls_datum_t pem = {};
  tls::Steps steps;
  steps.then([&] { return make_key(library, keys.handle.get(), kind); }).then([&] {
    return library.x509_privkey_export2_pkcs8(keys.handle.get(), GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN, &pem);
  });
  if (steps.result() < 0) return library.error(Code::kUnsupported, "making a key", steps.result());
  keys.pem = take_datum(library, pem);
  return keys;
}

/// What every certificate has: version, a random number, times, a name for people, its key.
Result<Certificate> begin_certificate(const tls::Gnutls& library, std::string_view common_name, std::int64_t begins,
                                      std::int64_t ends, gnutls_x509_privkey_t key) {
  HAWSER_TRY_ASSIGN(Certificate certificate, make_certificate(library));
  std::array<unsigned char, kSerialBytes> serial;
  randombytes_buf(serial.data(), serial.size());
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // Positive, and always of the same length.
  std::array<unsigned char, kKeyIdBytes> id;
  randombytes_buf(id.data(), id.size());
  gnutls_x509_crt_t crt = certificate.get();
  const std::string_view cn = common_name.substr(0, kCommonNameMax);
  tls::Steps steps;
  steps.then([&] { return library.x509_crt_set_version(crt, kX509Third); })
      .then([&] { return library.x509_crt_set_serial(crt, serial.data(), serial.size()); })
      .then([&] { return library.x509_crt_set_activation_time(crt, begins); })
      .then([&] { return library.x509_crt_set_expiration_time(crt, ends); })
      .then([&] {
        return library.x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, cn.data(),
                                              static_cast<unsigned>(cn.size()));
      })
      .then([&] { return library.x509_crt_set_subject_key_id(crt, id.data(), id.size()); })
      .then([&] { return library.x509_crt_set_key(crt, key); });
  if (steps.result() < 0) return library.error(Code::kInvalid, "making a certificate", steps.result());
  return certificate;
}

int add_name(const tls::Gnutls& library, gnutls_x509_crt_t certificate, gnutls_x509_subject_alt_name_t type,
             std::string_view name) {
  return library.x509_crt_set_subject_alt_name(certificate, type, name.data(), static_cast<unsigned>(name.size()),
                                               GNUTLS_FSAN_APPEND);
}

Status check_dns(std::string_view name) {
  constexpr std::size_t kDnsMax = 255;
  const bool is_fit = !name.empty() && name.size() <= kDnsMax &&
                      std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != ','; });
  if (is_fit) return {};
  return Status(Code::kInvalid, base::format("'{}' is no name for a certificate", base::shown(name)))
      .with_advice("1 to 255 characters of ASCII without blanks and commas; * stands for any characters");
}

Result<std::string> read_text(const std::string& path) { return read_whole_file(path, kAuthorityFileMax); }

std::string bytes_of_hex(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  std::size_t size = 0;
  if (sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), hex.data(), hex.size(), nullptr,
                     &size, nullptr) != 0) {
    return {};
  }
  return bytes;
}

/// As DER wants an integer: as few bytes as keep it positive.
std::vector<unsigned char> big_endian(std::uint64_t number) {
  std::vector<unsigned char> bytes;
  do {
    bytes.insert(bytes.begin(), static_cast<unsigned char>(number));
    number >>= 8;
  } while (number != 0);
  if ((bytes.front() & 0x80) != 0) bytes.insert(bytes.begin(), 0);
  return bytes;
}

/// With the folders above it. A folder that is there keeps its mode: it may be anybody's, such as /tmp. kDenied where
/// others may replace what lies in it.
Status make_private_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole(path);
  if (std::filesystem::is_directory(whole, error)) return check_private_folder(path);
  error.clear();  // It is not there.
  if (whole.has_parent_path()) std::filesystem::create_directories(whole.parent_path(), error);
  if (error) return base::errno_status("making the folder " + whole.parent_path().string(), error.value());
  if (::mkdir(path.c_str(), 0700) != 0) return base::errno_status("making the folder " + path, errno);
  return {};
}

}  // namespace

// ---- Issued

Status Issued::write(const std::string& folder) const {
  HAWSER_TRY(make_private_folder(folder));
  // An agent that looks meanwhile finds a key that does not fit, goes on with the old one, and looks again.
  HAWSER_TRY(write_whole_file(folder + "/ca.crt", authorities, kPublic));
  HAWSER_TRY(write_whole_file(folder + "/ca.crl", revoked, kPublic));
  HAWSER_TRY(write_whole_file(folder + "/tls.key", key, kSecret));
  return write_whole_file(folder + "/tls.crt", certificate, kPublic);
}

// ---- Authority

Result<Authority> Authority::init(const std::string& folder, std::string_view domain, std::int64_t begins,
                                  std::int64_t ends) {
  HAWSER_TRY_ASSIGN(const tls::Gnutls* library, tls::gnutls());
  HAWSER_TRY_ASSIGN(const SpiffeId id, SpiffeId::parse(base::format("spiffe://{}", domain)));
  if (!id.path().empty()) return Status(Code::kInvalid, base::format("'{}' is no domain", base::shown(domain)));
  if (sodium_init() < 0) return Status(Code::kFailed, "libsodium could not be initialised");
  if (std::filesystem::exists(folder + "/ca.key")) {
    return Status(Code::kInvalid, folder + " holds an authority already")
        .with_advice("choose another folder; who trusts the old authority does not trust a new one");
  }
  HAWSER_TRY(make_private_folder(folder));
  HAWSER_TRY(make_private_folder(folder + "/issued"));
  Authority authority(*library, folder);
  HAWSER_TRY_ASSIGN(Keys keys, make_keys(*library, KeyKind::kEd25519));
  authority.key_ = std::move(keys.handle);
  HAWSER_TRY_ASSIGN(authority.certificate_, begin_certificate(*library, base::format("hawser authority of {}", domain),
                                                              begins, ends, authority.key_.get()));
  gnutls_x509_crt_t crt = authority.certificate_.get();
  tls::Steps steps;
  steps.then([&] { return library->x509_crt_set_basic_constraints(crt, 1, 0); })
      .then([&] { return library->x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN); })
      .then([&] { return add_name(*library, crt, GNUTLS_SAN_URI, id.text()); });
  if (steps.result() < 0) return library->error(Code::kInvalid, "making the authority's certificate", steps.result());
  authority.domain_ = id.domain();
  authority.ends_ = ends;
  HAWSER_TRY(authority.sign(crt));
  HAWSER_TRY_ASSIGN(const std::string pem, pem_of(*library, crt));
  HAWSER_TRY(write_whole_file(folder + "/ca.key", keys.pem, kSecret));
  HAWSER_TRY(write_whole_file(folder + "/ca.crt", pem, kPublic));
  HAWSER_TRY(authority.write_revoked({}, 1));
  return authority;
}

Result<Authority> Authority::open(const std::string& folder) {
  HAWSER_TRY_ASSIGN(const tls::Gnutls* library, tls::gnutls());
  if (sodium_init() < 0) return Status(Code::kFailed, "libsodium could not be initialised");
  if (!std::filesystem::exists(folder + "/ca.key")) {
    return Status(Code::kNotFound, folder + " holds no authority (ca.key is not there)")
        .with_advice("`hawser ca init --folder " + folder + " DOMAIN` makes one");
  }
  Authority authority(*library, folder);
  HAWSER_TRY(authority.load());
  return authority;
}

Status Authority::load() {
  HAWSER_TRY_ASSIGN(const std::string pem, read_text(folder_ + "/ca.crt"));
  HAWSER_TRY_ASSIGN(std::vector<Certificate> certificates, certificates_from_pem(library_, pem));
  certificate_ = std::move(certificates.front());
  domain_ = domain_of(library_, certificate_.get());
  if (domain_.empty()) return Status(Code::kInvalid, folder_ + "/ca.crt names no domain");
  ends_ = library_.x509_crt_get_expiration_time(certificate_.get());
  HAWSER_TRY(check_private_folder(folder_));
  HAWSER_TRY(check_private(folder_ + "/ca.key"));
  HAWSER_TRY_ASSIGN(const std::string key, read_text(folder_ + "/ca.key"));
  HAWSER_TRY_ASSIGN(key_, make_owned(library_, library_.x509_privkey_init, library_.x509_privkey_deinit));
  const gnutls_datum_t bytes = datum_of(key);
  const int result = library_.x509_privkey_import(key_.get(), &bytes, GNUTLS_X509_FMT_PEM);
  if (result < 0) return library_.error(Code::kInvalid, folder_ + "/ca.key", result);
  return {};
}

Status Authority::sign(gnutls_x509_crt_t certificate) const {
  std::array<unsigned char, kKeyIdBytes> id;
  std::size_t size = id.size();
  int result = library_.x509_crt_get_subject_key_id(certificate_.get(), id.data(), &size, nullptr);
  if (result >= 0) result = library_.x509_crt_set_authority_key_id(certificate, id.data(), size);
  if (result >= 0) {
    result = library_.x509_crt_sign2(certificate, certificate_.get(), key_.get(), GNUTLS_DIG_SHA512, 0);
  }
  if (result < 0) return library_.error(Code::kFailed, "signing a certificate", result);
  return {};
}

Result<Issued> Authority::issue(const IssueOptions& options) {
  HAWSER_TRY_ASSIGN(const SpiffeId id, SpiffeId::parse(base::format("spiffe://{}/{}", domain_, options.name)));
  for (const std::string& name : options.dns) HAWSER_TRY(check_dns(name));
  Issued issued;
  HAWSER_TRY_ASSIGN(Keys keys, make_keys(library_, options.key));
  HAWSER_TRY_ASSIGN(const Certificate certificate, begin_certificate(library_, options.name, options.begins,
                                                                     std::min(options.ends, ends_), keys.handle.get()));
  gnutls_x509_crt_t crt = certificate.get();
  tls::Steps steps;
  steps.then([&] { return library_.x509_crt_set_basic_constraints(crt, 0, -1); })
      .then([&] { return library_.x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE); })
      .then([&] { return library_.x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0); })
      .then([&] { return library_.x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0); })
      .then([&] { return add_name(library_, crt, GNUTLS_SAN_URI, id.text()); });
  for (const std::string& name : options.dns) {
    steps.then([&] { return add_name(library_, crt, GNUTLS_SAN_DNSNAME, name); });
  }
  if (steps.result() < 0) return library_.error(Code::kInvalid, "making a certificate", steps.result());
  HAWSER_TRY(sign(crt));
  issued.key = std::move(keys.pem);
  HAWSER_TRY_ASSIGN(issued.certificate, pem_of(library_, crt));
  // GnuTLS knows the names of a certificate only that it has read.
  HAWSER_TRY_ASSIGN(const std::vector<Certificate> made, certificates_from_pem(library_, issued.certificate));
  HAWSER_TRY_ASSIGN(issued.holder, holder_of(library_, made.front().get()));
  HAWSER_TRY_ASSIGN(issued.authorities, read_text(folder_ + "/ca.crt"));
  HAWSER_TRY_ASSIGN(issued.revoked, revoked());
  HAWSER_TRY(
      write_whole_file(base::format("{}/issued/{}.crt", folder_, issued.holder.serial), issued.certificate, kPublic));
  return issued;
}

Result<std::vector<Entry>> Authority::issued() const {
  HAWSER_TRY_ASSIGN(const std::vector<Revoked> revoked, revoked_list());
  std::vector<Entry> entries;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/issued", error)) {
    if (file.path().extension() != ".crt") continue;
    HAWSER_TRY_ASSIGN(const std::string pem, read_text(file.path().string()));
    HAWSER_TRY_ASSIGN(const std::vector<Certificate> certificates, certificates_from_pem(library_, pem));
    HAWSER_TRY_ASSIGN(Holder holder, holder_of(library_, certificates.front().get()));
    const bool is_revoked =
        std::ranges::any_of(revoked, [&](const Revoked& each) { return hex_text(each.serial) == holder.serial; });
    entries.push_back({std::move(holder), is_revoked});
  }
  if (error) return base::errno_status("reading " + folder_ + "/issued", error.value());
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.holder.begins, a.holder.serial) < std::pair(b.holder.begins, b.holder.serial);
  });
  return entries;
}

Result<std::size_t> Authority::revoke(std::string_view name_or_serial, std::int64_t now) {
  HAWSER_TRY_ASSIGN(std::vector<Revoked> revoked, revoked_list());
  HAWSER_TRY_ASSIGN(const std::vector<Entry> entries, issued());
  std::size_t count = 0;
  bool is_known = false;
  for (const Entry& each : entries) {
    const bool is_serial = each.holder.serial == name_or_serial;
    if (!is_serial && each.holder.id.path() != name_or_serial) continue;
    is_known = true;
    if (each.is_revoked || (!is_serial && each.holder.ends <= now)) continue;
    revoked.push_back({.serial = bytes_of_hex(each.holder.serial), .at = now});
    ++count;
  }
  if (!is_known) {
    return Status(Code::kNotFound, base::format("{} has issued nothing to '{}'", domain_, base::shown(name_or_serial)))
        .with_advice("`hawser ca show` lists what it has issued");
  }
  HAWSER_TRY_ASSIGN(const std::uint64_t number, revoked_number());
  if (count > 0) HAWSER_TRY(write_revoked(revoked, number + 1));
  return count;
}

Result<std::string> Authority::revoked() const { return read_text(folder_ + "/ca.crl"); }

Status Authority::copy_revoked(const std::string& folder) const {
  HAWSER_TRY(check_private_folder(folder));
  HAWSER_TRY_ASSIGN(const std::string pem, revoked());
  return write_whole_file(folder + "/ca.crl", pem, kPublic);
}

Result<Owned<gnutls_x509_crl_t>> Authority::revocations() const {
  HAWSER_TRY_ASSIGN(const std::string pem, revoked());
  HAWSER_TRY_ASSIGN(auto crl, make_owned(library_, library_.x509_crl_init, library_.x509_crl_deinit));
  const gnutls_datum_t bytes = datum_of(pem);
  const int result = library_.x509_crl_import(crl.get(), &bytes, GNUTLS_X509_FMT_PEM);
  if (result < 0) return library_.error(Code::kInvalid, folder_ + "/ca.crl", result);
  return crl;
}

Result<std::vector<Authority::Revoked>> Authority::revoked_list() const {
  HAWSER_TRY_ASSIGN(const auto crl, revocations());
  std::vector<Revoked> list;
  const int count = library_.x509_crl_get_crt_count(crl.get());
  for (int i = 0; i < count; ++i) {
    std::array<char, 64> serial;
    std::size_t size = serial.size();
    time_t at = 0;
    const int result = library_.x509_crl_get_crt_serial(crl.get(), static_cast<unsigned>(i),
                                                        reinterpret_cast<unsigned char*>(serial.data()), &size, &at);
    if (result < 0) return library_.error(Code::kInvalid, folder_ + "/ca.crl", result);
    list.push_back({.serial = std::string(serial.data(), size), .at = at});
  }
  return list;
}

Result<std::uint64_t> Authority::revoked_number() const {
  HAWSER_TRY_ASSIGN(const auto crl, revocations());
  std::array<unsigned char, 32> bytes;
  std::size_t size = bytes.size();
  const int result = library_.x509_crl_get_number(crl.get(), bytes.data(), &size, nullptr);
  if (result < 0) return library_.error(Code::kInvalid, folder_ + "/ca.crl", result);
  std::uint64_t number = 0;
  for (const unsigned char byte : std::span(bytes).first(size)) number = number << 8 | byte;
  return number;
}

Status Authority::write_revoked(std::span<const Revoked> list, std::uint64_t number) const {
  HAWSER_TRY_ASSIGN(const auto crl, make_owned(library_, library_.x509_crl_init, library_.x509_crl_deinit));
  const std::vector<unsigned char> number_bytes = big_endian(number);
  std::array<unsigned char, kKeyIdBytes> id;
  std::size_t id_size = id.size();
  const time_t begins = library_.x509_crt_get_activation_time(certificate_.get());
  tls::Steps steps;
  steps.then([&] { return library_.x509_crl_set_version(crl.get(), kCrlSecond); })
      .then([&] { return library_.x509_crl_set_this_update(crl.get(), begins); })
      .then([&] { return library_.x509_crl_set_next_update(crl.get(), ends_); })
      .then([&] { return library_.x509_crl_set_number(crl.get(), number_bytes.data(), number_bytes.size()); })
      .then([&] { return library_.x509_crt_get_subject_key_id(certificate_.get(), id.data(), &id_size, nullptr); })
      .then([&] { return library_.x509_crl_set_authority_key_id(crl.get(), id.data(), id_size); });
  for (const Revoked& each : list) {
    steps.then(
        [&] { return library_.x509_crl_set_crt_serial(crl.get(), each.serial.data(), each.serial.size(), each.at); });
  }
  gnutls_datum_t pem = {};
  steps.then([&] { return library_.x509_crl_sign2(crl.get(), certificate_.get(), key_.get(), GNUTLS_DIG_SHA512, 0); })
      .then([&] { return library_.x509_crl_export2(crl.get(), GNUTLS_X509_FMT_PEM, &pem); });
  if (steps.result() < 0)
    return library_.error(Code::kFailed, "making the list of revoked certificates", steps.result());
  return write_whole_file(folder_ + "/ca.crl", take_datum(library_, pem), kPublic);
}

}  // namespace hawser::identity
