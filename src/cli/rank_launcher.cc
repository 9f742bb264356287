#include "cli/rank_launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/host_id.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/rank_guard.h"
#include "tls/gnutls_library.h"

namespace hawser::cli {
namespace {

constexpr std::string_view kOurs = "HAWSER_", kCostModel = "HAWSER_COST_MODEL";

/// HAWSER_* of this process, which travel to other hosts.
RankProcess::Environment own_variables() {
  RankProcess::Environment variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(kOurs) || equals == std::string_view::npos) continue;
    variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

void put(RankProcess::Environment* variables, const std::string& name, const std::string& value) {
  std::erase_if(*variables, [&](const auto& each) { return each.first == name; });
  variables->emplace_back(name, value);
}

}  // namespace

bool is_this_host(std::string_view name, std::string_view own_name) {
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) return true;
  // "node1" and "node1.cluster" are one host when the kernel knows it by either.
  const auto first = [](std::string_view text) { return text.substr(0, text.find('.')); };
  const bool either_is_short = first(name) == name || first(own_name) == own_name;
  return !own_name.empty() && (name == own_name || (either_is_short && first(name) == first(own_name)));
}

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Result<RankLauncher> RankLauncher::open(LaunchOptions options) {
  RankLauncher launcher(std::move(options));
  std::error_code error;
  launcher.folder_here_ = std::filesystem::current_path(error).string();
  if (error) return Status(Code::kNotFound, "hawser run: the folder that it was started in is gone");
  HAWSER_TRY(launcher.place_ranks());
  HAWSER_TRY(launcher.find_meeting_place());
  return launcher;
}

Status RankLauncher::place_ranks() {
  if (options_.hosts.empty()) options_.hosts.push_back({.name = "localhost"});
  HAWSER_TRY_ASSIGN(place_, share_ranks(options_.hosts, options_.ranks));
  const std::string own_name = base::host_name();
  for (const RankHost& host : options_.hosts) remote_.push_back(!is_this_host(host.name, own_name));
  has_remote_ = std::ranges::any_of(place_, [this](std::size_t place) { return bool(remote_[place]); });
  if (!has_remote_) return {};
  if (options_.ssh.empty()) return Status(Code::kInvalid, "--ssh: no command is given that reaches other hosts");
  if (!options_.remote_hawser.empty()) return {};
  std::error_code error;
  options_.remote_hawser = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error)
    return Status(Code::kNotFound, "hawser run: where it lies itself is unknown").with_advice("--remote-hawser");
  return {};
}

Status RankLauncher::find_meeting_place() {
  directory_ = options_.directory;
  if (!directory_.empty() && !options_.token_file.empty()) {
    return Status(Code::kInvalid, "hawser run: a directory and a token are given; a token is for a seed's ranks")
        .with_advice("leave out --directory or --token-file");
  }
  if (!directory_.empty()) return {};
  if (has_remote_ || !options_.token_file.empty()) return open_seed();
  HAWSER_TRY_ASSIGN(OwnFolder folder, OwnFolder::make("hawser-run"));
  directory_ = "file:" + folder.path();
  folder_.emplace(std::move(folder));
  return {};
}

/// It has the security and the identity that the ranks have by the same configuration.
Status RankLauncher::open_seed() {
  HAWSER_TRY_ASSIGN(LoadedConfig config, configuration(options_.config_file));
  AgentOptions seed;
  seed.security = config.options.security;
  seed.identity = config.options.identity;
  seed.log = config.options.log;
  if (!has_remote_) seed.backend_params["tcp"]["listen"] = "127.0.0.1";
  if (has_remote_ && seed.security != Security::kNone) {
    const Result<const tls::Gnutls*> library = tls::gnutls();
    if (!library) {
      return Status(Code::kUnsupported, "hawser run: ranks of other hosts cannot be talked to")
          .with_advice(library.error().advice())
          .because(library.error());
    }
  }
  if (!options_.token_file.empty()) {
    HAWSER_TRY_ASSIGN(identity::TokenText token, identity::TokenText::read(options_.token_file));
    token_.emplace(std::move(token));
  } else if (seed.security != Security::kNone) {
    token_.emplace(identity::TokenText::make());
  }
  if (token_) {
    HAWSER_TRY_ASSIGN(token_share_, TokenShare::make(*token_));
  }
  HAWSER_TRY_ASSIGN(seed_, WorldSeed::open(std::move(seed), token_share_ ? token_share_->path() : std::string()));
  directory_ = "none";
  return {};
}

