#pragma once

// RankLauncher: where each rank of `hawser run` starts, with which environment, and where the ranks find one another:
// on one host in a folder of its own, on several at a seed in this process, or in the directory that the user gives.
//
// Seed and ranks have a token, the user's or one of this run alone. It travels to other hosts on the standard input of
// ssh, and to the ranks in memory (token_share.h). At the level `none`, where nobody proves anything, there is none.
//
// Ranks of other hosts are started by ssh, or a command like it, with `hawser run-rank` there: see rank_guard.h.
//
// Thread rule: one thread. Lifetime: outlives the ranks, for it holds the folder and the seed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/seed.h>
#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/core_share.h"
#include "cli/host_list.h"
#include "cli/own_folder.h"
#include "cli/rank_process.h"
#include "cli/token_share.h"
#include "identity/world_token.h"

namespace hawser::cli {

struct LaunchOptions {
  std::uint32_t ranks = 0;
  std::vector<std::string> command;
  std::string directory;         ///< Empty: a folder, or a seed.
  std::vector<RankHost> hosts;   ///< Empty: this one.
  std::vector<std::string> ssh;  ///< The command, by words, that takes a host and what to run there.
  std::string address;           ///< This host's, for the others. Empty: its first.
  std::string token_file;        ///< As WorldOptions::token_file. Empty: a token is made where a seed needs one.
  std::string config_file;       ///< Empty: the configuration in force.
  std::string remote_hawser;     ///< The program on other hosts. Empty: where it is here.
  bool binds_to_cores = false;   ///< Each rank runs on its share of its host's cores (core_share.h).
  Duration grace = std::chrono::seconds(5);
};

class RankLauncher {
 public:
  /// Errors: kInvalid (fewer slots than ranks, no command for other hosts, a token beside a directory), kUnsupported
  /// (other hosts need GnuTLS, and it is not here), or those of the token and of the seed.
  static Result<RankLauncher> open(LaunchOptions options);
  /// kInvalid: this host has fewer cores than ranks that are to be bound to them.
  Result<RankProcess> start(std::uint32_t rank, RankProcess::Lines lines);

  bool has_remote() const { return has_remote_; }
  /// A number that ranks of one host have in common.
  std::size_t host_of(std::uint32_t rank) const { return place_[rank]; }
  /// " on node2", or nothing where it is this host.
  std::string place_of(std::uint32_t rank) const;

 private:
  explicit RankLauncher(LaunchOptions options) : options_(std::move(options)) {}
  Status place_ranks();
  Status find_meeting_place();
  Status open_seed();
  bool is_remote(std::uint32_t rank) const { return remote_[place_[rank]]; }
  LocalPlace local_place_of(std::uint32_t rank) const;
  RankProcess::Environment environment_of(std::uint32_t rank) const;
  Result<RankProcess> start_far(std::uint32_t rank, RankProcess::Lines lines) const;

  LaunchOptions options_;
  std::vector<std::size_t> place_;  ///< For each rank its place in options_.hosts.
  std::vector<bool> remote_;        ///< For each host.
  bool has_remote_ = false;
  std::string folder_here_;  ///< In which all ranks work.
  std::string directory_;
  std::optional<OwnFolder> folder_;
  std::optional<identity::TokenText> token_;
  std::optional<TokenShare> token_share_;  ///< Of token_, for ranks of this host.
  std::optional<WorldSeed> seed_;
};

/// True where a name in --hosts is this host: localhost, a loopback address, or the name that the kernel knows it by.
bool is_this_host(std::string_view name, std::string_view own_name);
/// The word as a shell reads it back: ssh gives the far shell one line.
std::string shell_word(std::string_view word);

}  // namespace hawser::cli
