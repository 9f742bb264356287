#pragma once

// How an agent of the command line is reached and reaches others: the options that `serve` and `ping` share.

#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>
#include <CLI/CLI.hpp>

namespace hawser::cli {

struct Reach {
  std::string name;
  std::string listen;                 ///< Where tcp and quic listen (base/listen_text.h); empty: its default.
  std::string directory;              ///< A folder, or etcd://...; empty: that of the configuration.
  std::string security = "default";   ///< "none" must be asked for.
  std::vector<std::string> backends;  ///< Empty: all that work.
};

/// --backend, --directory and --security.
void add_reach(CLI::App* command, Reach& reach);
/// The configuration in force with these over it. kInvalid for an address that cannot be; the directory's own error.
Result<AgentOptions> agent_options(const Reach& reach, const std::string& config_file);
/// The first of several addresses ("127.0.0.1:5000, [::1]:5000").
std::string first_address(std::string_view readable);

}  // namespace hawser::cli
