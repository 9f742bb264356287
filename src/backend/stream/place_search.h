#pragma once

// PlaceSearch: looks for the peer at its places, one hello at a time, until one led to the peer or none is left. It
// keeps what each place came to.
//
// Thread rule: confined to the port's lane. Lifetime: that of its ConnectRace.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/stream/connect_race.h"

namespace hawser::backend::stream {

class PlaceSearch {
 public:
  struct Target {
    std::vector<std::string> places;
    std::string left_out;  ///< For people: places that are not tried.
    bool is_here = false;  ///< See Network::is_here.
    Known known;
  };
  /// `owner`: see ConnectRace.
  PlaceSearch(Network& network, void* owner, Target target, Instant now, Instant deadline);

  /// Moves on, and answers a connected stream for the next hello, if there is one.
  std::unique_ptr<Stream> turn(Instant now);
  Instant hello_deadline() const { return race_.hello_deadline(); }
  Instant next_deadline() const { return race_.next_deadline(); }
  bool is_over() const { return race_.is_over(); }

  enum class Found : std::uint8_t {
    kNobody,   ///< Or somebody else.
    kYounger,  ///< Another incarnation of the peer's name.
    kMisfit,   ///< Somebody who speaks no version of ours.
  };
  /// The stream that was given out did not lead to the peer.
  void reject(const Status& why, Found found, Instant now);

  struct Verdict {
    Status why;
    bool is_refused_elsewhere = false;  ///< On another host each place refused, which may change.
  };
  /// No place led to the peer.
  Verdict verdict(std::string_view peer) const;

  /// Where the stream led that was given out last.
  const std::string& place() const { return race_.place(); }
  /// The others that were left out, failed or lost, for people; empty: there are none.
  std::string others(Instant now) const;

 private:
  ConnectRace race_;
  const bool is_here_;
  const std::string left_out_;
  Status restarted_;
  Status misfit_;
};

}  // namespace hawser::backend::stream
