#pragma once

// Files as regions: a file, given by descriptor or by path, whose offsets are addresses. A plan between an agent's
// memory and its own file region (Agent::self()) or a peer's reads or writes it; docs/files.md tells how.
//
// Thread rule: values and free functions; any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/export.h>
#include <hawser/memory.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN

/// True: bytes go past the page cache, where offset, size and memory are aligned as the file system asks.
enum class DirectIo : std::uint8_t {
  kAuto,     ///< A path: where the file system can. A descriptor: where it was opened with O_DIRECT.
  kOff,      ///< All through the page cache.
  kRequire,  ///< add_file fails where the file system cannot. Unaligned edges still go through the page cache.
};

struct FileOptions {
  std::string name = {};   ///< By which peers look it up; unique in its agent, or empty. At most 255 bytes.
  int descriptor = -1;     ///< An open file, duplicated by add_file; or
  std::string path = {};   ///< a path, opened by add_file. Exactly one of both.
  bool create = false;     ///< For a path: make the file if there is none (mode 0666 less the umask).
  std::uint64_t size = 0;  ///< Bytes that may be touched; 0: as far as a file can reach, also beyond its end.
  Rights rights = Rights::kReadWrite;  ///< A path is opened for these; a descriptor must allow them.
  DirectIo direct = DirectIo::kAuto;
  bool listed = true;  ///< See RegionOptions.
};

/// The facts about a path or a descriptor.
struct FileInfo {
  bool exists = false;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;     ///< As in stat: kind and permissions.
  std::int64_t mtime_ns = 0;  ///< Since 1970.
};

/// Blocks as stat does. A file that is not there is an answer (`exists` false), no error.
HAWSER_API Result<FileInfo> query_file(std::string_view path);
HAWSER_API Result<FileInfo> query_file(int descriptor);

HAWSER_NAMESPACE_END
