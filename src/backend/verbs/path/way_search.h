#pragma once

// WaySearch: which addresses and which packet size the next attempt to connect a queue pair is made with, by what
// became of those before.
//
// A port has several GIDs, and the best by its looks may lead nowhere: another subnet, a firewall, a VLAN. Each attempt
// that both ends knew of and that was not proven counts against the pair of addresses that it had, and the next one
// takes another: the opener goes through its own, the other end takes its next one when the opener has been through
// all. What was proven is kept. Packets of full size may get lost where small ones come through (a switch with a
// smaller MTU): when one got lost before any came through, the next attempt is made with packets half as large.
//
// Thread rule: one thread at a time. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::backend::verbs {

class WaySearch {
 public:
  static constexpr std::uint32_t kWaysMax = 8;  ///< Attempts of a path that never came up.
  static constexpr std::uint8_t kMtuLeast = 1;  ///< Code of 256 bytes.

  /// A new attempt: what is not known of the last one speaks against it.
  void begin();
  /// Both ends know of the attempt, which is from one address to the other.
  void on_met(std::string_view from, std::string_view to);
  /// It carries.
  void on_proved() { is_proved_ = true; }
  /// Why it does not.
  void on_failed(std::string_view why);
  /// It carried, and broke. `mtu`: the code of its packets' size; whether one of full size got lost, and whether any
  /// came through. True: the next attempt has smaller ones.
  bool on_broken(std::uint8_t mtu, bool lost_full, bool carried_full);
  /// The port has other addresses, or another MTU: nothing of the past counts.
  void forget();

  /// Attempts that were in vain: the opener's address is that many places further on.
  std::uint32_t in_vain() const { return in_vain_; }
  /// The same for the end that answers one who has `peers` addresses.
  std::uint32_t in_vain_for_all(std::uint32_t peers) const { return in_vain_ / (peers == 0 ? 1 : peers); }
  /// Whether there are addresses left that were not tried, of that many pairs of them.
  bool has_more(std::uint32_t pairs) const;
  /// Code of the largest packets; 0: no bound.
  std::uint8_t mtu_max() const { return mtu_max_; }
  /// For an error: what was tried, and what became of it. Empty: nothing worth telling.
  std::string tried() const;

 private:
  bool is_met_ = false, is_proved_ = false;
  std::uint32_t in_vain_ = 0;
  std::uint8_t mtu_max_ = 0;
  std::vector<std::string> tried_;  ///< At most kWaysMax.
};

}  // namespace hawser::backend::verbs
