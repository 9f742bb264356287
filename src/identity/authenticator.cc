#include "identity/authenticator.h"

#include <utility>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"
#include "identity/unix_time.h"

namespace hawser::identity {
namespace {

constexpr const char* kNameAdvice =
    "give the certificate a DNS name that matches (`hawser ca issue NAME --san 'PATTERN'`), add a rule by the option "
    "identity.names, or call the agent so";

/// A certificate of which less than a tenth of its time is left should have been renewed.
bool is_near_its_end(const Holder& holder) { return unix_seconds() > holder.ends - (holder.ends - holder.begins) / 10; }

}  // namespace

Result<std::unique_ptr<Authenticator>> Authenticator::open(Options options, const base::Logger& log) {
  HAWSER_TRY_ASSIGN(NameRules rules, NameRules::parse(options.names));
  std::unique_ptr<Authenticator> authenticator(new Authenticator(std::move(options), std::move(rules), log));
  const base::MutexLock lock(authenticator->mutex_);
  static_cast<void>(authenticator->files_.have_changed());
  HAWSER_TRY(authenticator->load());
  return authenticator;
}

Authenticator::Known Authenticator::known() const {
  const base::MutexLock lock(mutex_);
  return known_;
}

std::uint64_t Authenticator::renewals() const {
  const base::MutexLock lock(mutex_);
  return renewals_;
}

Status Authenticator::load() {
  HAWSER_TRY_ASSIGN(Snapshot snapshot, files_.read(revoked_));
  HAWSER_TRY_ASSIGN(const Holder own, snapshot.trust->verify(snapshot.credential->chain()));
  HAWSER_TRY(check_name(own, options_.agent));
  const auto& before = known_.snapshot.credential;
  const bool is_another = before == nullptr || before->chain() != snapshot.credential->chain();
  known_.snapshot = std::move(snapshot);
  ++known_.loads;
  if (is_another) ++renewals_;
  is_warned_ = false;
  return {};
}

Status Authenticator::check_name(const Holder& holder, std::string_view name) const {
  if (rules_.allows(holder, name)) return {};
  return Status(Code::kDenied, base::format("{} may not speak for an agent called '{}': it may for {}",
                                            holder.id.text(), base::shown(name), rules_.names_of(holder)))
      .with_advice(kNameAdvice);
}

/// Nobody has proven to be this holder, so the answer does not tell this agent's rules.
Status Authenticator::check_claim(const Holder& claimed, std::string_view name) const {
  if (rules_.allows(claimed, name)) return {};
  return Status(Code::kDenied,
                base::format("whoever shows a certificate of {} may not speak for an agent called '{}': that is for {}",
                             claimed.id.text(), base::shown(name), NameRules().names_of(claimed)))
      .with_advice(kNameAdvice);
}

Result<std::string> Authenticator::prove(Speaker self, Occasion occasion, const Transcript& transcript) const {
  const auto credential = known().snapshot.credential;
  HAWSER_TRY_ASSIGN(Signature signature, credential->sign(proof_content(self, occasion, transcript)));
  return encode({.signature = std::move(signature), .chain = credential->chain()});
}

Result<PeerIdentity> Authenticator::check(std::span<const std::byte> bytes, Speaker speaker, Occasion occasion,
                                          const Transcript& transcript, std::string_view name) const {
  HAWSER_TRY_ASSIGN(IdentityProof proof, decode_proof(bytes));
  const Known now = known();
  const Trust& trust = *now.snapshot.trust;
  // The name first: it costs nothing, and signatures take some 0.3 ms of the lane's time.
  const auto fits = [this, name](const Holder& claimed) { return check_claim(claimed, name); };
  HAWSER_TRY_ASSIGN(Holder holder, trust.verify(proof.chain, fits));
  HAWSER_TRY(trust.check(proof.chain.front(), proof.signature, proof_content(speaker, occasion, transcript)));
  return PeerIdentity{
      .holder = std::move(holder), .chain = std::move(proof.chain), .load = now.loads, .at = unix_seconds()};
}

Status Authenticator::check_again(PeerIdentity& peer, std::string_view name) const {
  const std::int64_t now = unix_seconds();
  const bool is_recent = now >= peer.at && now - peer.at < kAgainSeconds && now < peer.holder.ends;
  const Known latest = known();
  if (is_recent && peer.load == latest.loads) return {};
  HAWSER_TRY_ASSIGN(const Holder holder, latest.snapshot.trust->verify(peer.chain));
  HAWSER_TRY(check_name(holder, name));
  peer.load = latest.loads;
  peer.at = now;
  return {};
}

void Authenticator::look(Instant now) {
  const base::MutexLock lock(mutex_);
  if (now < look_at_) return;
  look_at_ = now + options_.period;
  load_again();
  const Holder& own = known_.snapshot.credential->holder();
  if (is_warned_ || !is_near_its_end(own)) return;
  is_warned_ = true;
  HAWSER_LOG(log_, kWarn, "identity: the certificate of {} ends at {}, and nobody has renewed it in {}", own.id.text(),
             time_text(own.ends), files_.folder());
}

Status Authenticator::take_revoked(std::string_view list, std::string_view what) {
  const base::MutexLock lock(mutex_);
  Status taken = take_newer(list);
  if (taken.ok() || list == refused_) return taken;
  refused_ = list;
  HAWSER_LOG(log_, kWarn, "{} is not used: {}", what, taken.to_string());
  return taken;
}

Status Authenticator::take_newer(std::string_view list) {
  if (list == revoked_) return {};
  const std::string_view domain = known_.snapshot.credential->holder().id.domain();
  HAWSER_TRY_ASSIGN(const std::uint64_t number, files_.number_of(list, domain));
  if (number < revoked_number_) {
    return Status(Code::kInvalid, base::format("the list of revoked certificates has number {}, and one of number {} "
                                               "was there before",
                                               number, revoked_number_))
        .with_advice("publish the newest: `hawser ca publish --directory DIRECTORY`");
  }
  std::string before = std::exchange(revoked_, std::string(list));
  if (Status status = load(); !status.ok()) {
    revoked_ = std::move(before);
    return status;
  }
  revoked_number_ = number;
  HAWSER_LOG(log_, kInfo, "identity: list {} of revoked certificates counts now", number);
  return {};
}

/// Files that could not be used are tried again, without another word: a certificate may be valid a little later.
void Authenticator::load_again() {
  const bool have_changed = files_.have_changed();
  if (!have_changed && !has_failed_) return;
  const Status status = load();
  has_failed_ = !status.ok();
  if (status.ok()) {
    const Holder& own = known_.snapshot.credential->holder();
    HAWSER_LOG(log_, kInfo, "identity: {} holds {} now, until {}", files_.folder(), own.id.text(), time_text(own.ends));
  } else if (have_changed) {
    HAWSER_LOG(log_, kWarn, "identity: what is new in {} is not used, what was there before counts on: {}",
               files_.folder(), status.to_string());
  }
}

}  // namespace hawser::identity
