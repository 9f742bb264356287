#include "cli/files/chunk_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/file_kind.h"
#include "base/file_limit.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/files/protocol.h"
#include "fileio/file.h"

namespace hawser::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// Direct and buffered writes never share a page: the cache would write an old one over what went past it.
constexpr std::uint64_t kChunkPage = 4096;
constexpr std::size_t kDirectMin = std::size_t{1} << 20;
constexpr std::size_t kSummedAtOnce = std::size_t{256} << 10;  ///< Within the second cache.

Status failed(std::string_view what, std::string_view name, int error) {
  const Status status = base::errno_status(fmt::format("{} '{}'", what, base::shown(name)), error);
  return error == ENOSPC || error == EDQUOT ? status.with_advice("free space there, then run the command again")
                                            : status;
}

}  // namespace

Result<ReadChunk> read_chunk(int fd, std::string_view name, std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  Summer summer;
  while (done < into.size()) {
    const std::span<std::byte> part = into.subspan(done, std::min(kSummedAtOnce, into.size() - done));
    const ssize_t got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("reading", name, errno);
    if (got == 0) break;
    summer.add(part.first(static_cast<std::size_t>(got)));
    done += static_cast<std::size_t>(got);
  }
  return ReadChunk{.bytes = done, .sum = summer.text()};
}

namespace {

/// The file past the page cache; none where its file system has no such way. It is opened again, as the flag would
/// belong to all who share the descriptor.
base::Fd open_direct(int fd, fileio::Alignment* alignment) {
  base::Fd direct(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
  if (!direct) return direct;
  *alignment = fileio::find_alignment(direct.get());
  if (alignment->offset == 0) direct.reset();
  return direct;
}

/// The part of a chunk that goes past the page cache: [begin, end).
struct DirectPart {
  std::size_t begin = 0, end = 0;
};

DirectPart direct_part(const fileio::Alignment& alignment, std::uint64_t offset, std::span<const std::byte> from) {
  const std::uint64_t align = std::max<std::uint64_t>(alignment.offset, kChunkPage);
  const std::uint64_t begin = (offset + align - 1) / align * align, end = (offset + from.size()) / align * align;
  if (end < begin + kDirectMin) return {};
  const DirectPart part{.begin = begin - offset, .end = end - offset};
  const auto memory = reinterpret_cast<std::uintptr_t>(from.data()) + part.begin;
  return memory % std::max<std::uint32_t>(alignment.memory, 1) == 0 ? part : DirectPart();
}

/// As much of the part as the file system takes; what it leaves is for the cache, which tells its errors. Bytes.
std::size_t write_direct(int direct, std::uint64_t offset, std::span<const std::byte> from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const ssize_t put = ::pwrite(direct, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
    if (static_cast<std::uint64_t>(put) % kChunkPage != 0) break;  // The rest is not aligned any more.
  }
  return done;
}

Status write_buffered(int fd, std::string_view name, std::uint64_t offset, std::span<const std::byte> from) {
  for (std::size_t done = 0; done < from.size();) {
    const ssize_t put = ::pwrite(fd, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return failed("writing", name, put < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

}  // namespace

Result<WrittenChunk> write_chunk(int fd, std::string_view name, std::uint64_t offset, std::span<const std::byte> from) {
  HAWSER_TRY(base::check_file_limit(fmt::format("writing {}", base::shown(name)), offset + from.size()));
  fileio::Alignment alignment;
  base::Fd direct;
  if (from.size() >= kDirectMin) direct = open_direct(fd, &alignment);
  const DirectPart part = direct ? direct_part(alignment, offset, from) : DirectPart();
  HAWSER_TRY(write_buffered(fd, name, offset, from.first(part.begin)));
  const std::size_t past =
      direct ? write_direct(direct.get(), offset + part.begin, from.subspan(part.begin, part.end - part.begin)) : 0;
  const std::size_t done = part.begin + past;
  HAWSER_TRY(write_buffered(fd, name, offset + done, from.subspan(done)));
  return WrittenChunk{.direct = past};
}

namespace {

FileFacts facts_from(const struct stat& is) {
  return FileFacts{.is_file = S_ISREG(is.st_mode),
                   .is_folder = S_ISDIR(is.st_mode),
                   .kind = base::file_kind(is.st_mode),
                   .size = static_cast<std::uint64_t>(is.st_size),
                   .mode = static_cast<std::uint32_t>(is.st_mode & 0777),
                   .mtime_ns = is.st_mtim.tv_sec * kSecond + is.st_mtim.tv_nsec};
}

}  // namespace

Result<FileFacts> facts_of(int fd, std::string_view name) {
  struct stat is {};
  if (::fstat(fd, &is) != 0) return failed("looking at", name, errno);
  return facts_from(is);
}

Result<FileFacts> facts_at(const std::string& path) {
  struct stat is {};
  if (::stat(path.c_str(), &is) != 0) return failed("looking at", path, errno);
  return facts_from(is);
}

Status not_copied(std::string_view path, std::string_view kind) {
  return Status(Code::kInvalid,
                fmt::format("'{}' is {}; only regular files are copied", base::shown(path), base::shown(kind)))
      .with_advice(kind == base::file_kind(S_IFDIR) ? "copy folders with -r" : "");
}

Status seal_file(int fd, std::string_view name, const FileFacts& facts) {
  HAWSER_TRY(base::check_file_limit(fmt::format("cutting {}", base::shown(name)), facts.size));
  if (::ftruncate(fd, static_cast<off_t>(facts.size)) != 0) return failed("cutting", name, errno);
  if (::fchmod(fd, facts.mode & 0777) != 0) return failed("setting the mode of", name, errno);
  const timespec time{.tv_sec = facts.mtime_ns / kSecond, .tv_nsec = facts.mtime_ns % kSecond};
  const std::array<timespec, 2> times{time, time};
  if (::futimens(fd, times.data()) != 0) return failed("setting the time of", name, errno);
  return {};
}

}  // namespace hawser::cli
