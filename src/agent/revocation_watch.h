#pragma once

// RevocationWatch: an agent with an identity looks in its directory for the authority's list of revoked certificates,
// where `hawser ca revoke --directory` puts it. The list is signed, so whoever writes to the directory cannot make one;
// an older one than the last is not taken.
//
// It asks once each IdentityOptions::look and never waits: it hands requests in and looks for answers when the lane
// turns. The work of a directory without threads of its own is done by `run_jobs`. A layer above that uses the agent's
// identity beside it may have a watch of its own, because the agent's turns only as often as somebody runs the agent.
//
// Thread rule: one thread at a time, the lane's watch under the lane's lock; but for run_jobs. Lifetime: what it uses
// outlives it.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <hawser/directory.h>
#include <hawser/time.h>

#include "agent/part.h"
#include "identity/authenticator.h"

namespace hawser::agent {

class RevocationWatch final : public Part {
 public:
  struct Uses {
    const std::shared_ptr<Directory>& directory;
    const std::shared_ptr<identity::Authenticator>& authenticator;
    const std::string& agent;
  };
  explicit RevocationWatch(const Uses& uses) : its_(uses) {}

  /// Before this is called nothing happens.
  void open();
  void close();

  // As a part.
  std::size_t turn(Instant now) override;
  void run_jobs(Instant now) override;
  void describe(const Visitor& visitor) const override;

 private:
  void take(const DirectoryEvent& answer);

  const Uses its_;
  std::string key_;  ///< Empty: it is not open.
  std::optional<Ticket> asking_;
  Instant give_up_at_;
};

}  // namespace hawser::agent
