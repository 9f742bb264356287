#include "cli/command.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "base/quantity.h"
#include "cli/status_exit.h"

namespace hawser::cli {

CLI::App* add_command(Shell& shell, const std::string& name, const std::string& description,
                      const std::string& examples, Common& common) {
  return add_subcommand(shell.root, name, description, examples, common);
}

CLI::App* add_subcommand(CLI::App& parent, const std::string& name, const std::string& description,
                         const std::string& examples, Common& common) {
  CLI::App* command = parent.add_subcommand(name, description);
  const std::string schema = parent.get_parent() == nullptr ? name : fmt::format("{}_{}", parent.get_name(), name);
  command->add_flag("--json", common.json, fmt::format("Print one JSON object (schema hawser.{}/1)", schema));
  command->add_option("--config", common.config, "A TOML file (default: the one that HAWSER_CONFIG names, or none)");
  command->footer(fmt::format("\nExamples:\n{}\n{}", examples, exit_code_help()));
  return command;
}

Result<LoadedConfig> configuration(const std::string& file, ConfigSources::Texts overrides) {
  ConfigSources sources = ConfigSources::from_process();
  if (!file.empty()) sources.file = file;
  sources.overrides = std::move(overrides);
  return load_config(sources);
}

void tell_warnings(const LoadedConfig& config) {
  for (const std::string& warning : config.warnings) fmt::print(stderr, "hawser: {}\n", warning);
}

void on_run(Shell& shell, CLI::App* command, std::function<int()> body) {
  command->callback([&shell, command, body = std::move(body)] {
    if (command->get_subcommands().empty()) shell.exit_code = body();
  });
}

namespace {
std::string wrong(const std::string& text, std::string_view form) { return fmt::format("'{}' is not {}", text, form); }
}  // namespace

CLI::Validator whole_number(std::uint64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    return is_number && number >= least ? std::string()
                                        : wrong(text, fmt::format("a whole number from {} to {}", least, UINT64_MAX));
  };
  return {check, "", ""};
}

CLI::Option* add_size(CLI::App* command, const std::string& name, std::uint64_t& value,
                      const std::string& description) {
  return command
      ->add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto parsed = base::parse_size(text);
            if (!parsed) throw CLI::ValidationError(name, wrong(text, base::kSizeForm));
            value = *parsed;
          },
          description)
      ->type_name("SIZE");
}

CLI::Option* add_duration(CLI::App* command, const std::string& name, Duration& value, const std::string& description) {
  return command
      ->add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto parsed = base::parse_duration(text);
            if (!parsed) throw CLI::ValidationError(name, wrong(text, base::kDurationForm));
            value = *parsed;
          },
          description)
      ->type_name("TIME");
}

}  // namespace hawser::cli
