#include "cli/files/chunk_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "cli/files/protocol.h"

namespace hawser::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// Of offset, size and memory of direct writes. Devices with larger blocks answer EINVAL, and the cache takes all.
constexpr std::size_t kDirectAlignment = 4096;
constexpr std::size_t kDirectMin = std::size_t{1} << 20;
constexpr std::size_t kSummedAtOnce = std::size_t{256} << 10;  ///< Within the second cache.

Status failed(std::string_view what, std::string_view name, int error) {
  const Status status = base::errno_status(fmt::format("{} '{}'", what, name), error);
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

/// How much of the front of `from` went past the page cache; 0 where that cannot be.
std::size_t write_direct(int fd, std::uint64_t offset, std::span<const std::byte> from) {
  const std::size_t whole = from.size() / kDirectAlignment * kDirectAlignment;
  const bool is_aligned = (offset | reinterpret_cast<std::uintptr_t>(from.data())) % kDirectAlignment == 0;
  if (!is_aligned || whole < kDirectMin) return 0;
  // Opened again, as the flag would belong to all who share the descriptor.
  const base::Fd direct(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
  std::size_t done = 0;
  while (direct.valid() && done < whole) {
    const ssize_t put = ::pwrite(direct.get(), from.data() + done, whole - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0 || static_cast<std::size_t>(put) % kDirectAlignment != 0) break;  // The cache, or its error, is next.
    done += static_cast<std::size_t>(put);
  }
  return done;
}

}  // namespace

Status write_chunk(int fd, std::string_view name, std::uint64_t offset, std::span<const std::byte> from) {
  for (std::size_t done = write_direct(fd, offset, from); done < from.size();) {
    const ssize_t put = ::pwrite(fd, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return failed("writing", name, put < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<FileFacts> facts_of(int fd, std::string_view name) {
  struct stat is {};
  if (::fstat(fd, &is) != 0) return failed("looking at", name, errno);
  return FileFacts{.is_file = S_ISREG(is.st_mode),
                   .is_folder = S_ISDIR(is.st_mode),
                   .size = static_cast<std::uint64_t>(is.st_size),
                   .mode = static_cast<std::uint32_t>(is.st_mode & 0777),
                   .mtime_ns = is.st_mtim.tv_sec * kSecond + is.st_mtim.tv_nsec};
}

Status seal_file(int fd, std::string_view name, const FileFacts& facts) {
  if (::ftruncate(fd, static_cast<off_t>(facts.size)) != 0) return failed("cutting", name, errno);
  if (::fchmod(fd, facts.mode & 0777) != 0) return failed("setting the mode of", name, errno);
  const timespec time{.tv_sec = facts.mtime_ns / kSecond, .tv_nsec = facts.mtime_ns % kSecond};
  const std::array<timespec, 2> times{time, time};
  if (::futimens(fd, times.data()) != 0) return failed("setting the time of", name, errno);
  return {};
}

}  // namespace hawser::cli
