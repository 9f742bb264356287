#pragma once

// A file that is written in one piece: whoever reads it finds the old text or the new one, also after a crash.
//
// Thread rule: any thread; two writers of one file must not meet.

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include <hawser/status.h>

namespace hawser::identity {

/// `path` is made with `mode`, whatever the umask and the old file's mode say. Without one it is as the umask says.
Status write_whole_file(const std::string& path, std::string_view text, std::optional<mode_t> mode = {});
/// At most `bytes_max`. Errors: kNotFound, kInvalid: it is larger.
Result<std::string> read_whole_file(const std::string& path, std::size_t bytes_max);

}  // namespace hawser::identity
