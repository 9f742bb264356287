#include "cli/token_share.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hawser::cli {

Result<TokenShare> TokenShare::make(const identity::TokenText& token) {
  base::Fd memory(::memfd_create("hawser-token", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return base::errno_status("hawser run: memory for the world's token", errno);
  const std::string& text = token.text();
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fchmod(memory.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::write(memory.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return base::errno_status("hawser run: writing the world's token to memory", errno);
  }
  std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), memory.get());
  return TokenShare(std::move(memory), std::move(path));
}

}  // namespace hawser::cli
