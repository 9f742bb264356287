#include "bare_root.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

namespace hawser::bare_root {
namespace {

constexpr char kSkipped = 's', kFailed = 'f';

void write_file(const char* path, const std::string& text) { std::ofstream(path) << text; }

/// As root, or as root of a user namespace of its own.
bool leave_mounts() {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const std::string user = std::to_string(::getuid()), group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "0 " + user + " 1");
  write_file("/proc/self/gid_map", "0 " + group + " 1");
  return true;
}

bool bind_in(const std::string& from, const std::string& root) {
  const std::string to = root + from;
  std::filesystem::create_directory(to);
  return ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

/// Empty, or what cannot be done.
std::string enter(const std::string& root, const std::function<void(const std::string&)>& furnish) {
  const bool made = leave_mounts() && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    ::mount("none", root.c_str(), "tmpfs", 0, "size=64m") == 0 && bind_in("/proc", root) &&
                    bind_in("/dev", root);
  if (!made) return std::string("no right to make a root of its own: ") + std::strerror(errno);
  std::filesystem::create_directory(root + "/tmp");
  furnish(root);
  if (::chroot(root.c_str()) != 0 || ::chdir("/") != 0) return std::string("chroot: ") + std::strerror(errno);
  return {};
}

std::string child(const std::string& root, const std::function<void(const std::string&)>& furnish,
                  const std::function<std::string()>& body, const std::function<std::string()>& before) {
  try {
    if (const std::string why = before ? before() : std::string(); !why.empty()) return kSkipped + why;
    if (const std::string why = enter(root, furnish); !why.empty()) return kSkipped + why;
    return kFailed + body();
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
}

std::string read_all(int fd) {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(fd, part, sizeof(part))) > 0;) text.append(part, static_cast<std::size_t>(got));
  return text;
}

}  // namespace

Outcome run(const std::function<void(const std::string&)>& furnish, const std::function<std::string()>& body,
            const std::function<std::string()>& before) {
  std::string root = std::filesystem::temp_directory_path() / "bare_root_XXXXXX";
  int ends[2];
  if (::mkdtemp(root.data()) == nullptr || ::pipe2(ends, O_CLOEXEC) != 0)
    return {.skipped = "no pipe or no folder", .failure = {}};
  const pid_t process = ::fork();
  if (process == 0) {
    const std::string said = child(root, furnish, body, before);
    const bool written = ::write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  const std::string said = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  std::filesystem::remove(root);
  if (said.empty() || status != 0)
    return {.skipped = {}, .failure = "the child ended without a word, status " + std::to_string(status)};
  if (said[0] == kSkipped) return {.skipped = said.substr(1), .failure = {}};
  return {.skipped = {}, .failure = said.substr(1)};
}

}  // namespace hawser::bare_root
