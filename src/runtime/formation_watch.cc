#include "runtime/formation_watch.h"

#include <utility>

#include "base/shown.h"
#include "runtime/digest.h"
#include "runtime/recovery.h"

namespace hawser::runtime {
namespace {

constexpr std::size_t kPoliciesMax = 64;  ///< Bytes of what is not the topology.
constexpr std::string_view kCommon = "full";

std::string mark_of(const Topology& topology) {
  std::string text = to_string(topology);
  if (text.size() <= wire::kTopologyTextMax - kPoliciesMax) return text;
  Digest digest;
  for (const char each : text) digest.add(static_cast<unsigned char>(each));
  return std::to_string(topology.edges.size()) + " edges with the digest " + std::to_string(digest.value());
}

}  // namespace

std::string settings_of(const WorldOptions& options) {
  std::string text = mark_of(options.topology);
  if (options.recovery != RecoveryPolicy::kManual) {
    text += ", recovery " + std::string(to_string(options.recovery));
  }
  const bool is_majority = options.quorum == Quorum::kMajority;
  const bool is_usual = is_majority == (options.recovery == RecoveryPolicy::kAutomatic);
  if (!is_usual) text += is_majority ? ", quorum majority" : ", quorum none";
  return text;
}

FormationWatch::FormationWatch(Mailbox& mailbox, std::string_view world, std::string settings,
                               std::function<void(const Status& why)> differs)
    : mailbox_(mailbox), key_(key_of(world)), own_(std::move(settings)), differs_(std::move(differs)) {
  mailbox_.add_watcher(key_, *this, {});
}

std::uint64_t FormationWatch::key_of(std::string_view world) {
  Digest digest;
  for (const char each : world) digest.add(static_cast<unsigned char>(each));
  return digest.value();
}

bool FormationWatch::is_common() const { return own_ == kCommon; }

FormationWatch::~FormationWatch() { mailbox_.remove_watcher(key_); }

void FormationWatch::say(const Peer& to, std::string_view settings) {
  mailbox_.tell(to, {{.kind = wire::RuntimeKind::kTopology, .world = key_}, std::string(settings)}, mailbox_.now());
}

void FormationWatch::know(const Peer& rank) {
  known_.push_back(rank);
  if (has_failed()) say(rank, other_);
}

void FormationWatch::on_topology(const Peer& by, std::string_view settings) {
  if (settings == own_ || has_failed()) return;
  status_ = Status(Code::kInvalid, "'" + base::shown(by.name()) + "' opens the world with the topology " +
                                       base::shown(settings) + ", this rank with " + own_)
                .with_advice("give all ranks the same topology, recovery policy and quorum");
  has_failed_.store(true, std::memory_order_release);
  say(by, own_);
  other_ = settings;
  for (const Peer& peer : known_) say(peer, other_);  // So that they fail with this reason, too.
  mailbox_.note_end();
  differs_(status_);
}

}  // namespace hawser::runtime
