#pragma once

// The largest file that this process may make (RLIMIT_FSIZE, `ulimit -f`). Beyond it a write or a truncation does not
// fail: the kernel sends SIGXFSZ, which ends the process. So sizes that others choose are compared first.
//
// Thread rule: any thread; one system call.

#include <cstdint>
#include <string_view>

#include <hawser/status.h>

namespace hawser::base {

/// Good when a file may be `end` bytes long; else kBusy, naming the limit. `what`: "writing /srv/model", "an arena".
/// The limit of a memory file, too, is this one.
Status check_file_limit(std::string_view what, std::uint64_t end);
/// As above, without a message.
bool is_within_file_limit(std::uint64_t end);

}  // namespace hawser::base
