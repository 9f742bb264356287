#pragma once

// Home: the folder that holds what agents of this user show to one another on this host: shm's sockets and their
// status pages. It must belong to this user and be closed to all others, or they could put their own files there.
//
// In /tmp anybody can make a folder of the usual name before its owner does. Then another one is made there, with a
// name that nobody can foresee, and kept for all agents of the user: cards tell each socket's whole path, so peers need
// not guess it.
//
// Thread rule: pure functions over the file system.

#include <cstdint>
#include <string>
#include <vector>

#include <hawser/status.h>

namespace hawser::base {

/// Makes the folder if need be. kDenied: it cannot be trusted.
Status prepare_folder(const std::string& folder);

struct HomeSearch {
  std::vector<std::string> wanted;  ///< In order; the first that will do is taken.
  std::string common;               ///< Where the last resort is made: a folder that everybody may write.
  std::uint32_t user = 0;
};
/// `runtime_dir`/hawser, /run/user/<uid>/hawser, /tmp/hawser-<uid>; else a folder of its own in /tmp.
HomeSearch usual_homes(const std::string& runtime_dir);

struct Home {
  std::string folder;
  std::string warning;  ///< Empty, or why the last resort was needed.
};
Result<Home> choose_home(const HomeSearch& search);
/// Those that are there and can be trusted. Makes nothing.
std::vector<std::string> existing_homes(const HomeSearch& search);

}  // namespace hawser::base
