#pragma once

// AddressFinder finds the peer that listens at an address: it connects, learns from the greeting who is there, and
// waits for the peer's card.
//
// Thread rule: thread-safe. Not under the lane's lock.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "agent/admission_ticket.h"
#include "agent/lane_access.h"
#include "agent/peer_core.h"

namespace hawser::agent {

class AddressFinder {
 public:
  using Found = Result<std::shared_ptr<PeerCore>>;

  /// The engine, as far as it connects to strangers.
  class Strangers {
   public:
    /// "host:port" with the host's name resolved. May block until `deadline`; without the lane's lock.
    virtual Result<std::string> resolve(std::string_view address, Instant deadline) = 0;
    /// Opens a path to whoever listens there. Gives its number.
    virtual Result<std::uint64_t> open(std::string_view address, std::string_view name, const AdmissionTicket& ticket,
                                       Instant deadline) HAWSER_REQUIRES(in_lane) = 0;
    /// Null: nobody answered yet.
    virtual Found take(std::uint64_t number) HAWSER_REQUIRES(in_lane) = 0;
    /// Nobody asks for it any more.
    virtual void drop(std::uint64_t number) HAWSER_REQUIRES(in_lane) = 0;
    virtual void want_card(const std::shared_ptr<PeerCore>& peer) HAWSER_REQUIRES(in_lane) = 0;
    /// Opens a better path than those that there are. Gives its serial; 0: there is none.
    virtual std::uint64_t open_better_path(const std::shared_ptr<PeerCore>& peer, Instant deadline)
        HAWSER_REQUIRES(in_lane) = 0;
    /// True while the path is on its way: neither agreed upon nor gone.
    virtual bool is_opening(const std::shared_ptr<PeerCore>& peer, std::uint64_t serial) HAWSER_REQUIRES(in_lane) = 0;

   protected:
    ~Strangers() = default;
  };

  AddressFinder(LaneAccess& lane, const Clock& clock, Strangers& strangers)
      : lane_(lane), clock_(clock), strangers_(strangers) {}

  /// `name`: whom the user expects there; empty: whoever answers. `address` may carry an admission ticket.
  Found find(std::string_view name, std::string_view address, Instant deadline) HAWSER_EXCLUDES(in_lane);

 private:
  Found greet(std::uint64_t number, Instant deadline);
  Status wait_for_card(const std::shared_ptr<PeerCore>& peer, Instant deadline);
  /// A peer that was found by one backend's address may be reached better by another: that is opened, too.
  void seek_better_path(const std::shared_ptr<PeerCore>& peer, Instant deadline);

  LaneAccess& lane_;
  const Clock& clock_;
  Strangers& strangers_;
};

}  // namespace hawser::agent
