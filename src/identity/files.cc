#include "identity/files.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"
#include "identity/whole_file.h"

namespace hawser::identity {
namespace {

constexpr std::size_t kIdentityFileMax = 1u << 20;

struct Kind {
  std::string_view what;
  std::array<std::string_view, 3> names;
  bool is_secret = false;
  bool may_be_missing = false;
};

constexpr Kind kCertificate = {"certificate", {"tls.crt", "svid.pem", "cert.pem"}};
constexpr Kind kKey = {"key", {"tls.key", "svid_key.pem", "key.pem"}, true};
constexpr Kind kAuthorities = {"authorities", {"ca.crt", "svid_bundle.pem", "bundle.pem"}};
constexpr Kind kRevoked = {"revoked certificates", {"ca.crl", "crl.pem", ""}, false, true};

struct File {
  std::string path, text;
};

/// The first of its names that is there.
std::string path_of(const std::string& folder, const Kind& kind) {
  for (const std::string_view name : kind.names) {
    std::string path = folder + "/" + std::string(name);
    if (!name.empty() && ::access(path.c_str(), F_OK) == 0) return path;
  }
  return {};
}

/// Its path is empty where it may be missing and is.
Result<File> find_kind(const std::string& folder, const Kind& kind) {
  File file = {.path = path_of(folder, kind)};
  if (file.path.empty() && kind.may_be_missing) return file;
  if (file.path.empty()) {
    return Status(Code::kNotFound, base::format("{}: no {} is there", folder, kind.what))
        .with_advice(base::format("its name is {}, {} or {}; `hawser ca issue` writes such a folder", kind.names[0],
                                  kind.names[1], kind.names[2]));
  }
  if (kind.is_secret) HAWSER_TRY(check_private(file.path));
  return file;
}

Result<File> read_kind(const std::string& folder, const Kind& kind) {
  HAWSER_TRY_ASSIGN(File file, find_kind(folder, kind));
  if (file.path.empty()) return file;
  HAWSER_TRY_ASSIGN(file.text, read_whole_file(file.path, kIdentityFileMax));
  return file;
}

/// `why` with the file that it is about.
Status in_file(const std::string& path, const Status& why) {
  return Status(why.code(), base::format("{}: {}", path, why.message())).with_advice(std::string(why.advice()));
}

}  // namespace

Status check_private(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return {};  // Who reads it will tell.
  if ((facts.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) == 0) return {};
  return Status(Code::kDenied, base::format("{}: others than its owner's group may read the key, or others than its "
                                            "owner may write it (mode {:o})",
                                            path, facts.st_mode & 07777))
      .with_advice("chmod 600 " + path + "   (in a Kubernetes volume: defaultMode 0440 with fsGroup)");
}

Status check_private_folder(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return {};
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (facts.st_mode & S_ISVTX) != 0) return {};
  return Status(Code::kDenied,
                base::format("{}: others than its owner may write this folder (mode {:o}), and so replace "
                             "keys and what is trusted in it",
                             base::shown(path), facts.st_mode & 07777))
      .with_advice("chmod go-w " + path);
}

IdentityFiles::IdentityFiles(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(folder, error);
  folder_ = error ? folder : absolute.string();
}

Result<IdentityPaths> IdentityFiles::paths() const {
  HAWSER_TRY_ASSIGN(File certificate, find_kind(folder_, kCertificate));
  HAWSER_TRY_ASSIGN(File key, find_kind(folder_, kKey));
  HAWSER_TRY_ASSIGN(File authorities, find_kind(folder_, kAuthorities));
  HAWSER_TRY_ASSIGN(File revoked, find_kind(folder_, kRevoked));
  return IdentityPaths{.certificate = std::move(certificate.path),
                       .key = std::move(key.path),
                       .authorities = std::move(authorities.path),
                       .revoked = std::move(revoked.path)};
}

Result<std::uint64_t> IdentityFiles::number_of(std::string_view revoked, std::string_view domain) const {
  if (revoked.size() > kIdentityFileMax) return Status(Code::kInvalid, "the list of revoked certificates is too long");
  if (revoked.empty()) return Status(Code::kInvalid, "the list of revoked certificates is empty");
  HAWSER_TRY_ASSIGN(const File authorities, read_kind(folder_, kAuthorities));
  HAWSER_TRY_ASSIGN(const auto trust, Trust::make(authorities.text, revoked, domain));
  return trust->revocations();
}

Result<Snapshot> IdentityFiles::read(std::string_view further) const {
  HAWSER_TRY_ASSIGN(const File certificate, read_kind(folder_, kCertificate));
  HAWSER_TRY_ASSIGN(File key, read_kind(folder_, kKey));
  HAWSER_TRY_ASSIGN(const File authorities, read_kind(folder_, kAuthorities));
  HAWSER_TRY_ASSIGN(File revoked, read_kind(folder_, kRevoked));
  if (!further.empty()) revoked.text += base::format("\n{}", further);
  Snapshot snapshot;
  Result<std::shared_ptr<const Credential>> credential = Credential::make(certificate.text, key.text);
  sodium_memzero(key.text.data(), key.text.size());
  if (!credential) return in_file(certificate.path, credential.error());
  snapshot.credential = *std::move(credential);
  Result<std::shared_ptr<const Trust>> trust =
      Trust::make(authorities.text, revoked.text, snapshot.credential->holder().id.domain());
  if (!trust) return in_file(authorities.path + (revoked.path.empty() ? "" : ", " + revoked.path), trust.error());
  snapshot.trust = *std::move(trust);
  return snapshot;
}

std::vector<IdentityFiles::Mark> IdentityFiles::marks() const {
  std::vector<Mark> marks;
  for (const Kind* kind : {&kCertificate, &kKey, &kAuthorities, &kRevoked}) {
    Mark mark = {.path = path_of(folder_, *kind)};
    struct stat facts = {};
    if (!mark.path.empty() && ::stat(mark.path.c_str(), &facts) == 0) {
      mark.changed_ns = facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec;
      mark.inode = facts.st_ino;
      mark.size = static_cast<std::uint64_t>(facts.st_size);
    }
    marks.push_back(std::move(mark));
  }
  return marks;
}

bool IdentityFiles::have_changed() {
  std::vector<Mark> now = marks();
  if (now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

std::string one_of_many(std::string_view kind) {
  return base::format("{}-{}-{:08x}", kind, ::getpid(), randombytes_random());
}

std::string name_beneath(const std::string& folder, const std::string& automatic) {
  if (folder.empty()) return automatic;
  const Result<Snapshot> snapshot = IdentityFiles(folder).read();
  return snapshot ? base::format("{}/{}", snapshot->credential->holder().id.path(), automatic) : automatic;
}

}  // namespace hawser::identity
