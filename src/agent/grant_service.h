#pragma once

// GrantService: how the owner of a grant for one transfer learns that the transfer is final: its holder says so. Where
// the target serves each chunk itself it refuses other transfers anyway; over mapped memory and RDMA it sees none. The
// holder remembers which grants it used, so that one that is imported again is not used again before its owner knows.
//
// Thread rule: under the lane's lock, but for make_use.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "agent/grant_book.h"
#include "agent/grant_ends.h"
#include "agent/lane_access.h"
#include "agent/one_use.h"
#include "agent/service.h"
#include "wire/grant.h"

namespace hawser::agent {

/// Ends that one owner has not been told. An owner that takes no more of them closes those grants at their expiry.
inline constexpr std::size_t kGrantEndsMax = 65'536;
inline constexpr std::uint32_t kGrantsWindow = 256;  ///< Words of a peer that wait to be read; they are read at once.

class GrantService final : public Service {
 public:
  GrantService(Carrier& carrier, const GrantBook& book, GrantEnds& ends)
      : carrier_(carrier), book_(book), ends_(ends) {}

  /// For the holder: of that grant by that peer. `was_used`: by another handle of it. Any thread. The service outlives
  /// its end.
  std::shared_ptr<OneUse> make_use(std::weak_ptr<PeerCore> owner, const wire::GrantUsed& grant, bool was_used = false);

  std::span<const OwnChannel> channels() const override;
  Status on_message(Session& session, std::uint32_t channel, std::span<const std::byte> bytes, Instant now) override;
  void on_control(Session&) override {}
  bool pump(Session& session, std::size_t* work) override;
  void end(Session& session, const Status& status) override;
  bool awaits(const Session&) const override { return false; }
  std::size_t left(const Session& session) const override;
  std::string_view name() const override { return "grants"; }
  Instant next_deadline() const override { return ended_.empty() ? Instant::max() : Instant::min(); }
  /// Not from within the end of a transfer: a session may be about to go then.
  std::size_t expire(Instant now) override;
  void describe(const Visitor& visitor) const override;

 private:
  class Use;
  /// What the owner has not been told, in order. At most kGrantEndsMax: an owner may lie about its own bound.
  struct Untold final : Tenancy {
    std::vector<wire::GrantUsed> ends;
  };
  Untold* known(const Session& session) const;

  Carrier& carrier_;
  const GrantBook& book_;
  GrantEnds& ends_;
  std::vector<std::pair<std::weak_ptr<PeerCore>, wire::GrantUsed>> ended_;  ///< Since the last `expire`.
};

}  // namespace hawser::agent