LocalPlace RankLauncher::local_place_of(std::uint32_t rank) const {
  return {.rank = static_cast<std::uint32_t>(std::count(place_.begin(), place_.begin() + rank, place_[rank])),
          .size = static_cast<std::uint32_t>(std::ranges::count(place_, place_[rank]))};
}

RankProcess::Environment RankLauncher::environment_of(std::uint32_t rank) const {
  RankProcess::Environment variables = is_remote(rank) ? own_variables() : RankProcess::Environment();
  // The file lies on this host; a rank of this host tells the others what is in it.
  const bool is_told = std::ranges::any_of(place_, [this](std::size_t place) { return !remote_[place]; });
  if (is_remote(rank) && is_told) std::erase_if(variables, [](const auto& each) { return each.first == kCostModel; });
  put(&variables, "HAWSER_WORLD_RANK", std::to_string(rank));
  put(&variables, "HAWSER_WORLD_LOCAL_RANK", std::to_string(local_place_of(rank).rank));
  put(&variables, "HAWSER_WORLD_SIZE", std::to_string(options_.ranks));
  put(&variables, "HAWSER_SEED", seed_ ? seed_->address(options_.address) : std::string());
  // A rank of another host finds its guard's (rank_guard.h).
  const bool has_share = token_share_ && !is_remote(rank);
  put(&variables, "HAWSER_TOKEN_FILE", has_share ? token_share_->path() : std::string());
  put(&variables, "HAWSER_DIRECTORY", directory_);
  // All ranks are on this host: no door stands open to others.
  if (!has_remote_ && std::getenv("HAWSER_LISTEN") == nullptr) put(&variables, "HAWSER_LISTEN", "127.0.0.1");
  return variables;
}

Result<RankProcess> RankLauncher::start(std::uint32_t rank, RankProcess::Lines lines) {
  if (is_remote(rank)) return start_far(rank, std::move(lines));
  std::optional<cpu_set_t> share;
  if (options_.binds_to_cores) {
    HAWSER_TRY_ASSIGN(share, share_of(processors(), local_place_of(rank)));
  }
  return RankProcess::start(rank, options_.command, environment_of(rank), std::move(lines), {}, share);
}

Result<RankProcess> RankLauncher::start_far(std::uint32_t rank, RankProcess::Lines lines) const {
  std::vector<std::string> command = options_.ssh;
  command.push_back(options_.hosts[place_[rank]].name);
  command.push_back(shell_word(options_.remote_hawser) + " run-rank");
  const GuardOrder order{.rank = rank,
                         .folder = folder_here_,
                         .grace = options_.grace,
                         .environment = environment_of(rank),
                         .token = token_ ? token_->text() : std::string(),
                         .command = options_.command,
                         .binds = options_.binds_to_cores ? std::optional(local_place_of(rank)) : std::nullopt};
  HAWSER_TRY_ASSIGN(const std::string line, to_line(order));
  HAWSER_TRY_ASSIGN(RankProcess process, RankProcess::start(rank, command, {}, std::move(lines), line));
  process.await_greeting(kGuardGreeting);
  return process;
}

std::string RankLauncher::place_of(std::uint32_t rank) const {
  return is_remote(rank) ? " on " + options_.hosts[place_[rank]].name : std::string();
}

}  // namespace hawser::cli
