#include "cli/bench/board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/try.h"

namespace hawser::cli::bench {

Result<Board> Board::map(base::Fd fd, std::uint64_t arena_bytes) {
  const std::uint64_t size = kArenaAt + arena_bytes;
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return base::errno_status("mapping the bench's board", errno);
  madvise(base, size, MADV_HUGEPAGE);  // Only a wish: `allocate` has the same.
  return Board(std::move(fd), static_cast<std::byte*>(base), arena_bytes);
}

Result<Board> Board::create(std::uint64_t arena_bytes) {
  base::Fd fd(memfd_create("hawser-bench", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(kArenaAt + arena_bytes)) != 0) {
    return base::errno_status("a memory file for the bench's board", errno);
  }
  return map(std::move(fd), arena_bytes);
}

Result<Board> Board::attach(pid_t owner, int fd, std::uint64_t arena_bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", owner, fd);
  base::Fd own(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!own) return base::errno_status(fmt::format("opening the bench's board {}", path), errno);
  return map(std::move(own), arena_bytes);
}

Board::~Board() {
  if (base_ != nullptr) munmap(base_, kArenaAt + arena_bytes_);
}

void Board::touch() const {
  constexpr std::size_t kPage = 4096;
  const auto bytes = arena();
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    std::atomic_ref<std::byte>(bytes[at]).store(std::byte{1}, std::memory_order_relaxed);
  }
}

}  // namespace hawser::cli::bench
