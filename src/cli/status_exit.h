#pragma once

// Exit codes of the command line. They are part of its contract: docs/cli.md lists them, scripts rely on them.
//
// 0 is good, 2 a mistake in the call's own words (an unknown option, a value that does not parse), 10 + Code a Status.

#include <string>

#include <hawser/status.h>

namespace hawser::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitStatusBase = 10;

constexpr int exit_code(Code code) { return code == Code::kOk ? kExitOk : kExitStatusBase + static_cast<int>(code); }
inline int exit_code(const Status& status) { return exit_code(status.code()); }

/// The table of exit codes for the end of --help.
std::string exit_code_help();

}  // namespace hawser::cli
