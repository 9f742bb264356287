#pragma once

// The far end of `hawser run --hosts`. It is started on another host (by ssh), reads from its standard input which
// program to start as which rank, and ends the program when the input ends, for then `hawser run` or the connection is
// gone: by SIGTERM, after the time of grace by SIGKILL.
//
// Nothing of it stands on a command line, where others of that host could read it: the order may hold a password. The
// token of a world does not stand in the program's environment either: the guard keeps it in memory (token_share.h).
//
// Thread rule: one thread.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/core_share.h"
#include "cli/rank_process.h"

namespace hawser::cli {

/// The guard's first line of output: it is there, and has read its order.
inline constexpr std::string_view kGuardGreeting = "hawser run-rank: here";

struct GuardOrder {
  std::uint32_t rank = 0;
  std::string folder;  ///< To work in.
  Duration grace = {};
  RankProcess::Environment environment;
  std::string token;  ///< The world's, which the program finds by HAWSER_TOKEN_FILE. Empty: none.
  std::vector<std::string> command;
  std::optional<LocalPlace> binds;  ///< It runs on its share of the host's cores (core_share.h).
};

/// One line of JSON with its end. kInvalid: a word of it is not UTF-8.
Result<std::string> to_line(const GuardOrder& order);
/// kInvalid: it is no such line.
Result<GuardOrder> parse_order(const std::string& line);

/// Reads an order from standard input and does it. The program's exit code, or 128 and the signal that ended it.
int guard_rank();

}  // namespace hawser::cli
