#include "runtime/formation_watch.h"

#include <utility>

#include "base/shown.h"
#include "runtime/digest.h"

namespace hawser::runtime {
namespace {

std::uint64_t topology_key(std::string_view world) {
  Digest digest;
  for (const char each : world) digest.add(static_cast<unsigned char>(each));
  return digest.value();
}

/// A text for people, by which the topology is also told from others.
std::string mark_of(const Topology& topology) {
  std::string text = to_string(topology);
  if (text.size() <= wire::kTopologyTextMax) return text;
  Digest digest;
  for (const char each : text) digest.add(static_cast<unsigned char>(each));
  return std::to_string(topology.edges.size()) + " edges with the digest " + std::to_string(digest.value());
}

}  // namespace

FormationWatch::FormationWatch(Mailbox& mailbox, std::string_view world, const Topology& topology,
                               std::function<void(const Status& why)> differs)
    : mailbox_(mailbox), key_(topology_key(world)), own_(mark_of(topology)), differs_(std::move(differs)) {
  mailbox_.add_watcher(key_, *this, {});
}

FormationWatch::~FormationWatch() { mailbox_.remove_watcher(key_); }

void FormationWatch::say(const Peer& to, std::string_view topology) {
  mailbox_.tell(to, {.kind = wire::RuntimeKind::kTopology, .world = key_}, std::string(topology), mailbox_.now());
}

void FormationWatch::know(const Peer& rank) {
  known_.push_back(rank);
  if (has_failed()) say(rank, other_);
}

void FormationWatch::on_topology(const Peer& by, std::string_view topology) {
  if (topology == own_ || has_failed()) return;
  status_ = Status(Code::kInvalid, "'" + base::shown(by.name()) + "' opens the world with the topology " +
                                       base::shown(topology) + ", this rank with " + own_)
                .with_advice("give all ranks the same topology");
  has_failed_.store(true, std::memory_order_release);
  say(by, own_);
  other_ = topology;
  for (const Peer& peer : known_) say(peer, other_);  // So that they fail with this reason, too.
  mailbox_.note_end();
  differs_(status_);
}

}  // namespace hawser::runtime
