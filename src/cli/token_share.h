#pragma once

// TokenShare: a world's token in memory, which other processes of this user on this host read as a file of mode 0600 by
// its path in /proc. So the token stands in no file system, in no environment and on no command line, and it is gone
// with this process.
//
// Thread rule: one thread. Lifetime: the path leads to the token while the object lives.

#include <string>

#include <hawser/status.h>

#include "base/fd.h"
#include "identity/world_token.h"

namespace hawser::cli {

class TokenShare {
 public:
  static Result<TokenShare> make(const identity::TokenText& token);

  /// For WorldOptions::token_file and HAWSER_TOKEN_FILE: "/proc/4711/fd/5".
  const std::string& path() const { return path_; }

 private:
  TokenShare(base::Fd memory, std::string path) : memory_(std::move(memory)), path_(std::move(path)) {}

  base::Fd memory_;
  std::string path_;
};

}  // namespace hawser::cli
