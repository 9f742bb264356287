#include "agent/engine/path_opener.h"

#include <string>
#include <utility>

namespace hawser::agent {

bool PathOpener::open(Session& session, std::size_t backend, Instant deadline, Instant now,
                      const base::Id128& supersedes) {
  const std::string address = reach_.address_of(*session.peer, backend);
  AdmissionTicket ticket;
  {
    const base::MutexLock lock(session.peer->use().mutex);
    ticket = session.peer->use().ticket;
  }
  ports_.releases().part();  // The peer is to hear of the old ones first.
  const Result<backend::Path*> path = ports_[backend].port->open_path({.peer = session.peer->name,
                                                                       .incarnation = session.peer->incarnation,
                                                                       .address = address,
                                                                       .supersedes = supersedes,
                                                                       .deadline = deadline,
                                                                       .admission = ticket.admission,
                                                                       .public_key = ticket.public_key},
                                                                      now);
  if (!path) {
    session.failed[backend] = path.error();
    session.refused.erase(backend);
    return false;
  }
  enter(session, backend, *path).supersedes = supersedes;
  return true;
}

PathEntry& PathOpener::enter(Session& session, std::size_t backend, backend::Path* path) {
  PathEntry entry;
  entry.backend = backend;
  entry.path = path;
  entry.serial = next_serial_++;
  session.paths.push_back(std::move(entry));
  paths_.add(path, session);
  return session.paths.back();
}

}  // namespace hawser::agent
