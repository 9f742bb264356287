#include "base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace hawser::base {

std::string_view read_small_file(const char* path, std::span<char> room) noexcept {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::size_t size = 0;
  while (size < room.size()) {
    const ssize_t got = ::read(file.get(), room.data() + size, room.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  const std::string_view text(room.data(), size);
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

}  // namespace hawser::base
