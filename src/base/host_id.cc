#include "base/host_id.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/fd.h"

namespace hawser::base {
namespace {

std::uint64_t mix(std::uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

Result<std::uint64_t> this_host() {
  std::array<char, 256> text;
  std::uint64_t hash = 0xcbf29ce484222325U;
  const Fd boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!boot && (errno == EMFILE || errno == ENFILE)) {  // Without it the host would look like another one.
    return errno_status("reading /proc/sys/kernel/random/boot_id", errno);
  }
  ssize_t size = boot ? ::read(boot.get(), text.data(), text.size()) : -1;
  if (size > 0) hash = mix(hash, {text.data(), static_cast<std::size_t>(size)});
  size = ::readlink("/proc/self/ns/net", text.data(), text.size());
  if (size > 0) hash = mix(hash, {text.data(), static_cast<std::size_t>(size)});
  return hash == 0 ? 1 : hash;
}

}  // namespace hawser::base
