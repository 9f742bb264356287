#pragma once

// MockWires: what lies between the ports of the fabric in memory: whether packets of one queue pair find another, by
// addresses, links, sizes, connections and keys.
//
// Thread rule: one thread.

#include <cstdint>
#include <set>
#include <string>

#include "backend/verbs/devices/gid.h"
#include "backend/verbs/mock/mock_request.h"

namespace hawser::backend::verbs {

class MockWires {
 public:
  enum class Way : std::uint8_t {
    kOpen,
    kLost,     ///< Nobody answers: sent again until the requester gives up.
    kDropped,  ///< A datagram that its receiver does not take.
  };
  /// A queue pair and the device that it is on.
  struct End {
    const MockQp& qp;
    const MockDevice& device;
    bool is_removed = false;
  };

  /// Something between the devices drops packets of more bytes than this, without a word. Devices drop those that are
  /// larger than they can be on their link (MockDevice::mtu) in the same way.
  std::uint32_t packet_max = 4096;
  /// Addresses that lead nowhere: a VLAN or a firewall. As GidBytes.
  std::set<GidBytes> dead_gids;

  /// Packets of and to this port ("mock0", "mock0:2") are lost.
  void set_link(const std::string& port, bool up);
  /// "mock0" is port 1 of it, "mock0:2" port 2.
  static std::string port_name(const std::string& device, std::uint8_t number);

  /// How the request gets from its queue pair to that of the peer; null: there is none of that number.
  Way way_of(const MockRequest& request, const End& from, const End* to) const;

 private:
  bool is_down(const End& end) const;
  bool is_connected(const End& from, const End& to) const;
  bool is_addressed(const End& from, const End& to) const;
  bool is_too_large(const MockRequest& request, const End& from, const End& to) const;
  Way datagram_way(const MockRequest& request, const End& from, const End& to) const;

  std::set<std::string> down_;
};

}  // namespace hawser::backend::verbs
