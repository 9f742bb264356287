#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <initializer_list>
#include <utility>

#include <hawser/config.h>

#include "base/test_folder.h"
#include "config/options.h"
#include "config/settings.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

class ConfigTest : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path = folder_ + "/hawser.toml";
    std::ofstream(path) << text;
    return path;
  }
  Result<LoadedConfig> load(const std::string& toml, ConfigSources::Texts environment = {},
                            ConfigSources::Texts overrides = {}) {
    ConfigSources sources{.file = toml.empty() ? "" : write(toml),
                          .environment = std::move(environment),
                          .overrides = std::move(overrides)};
    return load_config(sources);
  }
  std::string message(const std::string& toml, ConfigSources::Texts environment = {}) {
    const Status status = load(toml, std::move(environment)).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    std::string text(status.message());
    for (std::size_t at; (at = text.find(folder_ + "/")) != std::string::npos;) text.erase(at, folder_.size() + 1);
    return text;
  }
  static const ConfigValue& value(const LoadedConfig& config, std::string_view name) {
    for (const ConfigValue& value : config.values) {
      if (value.name == name) return value;
    }
    ADD_FAILURE() << "no value " << name;
    return config.values.front();
  }

  const base::TestFolder own_{"hawser-config"};
  const std::string& folder_ = own_.path();
};

TEST_F(ConfigTest, ListenIsForTcpUnlessItsOwnParametersSayOtherwise) {
  const auto tcp = [&](ConfigSources::Texts environment) {
    return load("", std::move(environment)).value().options.backend_params["tcp"];
  };
  EXPECT_EQ(tcp({{"HAWSER_LISTEN", "10.0.0.1"}}), (Params{{"listen", "10.0.0.1"}}));
  EXPECT_EQ(tcp({{"HAWSER_LISTEN", "10.0.0.1:7000"}}), (Params{{"listen", "10.0.0.1"}, {"port", "7000"}}));
  EXPECT_EQ(tcp({{"HAWSER_LISTEN", "[::]:7000-7100"}}), (Params{{"listen", "::"}, {"port", "7000-7100"}}));
  EXPECT_EQ(tcp({{"HAWSER_LISTEN", "fe80::1"}}), (Params{{"listen", "fe80::1"}}));
  EXPECT_EQ(tcp({{"HAWSER_LISTEN", "10.0.0.1:7000"}, {"HAWSER_BACKEND_TCP_PORT", "9"}}),
            (Params{{"listen", "10.0.0.1"}, {"port", "9"}}));
  EXPECT_EQ(tcp({{"HAWSER_LISTEN", "eth0,10.0.0.0/8,^docker0:7000"}}),
            (Params{{"listen", "eth0,10.0.0.0/8,^docker0"}, {"port", "7000"}}));
  for (const char* const wrong : {"10.0.0.1:", ":7000", "[::1", "[::1]7000", "[::1]:", "10.0.0.1:http", "[]"}) {
    EXPECT_NE(message("", {{"HAWSER_LISTEN", wrong}}).find("HAWSER_LISTEN"), std::string::npos) << wrong;
  }
}

TEST_F(ConfigTest, TrialsLimitsThatOpeningRefusesAreRefusedByTheirName) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"HAWSER_LIMITS_TRANSFERS", "16777217"},
           {"HAWSER_LIMITS_TRANSFERS", "0"},
           {"HAWSER_LIMITS_NOTIFICATION_BYTES", "65599"},
           {"HAWSER_LIMITS_NOTIFICATION_BYTES_TOTAL", "65599"}}) {
    EXPECT_NE(message("", {{name, value}}).find(name), std::string::npos) << name;
  }
}

TEST_F(ConfigTest, VariablesOfNixlsFaceAreNotItsBusiness) {
  EXPECT_TRUE(load("", {{"HAWSER_NIXL_UCX", "native"}, {"NIXL_LOG_LEVEL", "x"}}).value().warnings.empty());
}

