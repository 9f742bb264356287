#pragma once

// Authenticator: an agent's identity as its connections use it. It proves it to peers, checks theirs, and looks again
// at the files it came from, so that a renewed certificate and a revoked one count without a restart.
//
// Thread rule: thread-safe: the agent's lane has it, and so may a layer above. Files are read within `look` and
// `take_revoked`: some are a few KiB each, on the machine itself. Others wait meanwhile.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/log.h"
#include "base/mutex.h"
#include "identity/files.h"
#include "identity/name_rules.h"
#include "identity/proof.h"

namespace hawser::identity {

/// Who a peer has proven to be.
struct PeerIdentity {
  Holder holder;
  std::vector<std::string> chain;  ///< DER, to be looked at again.
  std::uint64_t load = 0;          ///< Of the files that it was looked at by last,
  std::int64_t at = 0;             ///< and when, seconds since 1970.
};

class Authenticator {
 public:
  struct Options {
    std::string agent;   ///< The name that the identity has to allow.
    std::string folder;  ///< See IdentityFiles.
    std::string names;   ///< See NameRules.
    Duration period = {};
  };
  /// Errors: those of IdentityFiles and NameRules; kDenied: the identity does not allow the agent's name, has expired,
  /// or is not of the authorities beside it.
  static Result<std::unique_ptr<Authenticator>> open(Options options, const base::Logger& log);

  Holder own() const { return known().snapshot.credential->holder(); }
  /// How often what is known may be asked for again.
  Duration period() const { return options_.period; }
  /// Counts the certificates that this agent has had.
  std::uint64_t renewals() const;
  /// An agent has thousands of peers, and a chain takes some 100 us: while the files stay, and the peer's certificate
  /// has not ended, it is looked at so often only.
  static constexpr std::int64_t kAgainSeconds = 600;

  /// Bytes for the other end of the connection.
  Result<std::string> prove(Speaker self, Occasion occasion, const Transcript& transcript) const;
  /// Errors: kCorrupt; kDenied: `bytes` do not prove that their speaker may be the agent `name`, and why.
  Result<PeerIdentity> check(std::span<const std::byte> bytes, Speaker speaker, Occasion occasion,
                             const Transcript& transcript, std::string_view name) const;
  /// Whether that still holds: it may have expired, or been revoked.
  Status check_again(PeerIdentity& peer, std::string_view name) const;
  /// Looks at the files, once each period.
  void look(Instant now);
  /// A list of revoked certificates, in PEM, that came another way than by the folder. It counts beside the folder's
  /// list until a newer one is given. Errors: kInvalid: no authority that is trusted here has signed it, or it is older
  /// than the last; those of IdentityFiles. Then what was known before counts on, and the log says so, once for each
  /// list; `what` names it there.
  Status take_revoked(std::string_view list, std::string_view what);

 private:
  /// What the files held, and how often they were loaded.
  struct Known {
    Snapshot snapshot;
    std::uint64_t loads = 0;
  };

  Authenticator(Options options, NameRules rules, const base::Logger& log)
      : options_(std::move(options)), rules_(std::move(rules)), log_(log), files_(options_.folder) {}
  Known known() const;
  Status load() HAWSER_REQUIRES(mutex_);
  void load_again() HAWSER_REQUIRES(mutex_);
  Status take_newer(std::string_view list) HAWSER_REQUIRES(mutex_);
  Status check_name(const Holder& holder, std::string_view name) const;
  Status check_claim(const Holder& claimed, std::string_view name) const;

  const Options options_;
  const NameRules rules_;
  const base::Logger log_;
  mutable base::Mutex mutex_;
  IdentityFiles files_ HAWSER_GUARDED_BY(mutex_);
  Known known_ HAWSER_GUARDED_BY(mutex_);
  std::string revoked_ HAWSER_GUARDED_BY(mutex_);               ///< By take_revoked.
  std::uint64_t revoked_number_ HAWSER_GUARDED_BY(mutex_) = 0;  ///< Of that.
  std::string refused_ HAWSER_GUARDED_BY(mutex_);               ///< The last list that was not taken.
  std::uint64_t renewals_ HAWSER_GUARDED_BY(mutex_) = 0;
  Instant look_at_ HAWSER_GUARDED_BY(mutex_) = Instant::min();
  /// The log has said that the agent's own certificate ends soon.
  bool is_warned_ HAWSER_GUARDED_BY(mutex_) = false;
  /// The files could not be used when they were read last. They may be valid later.
  bool has_failed_ HAWSER_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::identity
