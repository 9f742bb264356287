#include "base/home.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/fd.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::base {
namespace {

constexpr int kHomeNamesMax = 32768;  ///< Names read in search of the last resort that an earlier agent made.
/// "/", an incarnation in hexadecimal, ".sock" and the zero behind a path.
constexpr std::size_t kSocketNameBytes = 1 + 32 + 5 + 1;

Status bad_folder(const std::string& folder, std::string_view why) {
  return Status(Code::kDenied, base::format("'{}' cannot hold agents' sockets and pages: {}", base::shown(folder), why))
      .with_advice("remove it, or choose another folder: the shm parameter socket_dir, the option status.folder");
}

/// As prepare_folder, but makes nothing.
Status check_folder(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return base::errno_status(base::format("looking at '{}'", folder), errno);
  if (!S_ISDIR(status.st_mode)) return bad_folder(folder, "it is no folder");
  if (status.st_uid != ::geteuid()) return bad_folder(folder, base::format("it belongs to user {}", status.st_uid));
  if ((status.st_mode & 077) != 0) return bad_folder(folder, "others may enter it (mode 0700 is needed)");
  return {};
}

std::string stem_of(const HomeSearch& search) { return base::format("hawser-{}-", search.user); }

/// Those that agents of this user made.
std::vector<std::string> last_resorts(const HomeSearch& search) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(search.common.c_str()), ::closedir);
  if (all == nullptr) return found;
  const std::string stem = stem_of(search);
  for (int i = 0; i < kHomeNamesMax; ++i) {
    const dirent* entry = ::readdir(all.get());
    if (entry == nullptr) break;
    if (!std::string_view(entry->d_name).starts_with(stem)) continue;
    std::string folder = search.common + "/" + entry->d_name;
    if (check_folder(folder).ok()) found.push_back(std::move(folder));
  }
  return found;
}

}  // namespace

Status prepare_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::errno_status(base::format("making '{}'", folder), errno);
  }
  return check_folder(folder);
}

HomeSearch usual_homes(const std::string& runtime_dir) {
  const std::uint32_t user = ::geteuid();
  HomeSearch search{.wanted = {}, .common = "/tmp", .user = user};
  if (runtime_dir.starts_with('/')) search.wanted.push_back(runtime_dir + "/hawser");
  search.wanted.push_back(base::format("/run/user/{}/hawser", user));
  search.wanted.push_back(base::format("/tmp/hawser-{}", user));
  return search;
}

Result<Home> choose_home(const HomeSearch& search) {
  Status why;
  for (const std::string& folder : search.wanted) {
    if (folder.size() + kSocketNameBytes > sizeof(sockaddr_un::sun_path)) {
      why = bad_folder(folder, "its path is too long for a unix socket");
      continue;
    }
    Status status = prepare_folder(folder);
    if (status.ok()) return Home{.folder = folder, .warning = {}};
    why = std::move(status);
  }
  const std::vector<std::string> made = last_resorts(search);
  Home home{.folder = made.empty() ? std::string() : made.front(), .warning = {}};
  if (home.folder.empty()) {
    home.folder = search.common + "/" + stem_of(search) + "XXXXXX";
    if (::mkdtemp(home.folder.data()) == nullptr) {
      return base::errno_status(Code::kDenied, base::format("making '{}'", home.folder), errno).because(why);
    }
  }
  home.warning = base::format("agents' sockets and pages are in {}, because {}", home.folder, why.message());
  return home;
}

std::vector<std::string> existing_homes(const HomeSearch& search) {
  std::vector<std::string> found;
  for (const std::string& folder : search.wanted) {
    if (check_folder(folder).ok()) found.push_back(folder);
  }
  for (std::string& folder : last_resorts(search)) found.push_back(std::move(folder));
  return found;
}

}  // namespace hawser::base
