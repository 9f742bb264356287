#include "cli/reach.h"

#include <algorithm>

#include "base/format.h"
#include "base/listen_text.h"
#include "base/quantity.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/command.h"

namespace hawser::cli {

void add_reach(CLI::App* command, Reach& reach) {
  command->add_option("--backend", reach.backends, "Only this backend; may be repeated (default: all that work)");
  command->add_option("--directory", reach.directory,
                      "Where agents publish their cards: a folder, or etcd://host:port[,...][/prefix]");
  command
      ->add_option(
          "--security", reach.security,
          "default: who has the agent's card or ticket, or is the same user on this host, may connect; tcp to "
          "other hosts is TLS. encrypt: tcp within the host, too. authenticate: RDMA may leave the host in clear. "
          "none: nothing is encrypted, and everybody who can reach its port may read and write all that it "
          "registers")
      ->check(CLI::IsMember({"default", "none", "authenticate", "encrypt"}))
      ->capture_default_str();
}

namespace {

/// A folder by its path, or as the option `directory` has it.
std::string directory_setting(const std::string& given) {
  const std::size_t colon = given.find(':');
  const bool has_kind = colon != std::string::npos && given.find('/') > colon;
  return has_kind ? given : "file:" + given;
}

}  // namespace

Result<AgentOptions> agent_options(const Reach& reach, const std::string& config_file) {
  ConfigSources::Texts overrides;
  if (!reach.directory.empty()) {
    overrides["directory"] = directory_setting(reach.directory);
  }
  HAWSER_TRY_ASSIGN(LoadedConfig config, configuration(config_file, std::move(overrides)));
  tell_warnings(config);
  AgentOptions options = std::move(config.options);
  if (!reach.name.empty()) options.name = reach.name;
  if (reach.security == "none") options.security = Security::kNone;
  if (reach.security == "authenticate") options.security = Security::kAuthenticate;
  if (reach.security == "encrypt") options.security = Security::kEncrypt;
  if (!reach.backends.empty()) options.backends.clear();
  for (const std::string& name : reach.backends) options.backends.push_back({name, {}});
  if (!reach.listen.empty()) {
    const auto where = base::split_listen(reach.listen);
    if (!where) {
      return Status(Code::kInvalid, base::format("--listen {} is no place to listen at", base::shown(reach.listen)))
          .with_advice("write 10.0.0.5:7000, [::]:7000, eth0:7000-7100 or 10.0.0.0/8,^docker0:7000");
    }
    // An address names tcp, or quic where that is asked for, so it must open. shm stays beside it for peers on this
    // host.
    if (options.backends.empty()) options.backends = {shm(), tcp()};
    for (BackendSpec& spec : options.backends) {
      if (!base::equal_ignoring_case(spec.name, "tcp") && !base::equal_ignoring_case(spec.name, "quic")) continue;
      spec.params["listen"] = where->places;
      if (!where->ports.empty()) spec.params["port"] = where->ports;
    }
    options.mode = OpenMode::kStrict;
  }
  return options;
}

std::string first_address(std::string_view readable) {
  return std::string(readable.substr(0, std::min(readable.find(','), readable.find(' '))));
}

}  // namespace hawser::cli
