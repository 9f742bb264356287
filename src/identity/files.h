#pragma once

// IdentityFiles: a folder with an identity's files, as those write them who keep identities on machines.
//
// | what                                    | its names, the first that is there counts      |
// |-----------------------------------------|------------------------------------------------|
// | certificate and those above it          | tls.crt, svid.pem, cert.pem                    |
// | its key, which only the user may read   | tls.key, svid_key.pem, key.pem                 |
// | authorities that are trusted            | ca.crt, svid_bundle.pem, bundle.pem            |
// | certificates that were revoked, if any  | ca.crl, crl.pem                                |
//
// They are `hawser ca`'s, cert-manager's and Kubernetes secrets' names, and those of SPIRE's helper.
//
// Thread rule: confined. Reading blocks as files do.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "identity/credential.h"
#include "identity/trust.h"

namespace hawser::identity {

/// What the files held at one time.
struct Snapshot {
  std::shared_ptr<const Credential> credential;
  std::shared_ptr<const Trust> trust;
};

/// Where the files of an identity are.
struct IdentityPaths {
  std::string certificate, key, authorities;
  std::string revoked;  ///< Empty: there is none.
};

/// Of a file with a key, an agent's or an authority's. Error: kDenied: others than its owner and that one's group may
/// read it, or others than its owner may write it.
Status check_private(const std::string& path);
/// Of a folder with a key or with what is trusted. kDenied: others than its owner may put other files in their places.
/// A folder with the sticky bit, as /tmp has it, is not such a one. One that is not there is none either.
Status check_private_folder(const std::string& path);

class IdentityFiles {
 public:
  /// A relative path counts from where the process is now, also when it goes elsewhere.
  explicit IdentityFiles(const std::string& folder);

  /// Errors: kNotFound (which file is missing), kDenied (others may read the key), kInvalid (what is in which file).
  /// `revoked`: a further list of revoked certificates, in PEM, beside that of the folder.
  Result<Snapshot> read(std::string_view revoked = {}) const;
  /// The number of such a list, signed by an authority that is trusted here. Errors: kInvalid: it is not, or none.
  Result<std::uint64_t> number_of(std::string_view revoked, std::string_view domain) const;
  /// For programs that read PEM files themselves. Errors: kNotFound (which file is missing), kDenied (others may read
  /// the key). What is in the files is not looked at.
  Result<IdentityPaths> paths() const;
  /// Whether a file is another, or has been written, since this was asked last. Some µs.
  bool have_changed();
  const std::string& folder() const { return folder_; }

 private:
  struct Mark {
    std::string path;
    std::int64_t changed_ns = 0;
    std::uint64_t inode = 0, size = 0;
    bool operator==(const Mark&) const = default;
  };
  std::vector<Mark> marks() const;

  std::string folder_;
  std::vector<Mark> seen_;
};

/// The name of an agent to which nobody gave one: `automatic`, or, where `folder` holds an identity, beneath the path
/// of that, which always may have it ("store/ping-17"). What is wrong with the files, opening the agent tells.
std::string name_beneath(const std::string& folder, const std::string& automatic);
/// An automatic name for one of many, of whatever host: "ping-17-3fa2c901". Two of one name would be in each other's
/// way.
std::string one_of_many(std::string_view kind);

}  // namespace hawser::identity
