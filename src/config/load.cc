// Brings the sources together, lowest first, and makes options of the result.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/format.h"
#include "base/quantity.h"
#include "base/shown.h"
#include "base/try.h"
#include "config/options.h"
#include "config/settings.h"

namespace hawser::config {
namespace {

constexpr std::string_view kCaller = "caller";  ///< The origin of what the caller gave.

/// A larger file is no configuration.
constexpr std::size_t kFileSizeMax = std::size_t{1} << 20;

Result<std::string> read_file(const std::string& path, std::string_view option = {}) {
  const auto unreadable = [&](std::string_view why) {
    const bool is_config = option.empty();
    return Status(Code::kNotFound, base::format("config: cannot read {}{}{}: {}", option, is_config ? "" : " = ",
                                                base::shown(path), why))
        .with_advice(is_config ? "give the path of a TOML file, or unset HAWSER_CONFIG" : "give the path of a file");
  };
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return unreadable(std::generic_category().message(errno));
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return unreadable(std::generic_category().message(errno));
  if (!S_ISREG(found.st_mode)) return unreadable("it is no regular file");
  std::string text(kFileSizeMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {  // Whatever its size was said to be: files of /proc have none.
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(std::generic_category().message(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kFileSizeMax) return unreadable("it is larger than 1 MiB");
  text.resize(size);
  return text;
}

std::string file_of(const ConfigSources& sources) {
  if (!sources.file.empty()) return sources.file;
  const auto named = sources.environment.find("HAWSER_CONFIG");
  return named == sources.environment.end() ? std::string() : named->second;
}

Settings caller_settings(const ConfigSources& sources) {
  Settings settings;
  for (const auto& [name, text] : sources.overrides)
    settings[base::to_lower(base::trim(name))] = {text, std::string(kCaller)};
  return settings;
}

/// Names that variables of backends are matched with.
std::vector<std::string> known_backends(const ConfigSources& sources, const Settings& file, const Settings& caller) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<std::string>& more) {
    for (const std::string& name : more) {
      if (!name.empty()) names.push_back(base::to_lower(name));
    }
  };
  add(sources.known_backends);
  add(backends_named(file));
  add(backends_named(caller));
  if (const auto listed = sources.environment.find("HAWSER_BACKENDS"); listed != sources.environment.end()) {
    std::vector<std::string> words;
    split_words(listed->second, words);
    add(words);
  }
  return names;
}

Result<Settings> gather(const ConfigSources& sources, Findings& findings) {
  Settings settings;
  if (const std::string path = file_of(sources); !path.empty()) {
    HAWSER_TRY_ASSIGN(const std::string document, read_file(path));
    settings = read_toml(document, path, findings);
  }
  Settings caller = caller_settings(sources);
  const std::vector<std::string> backends = known_backends(sources, settings, caller);
  overlay(settings, read_environment(sources.environment, backends, findings));
  overlay(settings, std::move(caller));
  return settings;
}

void apply(const Settings& settings, Draft& draft, Findings& findings) {
  for (const auto& [name, setting] : settings) {
    if (name.starts_with(kBackendPrefix) && name.rfind('.') > kBackendPrefix.size()) {
      const std::size_t dot = name.rfind('.');
      const std::string backend = name.substr(kBackendPrefix.size(), dot - kBackendPrefix.size());
      draft.config.options.backend_params[backend][name.substr(dot + 1)] = setting.text;
    } else if (const Option* option = find_option(name); option == nullptr) {
      findings.warnings.push_back(
          base::format("{}: there is no option \"{}\".{}", setting.origin, base::shown(name), option_meant(name)));
      const bool is_first = setting.origin == kCaller && findings.unknown_override.empty();
      if (is_first) findings.unknown_override = findings.warnings.back();
    } else if (!option->set(draft, setting.text)) {
      const std::string what = setting.origin == option->variable ? setting.origin : setting.origin + ": " + name;
      findings.errors.push_back(base::format("{} = \"{}\" is not {}", what, base::shown(setting.text), option->form));
    }
  }
}

void list_values(const Settings& settings, Draft& draft) {
  std::vector<ConfigValue>& values = draft.config.values;
  for (const Option& option : options()) {
    const auto given = settings.find(option.name);
    values.push_back({std::string(option.name), option.get(draft),
                      given == settings.end() ? std::string("default") : given->second.origin});
  }
  for (const auto& [name, setting] : settings) {
    if (name.starts_with(kBackendPrefix) && find_option(name) == nullptr) {
      values.push_back({name, setting.text, setting.origin});
    }
  }
}

Result<std::shared_ptr<Directory>> open_etcd(const Draft& draft) {
  EtcdOptions options = draft.config.etcd;
  std::string_view text = draft.directory;
  const bool is_tls = text.starts_with("etcds://");
  text.remove_prefix(is_tls ? 8 : 7);
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) options.prefix = text.substr(slash + 1);
  text = text.substr(0, slash);
  options.endpoints.clear();
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    options.endpoints.push_back((is_tls ? "https://" : "") + std::string(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return etcd(std::move(options));
}

/// An agent's identity is the one that it shows to etcd, too, unless it is told another or none.
void settle_etcd_identity(Draft& draft) {
  std::string& identity = draft.config.etcd.identity;
  if (identity.empty()) identity = draft.config.options.identity.folder;
  if (identity == "none") identity.clear();
}

Status open_directory(const Settings& settings, Draft& draft) {
  const std::string_view text = draft.directory;
  if (text == "none") return {};
  if (text.starts_with("inproc")) {
    const std::string_view name = text.size() > 7 ? text.substr(7) : "default";
    draft.config.options.directory = inproc_directory(name);
    return {};
  }
  Result<std::shared_ptr<Directory>> opened =
      text.starts_with("etcd") ? open_etcd(draft) : file_directory(text.substr(5));
  if (opened) {
    draft.config.options.directory = *std::move(opened);
    return {};
  }
  const Status cause = opened.status();
  return Status(cause.code(), base::format("config: {}: cannot open directory = \"{}\"",
                                           settings.find("directory")->second.origin, base::shown(text)))
      .because(cause)
      .with_advice(cause.advice());
}

}  // namespace
}  // namespace hawser::config

HAWSER_NAMESPACE_BEGIN

Result<LoadedConfig> load_config(const ConfigSources& sources) {
  config::Findings findings;
  HAWSER_TRY_ASSIGN(const config::Settings settings, config::gather(sources, findings));
  config::Draft draft;
  config::apply(settings, draft, findings);
  if (!findings.errors.empty()) {
    std::string text = "config: ";
    for (const std::string& error : findings.errors) text.append(text.size() == 8 ? "" : "; ").append(error);
    return Status(Code::kInvalid, std::move(text));
  }
  if (!draft.etcd_password_file.empty()) {
    HAWSER_TRY_ASSIGN(const std::string file, config::read_file(draft.etcd_password_file, "etcd.password_file"));
    draft.config.etcd.password = file.substr(0, file.find_first_of("\r\n"));
  }
  config::list_values(settings, draft);
  config::settle_etcd_identity(draft);
  HAWSER_TRY(config::open_directory(settings, draft));
  draft.config.warnings = std::move(findings.warnings);
  draft.config.unknown_override = std::move(findings.unknown_override);
  return std::move(draft.config);
}

std::string to_string(const LoadedConfig& config) {
  std::size_t name_width = 6, value_width = 5;
  for (const ConfigValue& value : config.values) {
    name_width = std::max(name_width, value.name.size());
    value_width = std::max(value_width, value.value.size());
  }
  std::string text = base::format("{:<{}}  {:<{}}  {}\n", "option", name_width, "value", value_width, "from");
  for (const ConfigValue& value : config.values) {
    text += base::format("{:<{}}  {:<{}}  {}\n", value.name, name_width, value.value, value_width, value.origin);
  }
  return text;
}

std::string config_reference() {
  config::Draft draft;
  std::string text;
  for (const config::Option& option : config::options()) {
    const std::string value = option.get(draft);
    text += base::format("{}\n    {}\n    variable: {}\n    allowed:  {}\n    default:  {}\n", option.name,
                         option.meaning, option.variable, option.form, value.empty() ? "(empty)" : value);
  }
  return text +
         "backend.NAME.PARAMETER\n    A parameter of one backend; each backend lists its own.\n"
         "    variable: HAWSER_BACKEND_NAME_PARAMETER\n";
}

HAWSER_NAMESPACE_END
