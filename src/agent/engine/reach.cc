#include "agent/engine/reach.h"

namespace hawser::agent {

std::string Reach::address_of(PeerCore& peer, std::size_t backend) const {
  const OpenBackend& open = ports_.all()[backend];
  if (peer.is_self) return open.backend->address();
  const base::MutexLock lock(peer.use().mutex);
  const std::string* address = peer.use().card ? peer.use().card->address_of(open.name) : nullptr;
  return address != nullptr ? *address : std::string();
}

Status Reach::refusal_of(PeerCore& peer, std::size_t backend) const {
  const OpenBackend& open = ports_.all()[backend];
  if (open.traits->self_only && !peer.is_self) {
    return Status(Code::kUnsupported, open.name + " reaches this agent only");
  }
  const std::string address = address_of(peer, backend);
  if (address.empty()) {
    return Status(Code::kUnsupported, "no address for backend " + open.name + " is known of " + peer.name);
  }
  return open.backend->reachable(address);
}

std::vector<std::size_t> Reach::candidates(PeerCore& peer, std::vector<Status>* why) const {
  std::vector<std::size_t> usable;
  if (why != nullptr) why->assign(ports_.size(), Status());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const Status refusal = refusal_of(peer, i);
    if (refusal.ok()) usable.push_back(i);
    if (why != nullptr) (*why)[i] = refusal;
  }
  return usable;
}

std::vector<Attempt> Reach::attempts_of(const Session& session) const {
  std::vector<Status> why;
  static_cast<void>(candidates(*session.peer, &why));
  std::vector<Attempt> attempts;
  for (std::size_t i = 0; i < why.size(); ++i) {
    const auto failed = session.failed.find(i);
    const bool is_tried = why[i].ok() && failed != session.failed.end();
    if ((why[i].ok() && !is_tried) || session.has_path_by(i)) continue;
    attempts.push_back({.backend = ports_.all()[i].name,
                        .why = is_tried ? failed->second : why[i],
                        .leads_nowhere = !is_tried,
                        .refused = is_tried && session.refused.contains(i)});
  }
  add_left_out(*session.peer, &attempts);
  return attempts;
}

void Reach::add_left_out(PeerCore& peer, std::vector<Attempt>* attempts) const {
  const std::vector<BackendReport> reports = reports_.all();
  const base::MutexLock lock(peer.use().mutex);
  for (const BackendReport& report : reports) {
    const bool is_there = peer.use().card && peer.use().card->address_of(report.name) != nullptr;
    if (report.open || !is_there) continue;
    attempts->push_back({.backend = report.name,
                         .why = Status(report.cause.code(), "it is not open here")
                                    .because(report.cause)
                                    .with_advice(report.cause.advice()),
                         .leads_nowhere = true});
  }
}

}  // namespace hawser::agent
