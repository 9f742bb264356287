#pragma once

// CostModel: what moving and combining costs. The algorithm of each collective is chosen by it (collective.h).
//
// Thread rule: values and pure functions.

#include <array>
#include <cstdint>
#include <string_view>

#include <hawser/status.h>

namespace hawser::schedule {

/// Defaults: measured between two processes of one host; between hosts assumed, as TCP with TLS over 25 Gbit/s.
struct CostModel {
  double message_ns = 2'000;       ///< From a send to the end of the receive of an empty message.
  double byte_ns = 0.15;           ///< Of each further byte.
  double combined_byte_ns = 0.08;  ///< Of each byte that is combined.
  double read_byte_ns = 0.08;      ///< Of each byte that is read where it lies at another rank.
  double board_ns = 250;           ///< Of each further rank that writes on its board, and is waited for.
  double far_message_ns = 40'000;  ///< As `message_ns`, between hosts.
  double far_byte_ns = 0.35;       ///< As `byte_ns`, between hosts, while nobody else of the host sends.

  /// For messages between hosts, where so many ranks of each host send at once and share its link.
  CostModel between_hosts(std::uint32_t ranks_of_host = 1) const {
    CostModel far = *this;
    far.message_ns = far_message_ns;
    far.byte_ns = far_byte_ns * ranks_of_host;
    return far;
  }
  friend bool operator==(const CostModel&, const CostModel&) = default;
};

struct CostField {
  std::string_view name;  ///< As in files.
  double CostModel::*value;
  double most;  ///< The largest value that is taken; all are above 0.
  bool is_far;  ///< Of messages between hosts.
};

inline constexpr double kCallNsMax = 1e9;  ///< A message, or a board, costs a second at most.
inline constexpr double kByteNsMax = 1e3;  ///< A byte costs so much at most: a megabyte a second.
/// All of them, in the order in which they are written and told.
inline constexpr std::array<CostField, 7> kCostFields = {{
    {"message_ns", &CostModel::message_ns, kCallNsMax, false},
    {"byte_ns", &CostModel::byte_ns, kByteNsMax, false},
    {"combined_byte_ns", &CostModel::combined_byte_ns, kByteNsMax, false},
    {"read_byte_ns", &CostModel::read_byte_ns, kByteNsMax, false},
    {"board_ns", &CostModel::board_ns, kCallNsMax, false},
    {"far_message_ns", &CostModel::far_message_ns, kCallNsMax, true},
    {"far_byte_ns", &CostModel::far_byte_ns, kByteNsMax, true},
}};
static_assert(sizeof(CostModel) == kCostFields.size() * sizeof(double), "each value has its field");

/// kInvalid, naming the field, where a value is not above 0, above the largest, or no number.
Status check_cost(const CostField& field, double value);
/// The same of all values.
Status check_costs(const CostModel& model);

}  // namespace hawser::schedule