TEST_F(ConfigTest, NothingGivenIsAllDefaults) {
  const LoadedConfig config = load("").value();
  EXPECT_TRUE(config.options.backends.empty());
  EXPECT_EQ(config.options.default_deadline, 30s);
  EXPECT_EQ(config.options.directory, nullptr);
  EXPECT_TRUE(config.warnings.empty());
  for (const ConfigValue& value : config.values) EXPECT_EQ(value.origin, "default") << value.name;
  EXPECT_EQ(config.values.size(), config::options().size());
}

TEST_F(ConfigTest, AFileSetsEveryOption) {
  const LoadedConfig config = load(R"(
name = "prefill-0"
backends = ["shm", "TCP"]
mode = "lenient"
directory = "inproc:test"
directory_prefix = "x/"
security = "none"
deadline = "1.5s"
adopt = true
status_socket = "off"
heartbeat = "100ms"
peer_timeout = "1min"
log = "debug"
plugin_path = "/a:/b"
[limits]
transfers = 10
peers = 11
regions = 12
notification_bytes = "128KiB"
events = 14
[backend.tcp]
lanes = 4
zero_copy = true
interface = "eth0"
share = 0.5
)")
                                  .value();
  const AgentOptions& options = config.options;
  EXPECT_EQ(options.name, "prefill-0");
  ASSERT_EQ(options.backends.size(), 2u);
  EXPECT_EQ(options.backends[1].name, "tcp");
  EXPECT_EQ(options.mode, OpenMode::kLenient);
  EXPECT_EQ(options.directory->kind(), "inproc");
  EXPECT_EQ(options.directory_prefix, "x/");
  EXPECT_EQ(options.security, Security::kNone);
  EXPECT_EQ(options.default_deadline, 1500ms);
  EXPECT_TRUE(options.adopt);
  EXPECT_FALSE(options.status_socket);
  EXPECT_EQ(options.heartbeat, 100ms);
  EXPECT_EQ(options.peer_timeout, 1min);
  EXPECT_EQ(options.log.level, LogLevel::kDebug);
  EXPECT_EQ(config.options.plugin_paths, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(options.limits.transfers, 10u);
  EXPECT_EQ(options.limits.notification_bytes, 131072u);
  EXPECT_EQ(options.limits.events, 14u);
  EXPECT_EQ(options.backend_params.at("tcp"),
            (Params{{"interface", "eth0"}, {"lanes", "4"}, {"share", "0.5"}, {"zero_copy", "true"}}));
  EXPECT_EQ(value(config, "deadline").value, "1500ms");
  EXPECT_EQ(value(config, "deadline").origin, folder_ + "/hawser.toml:8");
  EXPECT_EQ(value(config, "backend.tcp.lanes").origin, folder_ + "/hawser.toml:22");
}

TEST_F(ConfigTest, LaterSourcesWin) {
  const std::string toml = "deadline = '1s'\nheartbeat = '1s'\nlog = 'info'\n[backend.tcp]\nlanes = 1\nport = 1\n";
  const LoadedConfig config = load(toml,
                                   {{"HAWSER_HEARTBEAT", "2s"},
                                    {"HAWSER_LOG", "warn"},
                                    {"HAWSER_BACKEND_TCP_LANES", "2"},
                                    {"HAWSER_NAME", ""},
                                    {"PATH", "/bin"}},
                                   {{"log", "error"}, {"Backend.TCP.Port", "3"}})
                                  .value();
  EXPECT_EQ(config.options.default_deadline, 1s);
  EXPECT_EQ(config.options.heartbeat, 2s);
  EXPECT_EQ(config.options.log.level, LogLevel::kError);
  EXPECT_EQ(config.options.backend_params.at("tcp"), (Params{{"lanes", "2"}, {"port", "3"}}));
  EXPECT_EQ(value(config, "heartbeat").origin, "HAWSER_HEARTBEAT");
  EXPECT_EQ(value(config, "log").origin, "caller");
  EXPECT_EQ(value(config, "name").origin, "default");
  EXPECT_EQ(value(config, "backend.tcp.lanes").origin, "HAWSER_BACKEND_TCP_LANES");
  EXPECT_TRUE(config.warnings.empty());
}

TEST_F(ConfigTest, EachBackendOfTheLibraryHasVariables) {
  ConfigSources::Texts environment;
  for (const char* const name : {"LOOPBACK", "SHM", "VERBS", "TCP", "FILE", "SIM"}) {
    environment.emplace("HAWSER_BACKEND_" + std::string(name) + "_X", "1");
  }
  const LoadedConfig config = load("", environment).value();
  EXPECT_TRUE(config.warnings.empty()) << config.warnings.front();
  for (const char* const name : {"loopback", "shm", "verbs", "tcp", "file", "sim"}) {
    EXPECT_EQ(config.options.backend_params.at(name), (Params{{"x", "1"}})) << name;
  }
}

TEST_F(ConfigTest, TheLongestKnownBackendWins) {
  ConfigSources sources{.environment = {{"HAWSER_BACKEND_MY_RDMA_QP_COUNT", "8"},
                                        {"HAWSER_BACKEND_MY_SIZE", "9"},
                                        {"HAWSER_BACKEND_SHM_RING", "1M"},
                                        {"HAWSER_BACKEND_MY_RDMA", "x"},
                                        {"HAWSER_BACKEND_NOBODY_X", "1"},
                                        {"HAWSER_BACKENDS", "MY_RDMA, shm"}},
                        .known_backends = {"my", "shm"}};
  const LoadedConfig config = load_config(sources).value();
  EXPECT_EQ(config.options.backend_params.at("my_rdma"), (Params{{"qp_count", "8"}}));
  EXPECT_EQ(config.options.backend_params.at("my"), (Params{{"rdma", "x"}, {"size", "9"}}));
  EXPECT_EQ(config.options.backend_params.at("shm"), (Params{{"ring", "1M"}}));
  ASSERT_EQ(config.warnings.size(), 1u);
  EXPECT_EQ(config.warnings[0], "HAWSER_BACKEND_NOBODY_X: names no parameter of a known backend (my, my_rdma, shm)");
}

TEST_F(ConfigTest, TheUsersRuntimeFolderIsForSharedMemorysSockets) {
  const auto params = [](const std::string& folder) {
    return load_config({.environment = {{"XDG_RUNTIME_DIR", folder}}}).value().options.backend_params["shm"];
  };
  EXPECT_EQ(params("/run/user/7"), (Params{{"runtime_dir", "/run/user/7"}}));
  EXPECT_EQ(params("relative"), Params());
  EXPECT_EQ(params(""), Params());
}

TEST_F(ConfigTest, UnknownOptionsWarnWithTheirPlace) {
  const LoadedConfig config =
      load("deadlin = '1s'\n[limits]\ntransfer = 1\n[backend]\ntcp = 4\n", {{"HAWSER_DEADLIN", "1s"}}, {{"x", "1"}})
          .value();
  ASSERT_EQ(config.warnings.size(), 5u);
  EXPECT_EQ(config.warnings[0], "HAWSER_DEADLIN: there is no such variable. Did you mean 'HAWSER_DEADLINE'?");
  EXPECT_EQ(config.warnings[1], folder_ + "/hawser.toml:5: there is no option \"backend.tcp\".");
  EXPECT_EQ(config.warnings[2], folder_ + "/hawser.toml:1: there is no option \"deadlin\". Did you mean 'deadline'?");
  EXPECT_EQ(config.warnings[3],
            folder_ + "/hawser.toml:3: there is no option \"limits.transfer\". Did you mean 'limits.transfers'?");
  EXPECT_EQ(config.warnings[4], "caller: there is no option \"x\".");
  EXPECT_EQ(config.unknown_override, config.warnings[4]);
}

TEST_F(ConfigTest, WhatTheCallerDidNotWriteIsNoUnknownOverride) {
  const LoadedConfig config = load("deadlin = '1s'\n", {{"HAWSER_LISTENS", "1"}}, {{"Deadline", "1s"}}).value();
  EXPECT_EQ(config.warnings.size(), 2u);
  EXPECT_EQ(config.unknown_override, "");
  EXPECT_EQ(load("", {}, {{"TCP.Listen", "1"}}).value().unknown_override,
            "caller: there is no option \"tcp.listen\". Did you mean 'listen'?");
}

TEST_F(ConfigTest, AllWrongValuesAreInOneError) {
  EXPECT_EQ(
      message("heartbeat = 5\nlog = 'loud'", {{"HAWSER_DEADLINE", "5"}, {"HAWSER_SECURITY", "tls"}}),
      "config: HAWSER_DEADLINE = \"5\" is not a duration of at least 1ms with its unit, such as 500ms, 1.5s or 2min; "
      "hawser.toml:1: heartbeat = \"5\" is not a duration of at least 1ms with its unit, such as 500ms, 1.5s or "
      "2min; hawser.toml:2: log = \"loud\" is not one of trace, debug, info, warn, error, off; "
      "HAWSER_SECURITY = \"tls\" is not one of default, none, authenticate, encrypt");
}

TEST_F(ConfigTest, EachOptionRefusesWhatItMust) {
  const std::vector<std::pair<std::string, std::string>> wrong = {{"HAWSER_NAME", "a\nb"},
                                                                  {"HAWSER_NAME", std::string(256, 'n')},
                                                                  {"HAWSER_BACKENDS", "shm,,tcp"},
                                                                  {"HAWSER_BACKENDS", ","},
                                                                  {"HAWSER_MODE", "maybe"},
                                                                  {"HAWSER_DIRECTORY", "etcd:x"},
                                                                  {"HAWSER_DIRECTORY", "etcd://"},
                                                                  {"HAWSER_DIRECTORY", "etcds:///prefix"},
                                                                  {"HAWSER_ETCD_LEASE", "15"},
                                                                  {"HAWSER_DIRECTORY", "file:"},
                                                                  {"HAWSER_DEADLINE", "0"},
                                                                  {"HAWSER_DEADLINE", "-1s"},
                                                                  {"HAWSER_HEARTBEAT", "999us"},
                                                                  {"HAWSER_LIMITS_PEERS", "0"},
                                                                  {"HAWSER_LIMITS_PEERS", "4294967296"},
                                                                  {"HAWSER_LIMITS_EVENTS", "1k"},
                                                                  {"HAWSER_LIMITS_NOTIFICATION_BYTES", "x"},
                                                                  {"HAWSER_DIRECTORY_PREFIX", std::string(513, 'p')}};
  for (const auto& [variable, text] : wrong) {
    EXPECT_EQ(message("", {{variable, text}}).rfind("config: " + variable + " = ", 0), 0u) << variable;
  }
}

TEST_F(ConfigTest, BrokenFilesSayWhere) {
  EXPECT_EQ(message("deadline = '1s'\nname = = 3\n").rfind("config: hawser.toml:2:8: ", 0), 0u);
  EXPECT_EQ(message("deadline = 1979-05-27\n"),
            "config: hawser.toml:1: deadline is no text, number, true, false or list of them");
  EXPECT_EQ(message("name = [['a']]\n"), "config: hawser.toml:1: name is no text, number, true, false or list of them");
  const Status status = load_config({.file = folder_ + "/none.toml"}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "config: cannot read " + folder_ + "/none.toml: No such file or directory");
  EXPECT_EQ(load_config({.file = folder_}).status().code(), Code::kNotFound);
}

// What reading throws or never ends must not leave `load` as anything but a status.
TEST_F(ConfigTest, AFileWhoseBytesCannotBeReadIsRefused) {
  EXPECT_EQ(load_config({.file = "/proc/self/mem"}).error().message(),
            "config: cannot read /proc/self/mem: Input/output error");
  EXPECT_EQ(load_config({.file = "/proc/kallsyms"}).error().code(), Code::kNotFound) << "it says that it has no bytes";
}

TEST_F(ConfigTest, WhatIsQuotedIsOneLine) {
  const Status status = load_config({.environment = {{"HAWSER_DEADLINE", "a\n\033[31m"}}}).error();
  EXPECT_NE(status.message().find("\"a\\x0a\\x1b[31m\""), std::string::npos) << status.message();
}

TEST_F(ConfigTest, TheEnvironmentNamesTheFileUnlessTheCallerDoes) {
  const std::string path = write("name = 'from-file'");
  EXPECT_EQ(load_config({.environment = {{"HAWSER_CONFIG", path}}}).value().options.name, "from-file");
  EXPECT_EQ(load_config({.environment = {{"HAWSER_CONFIG", "/nowhere"}}}).status().code(), Code::kNotFound);
  EXPECT_TRUE(load_config({.file = path, .environment = {{"HAWSER_CONFIG", "/nowhere"}}}).has_value());
}

TEST_F(ConfigTest, DirectoriesAreOpened) {
  EXPECT_EQ(load("", {{"HAWSER_DIRECTORY", "file:" + folder_ + "/cards"}}).value().options.directory->kind(), "file");
  EXPECT_EQ(load("", {{"HAWSER_DIRECTORY", "inproc"}}).value().options.directory->kind(), "inproc");
  EXPECT_EQ(load("", {{"HAWSER_DIRECTORY", "none"}}).value().options.directory, nullptr);
  write("");
  const Status status = load("", {{"HAWSER_DIRECTORY", "file:" + folder_ + "/hawser.toml/x"}}).status();
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_EQ(status.message(),
            "config: HAWSER_DIRECTORY: cannot open directory = \"file:" + folder_ + "/hawser.toml/x\"");
  EXPECT_FALSE(status.cause().ok());
}

TEST_F(ConfigTest, AnEtcdIsOpenedWithItsOptions) {
  // It opens whether anybody listens there or not.
  const std::string toml =
      "directory = 'etcd://127.0.0.1:1,[::1]:1/team-a/'\n[etcd]\nlease = '30s'\ntimeout = '200ms'\n";
  const LoadedConfig config = load(toml).value();
  EXPECT_EQ(config.options.directory->kind(), "etcd");
  EXPECT_EQ(value(config, "etcd.lease").value, "30s");
  const auto error = [&](ConfigSources::Texts environment) {
    environment["HAWSER_DIRECTORY"] = "etcds://127.0.0.1:1";
    const Status status = load("", std::move(environment)).status();
    EXPECT_FALSE(status.ok());
    return status.to_string();
  };
  EXPECT_NE(error({{"HAWSER_ETCD_CA", folder_ + "/none.pem"}}).find("/none.pem"), std::string::npos);
  EXPECT_NE(error({{"HAWSER_ETCD_USER", "u"}, {"HAWSER_ETCD_PASSWORD_FILE", "/nowhere"}}).find("etcd.password_file"),
            std::string::npos);
  EXPECT_NE(error({{"HAWSER_ETCD_LEASE", "5ms"}}).find("lease"), std::string::npos);
}

TEST_F(ConfigTest, TheTableIsAligned) {
  const std::string table = to_string(load("", {{"HAWSER_BACKEND_TCP_LANES", "4"}}).value());
  EXPECT_NE(table.find("option                           value          from\n"), std::string::npos) << table;
  EXPECT_NE(table.find("deadline                         30s            default\n"), std::string::npos) << table;
  EXPECT_NE(table.find("backend.tcp.lanes                4              HAWSER_BACKEND_TCP_LANES\n"),
            std::string::npos);
}

TEST(ConfigOptions, CanonicalSpellingIsTakenAgain) {
  for (const config::Option& option : config::options()) {
    config::Draft draft;
    draft.config.options.name = "n";
    const std::string text = option.get(draft);
    EXPECT_TRUE(option.set(draft, text)) << option.name;
    EXPECT_EQ(option.get(draft), text) << option.name;
    EXPECT_NE(config_reference().find(std::string(option.variable) + "\n"), std::string::npos);
  }
}

TEST(ConfigSources, FromProcessTakesOurVariablesOnly) {
  ASSERT_EQ(setenv("HAWSER_LOG", "debug", 1), 0);
  const ConfigSources sources = ConfigSources::from_process();
  unsetenv("HAWSER_LOG");
  EXPECT_EQ(sources.environment.at("HAWSER_LOG"), "debug");
  EXPECT_FALSE(sources.environment.contains("PATH"));
}

}  // namespace
}  // namespace hawser
