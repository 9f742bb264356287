#pragma once

// A collective operation of one rank, the algorithms that can do it, what each would cost, and its schedule.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/cost_model.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// The most that a rank can write on its board at once.
inline constexpr std::uint64_t kBoardBytesMax = 64 * 1024;
/// The most that all ranks can write there at once. Each may read all of it.
inline constexpr std::uint64_t kBoardsBytesMax = 1 << 20;
/// The most that a rank can write there if there are several hosts. Messages between them take most of the time then.
inline constexpr std::uint64_t kBoardBytesInHostsMax = 4 * 1024;
/// The same of all blocks together.
inline constexpr std::uint64_t kBlocksInHostsMax = kBoardBytesMax;
/// All that a rank has for the others in an all_to_all by ports (host_phases.h), at most. Larger blocks go directly.
inline constexpr std::uint64_t kPortBytesMax = 64 * 1024;
inline constexpr std::uint32_t kBoardRanksMax = 64;  ///< Each reads the board of each.

enum class Operation : std::uint8_t {
  kBarrier,
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
  kScan,
  kExclusiveScan,
};
std::string_view to_string(Operation operation);

/// Buffers and counts, in elements. A rank's `input` and `output` hold:
///
///   broadcast        -                      count, at the root the source
///   reduce           count                  count, at the root
///   all_reduce       count                  count; may be the input
///   all_gather       counts[rank]           sum of counts; the input may be its own block there
///   reduce_scatter   sum of counts          counts[rank]
///   gather           counts[rank]           sum of counts, at the root
///   scatter          sum of counts, at root counts[rank]
///   all_to_all       sum of counts          sum of in_counts
///   scans            count                  count; may be the input
struct Call {
  Operation operation = Operation::kBarrier;
  std::uint32_t rank = 0, size = 1, root = 0;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> counts, in_counts;
  std::uint64_t element_bytes = 1;
  /// By rank: the number of its host. Empty: nobody knows, and all count as if they were near.
  std::vector<std::uint32_t> hosts = {};
  /// all_to_all: all ranks have as many elements for each other one, and so all know all counts.
  bool is_even = false;
  bool commutes = true;              ///< The order of ranks does not matter for the result.
  bool reproducible = false;         ///< The same bits from any algorithm, place and number of elements.
  bool has_input_in_output = false;  ///< The two are one, as the table above allows.
  /// Ranks that share a host may map each other's buffers. Whether these can be mapped they tell each other first.
  bool may_be_mapped = false;
  /// Ranks that share a host may write on boards: see runtime/board.h.
  bool may_use_boards = false;
  /// A rank puts at most so many bytes on its board at once. All ranks have the same value, at most kBoardBytesMax.
  std::uint64_t piece_bytes = kBoardBytesMax;
};

enum class Algorithm : std::uint8_t {
  kDissemination,
  kTree,           ///< Binomial.
  kScatterGather,  ///< Broadcast: a tree scatters, a circulant graph gathers.
  kDoubling,
  kCirculant,  ///< Reduce-scatter and all-gather on circulant graphs, or one of them.
  kFixedTree,  ///< Each element is combined at one rank, in one tree over ranks.
  kDirect,
  kTwoLevels,  ///< Within hosts and between them: see two_levels.h.
  kMapped,     ///< Ranks read each other's buffers: see mapped.h.
  kBoards,     ///< Each writes its input on a board that all others read. It has no schedule.
  kPat,        ///< Reduce-scatter or all-gather by trees over hosts and ranks: see pat.h.
  /// As kTwoLevels, and ranks of a host read each other's buffers.
  kMappedInHosts,
  /// Of two levels by leaders. Ranks of a host write on boards: see host_phases.h. Its schedule is for hosts whose
  /// boards are not open.
  kBoardsInHosts,
  kStaged,  ///< Piece by piece over boards: see staging.h. It has no schedule.
  /// As kBoardsInHosts, and ranks of a host go piece by piece. An all_reduce may have lanes.
  kStagedInHosts,
};
inline constexpr std::size_t kAlgorithms = 15;
std::string_view to_string(Algorithm algorithm);

struct Choice {
  Algorithm algorithm = Algorithm::kDirect;
  double cost_ns = 0;
};

/// All algorithms that give the right result, the cheapest first. The same on all ranks: it does not look at the rank.
std::vector<Choice> choices(const Call& call, const CostModel& model);
/// The first of the choices.
Algorithm cheapest(const Call& call, const CostModel& model);
/// Whether the ranks of one host can do the call on boards. All ranks get the same answer.
bool fits_boards(const Call& call);
/// Of ranks of one host that do the call on boards: whether they do it in pieces (staging.h), and not at once.
bool goes_in_pieces(const Call& call, const CostModel& model);
/// Bytes of its input that a rank writes on its board.
std::uint64_t bytes_on_board(const Call& call, std::uint32_t rank);
/// Elements of its buffers that this rank reads and writes, by the table of Call: of a broadcast's root that writes.
std::uint64_t input_count(const Call& call);
std::uint64_t output_count(const Call& call);
/// It depends on which ranks share a host.
bool is_by_hosts(Algorithm algorithm);
/// Ranks read or write what others map.
bool is_by_memory(Algorithm algorithm);
/// Of these: what they write lies on boards.
bool is_on_boards(Algorithm algorithm);
/// Of these: they have phases, see host_phases.h.
bool has_phases(Algorithm algorithm);
/// Those that go by messages alone.
std::vector<Choice> unmapped_choices(const Call& call, const CostModel& model);
/// By messages alone: for ranks of a host that found that their buffers or boards are not mapped. Other hosts may go by
/// that algorithm at the same time.
struct ByMessages {
  Algorithm algorithm = Algorithm::kDirect;
  std::optional<Algorithm> on_boards = {};  ///< On one host: that is cheaper, on boards.
  Schedule schedule;
};
ByMessages by_messages(const Call& call, Algorithm algorithm, const CostModel& model);
/// The algorithm of that name, as `to_string` gives it.
std::optional<Algorithm> algorithm_named(std::string_view name);
/// What this rank does. The algorithm is one of the choices. On each of two levels it goes by what the model says.
Schedule make_schedule(const Call& call, Algorithm algorithm, const CostModel& model = {},
                       Meetings meetings = Meetings::kByMessages);
/// The most meetings of a schedule that reads what others map.
inline constexpr std::uint64_t kMeetingsMax = 3;

}  // namespace hawser::schedule
