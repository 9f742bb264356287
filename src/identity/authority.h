#pragma once

// Authority: an authority of one's own, in a folder: for those who have none. It issues certificates in the shape of
// X.509-SVID and takes them back.
//
// The folder: ca.crt, ca.key (mode 0600), ca.crl, issued/SERIAL.crt.
//
// Thread rule: one thread. Calls block as files do. Two processes must not write to one folder at once.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "identity/holder.h"
#include "identity/x509.h"

namespace hawser::identity {

enum class KeyKind : std::uint8_t { kEd25519, kP256, kRsa2048 };

struct IssueOptions {
  std::string name;                   ///< The path of its SPIFFE ID.
  std::vector<std::string> dns;       ///< DNS names, or patterns of agents' names with *.
  std::int64_t begins = 0, ends = 0;  ///< Seconds since 1970.
  KeyKind key = KeyKind::kEd25519;
};

/// What belongs in an agent's folder; see IdentityFiles.
struct Issued {
  Holder holder;
  std::string certificate, key, authorities, revoked;  ///< PEM.
  /// Writes the four files, each in one piece; the key with mode 0600. Makes the folder.
  Status write(const std::string& folder) const;
};

struct Entry {
  Holder holder;
  bool is_revoked = false;
};

class Authority {
 public:
  /// Makes one in a folder without any. Errors: kInvalid: there is one, or `domain` is none.
  static Result<Authority> init(const std::string& folder, std::string_view domain, std::int64_t begins,
                                std::int64_t ends);
  static Result<Authority> open(const std::string& folder);

  const std::string& domain() const { return domain_; }
  std::int64_t ends() const { return ends_; }
  /// Errors: kInvalid: the name is no path of a SPIFFE ID, or a text is not fit for a certificate.
  Result<Issued> issue(const IssueOptions& options);
  /// What it has issued, the newest last.
  Result<std::vector<Entry>> issued() const;
  /// Takes back the certificate with that serial number, or all of that name that are not over at `now`. Gives the
  /// number of those that it took back. Errors: kNotFound.
  Result<std::size_t> revoke(std::string_view name_or_serial, std::int64_t now);
  /// The list of those taken back, in PEM.
  Result<std::string> revoked() const;
  /// Into an agent's folder.
  Status copy_revoked(const std::string& folder) const;

 private:
  struct Revoked {
    std::string serial;  ///< Bytes.
    std::int64_t at = 0;
  };
  Authority(const tls::Gnutls& library, std::string folder) : library_(library), folder_(std::move(folder)) {}
  Status load();
  Status sign(gnutls_x509_crt_t certificate) const;
  Result<Owned<gnutls_x509_crl_t>> revocations() const;
  Result<std::vector<Revoked>> revoked_list() const;
  Result<std::uint64_t> revoked_number() const;
  Status write_revoked(std::span<const Revoked> list, std::uint64_t number) const;

  const tls::Gnutls& library_;
  std::string folder_;
  std::string domain_;
  std::int64_t ends_ = 0;
  Certificate certificate_{nullptr, nullptr};
  Owned<gnutls_x509_privkey_t> key_{nullptr, nullptr};
};

}  // namespace hawser::identity
