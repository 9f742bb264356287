#pragma once

// Descriptors of files, as NIXL's plugin POSIX takes them: by an open descriptor (`dev`), or by a path in `meta`,
// "rw,create,direct,sync:/path". Addresses are offsets, and a length of 0 reaches as far as a file can.
//
// Thread rule: pure functions, but for looking at files, which blocks as stat does.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/compat/agent.h>
#include <hawser/file.h>

namespace hawser::fileio {
class File;
}

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// The path in `meta`, with what stands before it or without; `meta` itself where nothing does.
std::string_view path_in(std::string_view meta);
/// Whether `meta` names the file to open, instead of the descriptor in `dev`.
bool is_path_mode(std::string_view meta);

/// Whether what is written to it ends on its device: the word "sync".
bool is_synced(std::string_view meta);

/// kInvalidParam for a descriptor or a range that cannot be.
Result<FileOptions> file_options(std::string_view call, const RegDesc& desc);
/// With its length as it is registered.
Desc file_range(const Desc& desc);

/// Which file something is, whatever descriptor or path leads there. As good as the file is open.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};
FileId id_of(const fileio::File& file);
/// Which one a descriptor would register; none where there is no such file (yet).
std::optional<FileId> named_file(const RegDesc& desc);

/// size, mode, mtime (seconds) as NIXL tells them; nothing where there is no such file.
Result<std::optional<Params>> query_file_desc(const RegDesc& desc);

}  // namespace compat
HAWSER_NAMESPACE_END
