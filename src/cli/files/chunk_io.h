#pragma once

// Whole chunks of files by blocking calls, for the threads that serve and copy.
//
// Thread rule: any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::cli {

struct ReadChunk {
  std::size_t bytes = 0;
  std::string sum;  ///< As sum_of gives it.
};
/// Fills the front of `into`; fewer bytes only at the end of the file. Sums part by part, while they are in the cache.
Result<ReadChunk> read_chunk(int fd, std::string_view name, std::uint64_t offset, std::span<std::byte> into);
struct WrittenChunk {
  std::uint64_t direct = 0;  ///< Bytes that went past the page cache.
};
/// Past the page cache where size, memory and file system allow, but for the edges: a copy of weights would push out of
/// it what the host works with, and memory for its pages may be slower to get than the device. All through the cache
/// where the file system has no other way.
Result<WrittenChunk> write_chunk(int fd, std::string_view name, std::uint64_t offset, std::span<const std::byte> from);

struct FileFacts {
  bool is_file = false, is_folder = false;
  std::string_view kind = "a regular file";  ///< As base::file_kind says it.
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::int64_t mtime_ns = 0;
};
Result<FileFacts> facts_of(int fd, std::string_view name);
/// The same without opening it, which the writer of a FIFO would notice. Links are followed.
Result<FileFacts> facts_at(const std::string& path);
/// Why what is no regular file is not copied.
Status not_copied(std::string_view path, std::string_view kind);
/// Size, permissions and time of a file that is complete.
Status seal_file(int fd, std::string_view name, const FileFacts& facts);

}  // namespace hawser::cli
