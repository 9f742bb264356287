#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/format.h"
#include "base/quantity.h"
#include "config/settings.h"

namespace hawser::config {
namespace {

/// Deeper tables mean nothing here.
constexpr int kDepthMax = 4;

/// Walks a document and notes each value under its dotted name.
class Flattener {
 public:
  Flattener(std::string_view path, Findings& findings) : path_(path), findings_(findings) {}

  void take_table(const toml::table& table, const std::string& prefix, int depth) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + base::to_lower(key.str());
      if (const toml::table* inner = node.as_table(); inner != nullptr && depth < kDepthMax) {
        take_table(*inner, name + ".", depth + 1);
      } else {
        take_value(name, node);
      }
    }
  }
  Settings settings() && { return std::move(settings_); }

 private:
  std::string place(const toml::node& node) const { return base::format("{}:{}", path_, node.source().begin.line); }

  void take_value(const std::string& name, const toml::node& node) {
    std::string text;
    bool good = true;
    if (const toml::array* list = node.as_array()) {
      for (const toml::node& item : *list) {
        if (!text.empty()) text += ',';
        good = good && append(text, item);
      }
    } else {
      good = append(text, node);
    }
    if (good) {
      settings_[name] = {std::move(text), place(node)};
    } else {
      findings_.errors.push_back(
          base::format("{}: {} is no text, number, true, false or list of them", place(node), name));
    }
  }
  static bool append(std::string& text, const toml::node& node) {
    if (const auto* value = node.as_string()) {
      text += value->get();
    } else if (const auto* integer = node.as_integer()) {
      text += std::to_string(integer->get());
    } else if (const auto* number = node.as_floating_point()) {
      text += fmt::format("{}", number->get());
    } else if (const auto* flag = node.as_boolean()) {
      text += flag->get() ? "true" : "false";
    } else {
      return false;
    }
    return true;
  }

  const std::string_view path_;
  Findings& findings_;
  Settings settings_;
};

}  // namespace

Settings read_toml(std::string_view document, std::string_view path, Findings& findings) {
  try {
    const toml::table table = toml::parse(document, path);
    Flattener flattener(path, findings);
    flattener.take_table(table, "", 0);
    return std::move(flattener).settings();
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    findings.errors.push_back(base::format("{}:{}:{}: {}", path, at.line, at.column, error.description()));
    return {};
  }
}

}  // namespace hawser::config
