#include "runtime/cost_file.h"

#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::runtime {
namespace {

using schedule::CostField;
using schedule::kCostFields;

constexpr std::string_view kNear = "within_host", kFar = "between_hosts";
constexpr std::uint32_t kCountMax = 1'000'000;

std::string_view table_of(bool far) { return far ? kFar : kNear; }

/// A text that is shown, so nothing in it moves a terminal.
bool is_plain(std::string_view text) {
  return text.size() <= kCostTextMax && std::ranges::none_of(text, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7F;
         });
}

/// The text as TOML's basic string; what cannot stand in one becomes a question mark.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kCostTextMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    out += byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return out + "\"";
}

class Reader {
 public:
  explicit Reader(std::string_view path) : path_(path) {}

  Result<CostFile> read(const toml::table& table) {
    HAWSER_TRY(check_schema(table));
    for (const auto& [key, node] : table) HAWSER_TRY(take(key.str(), node));
    for (const bool far : {false, true}) HAWSER_TRY(check_whole(far, table));
    if (!file_.has(false) && !file_.has(true)) {
      return wrong(table, base::format("it has neither [{}] nor [{}]: nothing was measured", kNear, kFar));
    }
    return std::move(file_);
  }

 private:
  Status wrong(const toml::node& node, const std::string& text) const {
    return Status(Code::kInvalid,
                  base::format("cost model: {}:{}: {}", base::shown(path_), node.source().begin.line, text))
        .with_advice("`hawser bench coll --tune --output FILE` writes such a file");
  }

  Status check_schema(const toml::table& table) const {
    const toml::node* const schema = table.get("schema");
    const auto* const text = schema == nullptr ? nullptr : schema->as_string();
    if (text != nullptr && text->get() == kCostSchema) return {};
    return wrong(schema == nullptr ? table : *schema, base::format("its schema is not \"{}\"", kCostSchema));
  }

  Status take(std::string_view key, const toml::node& node) {
    if (key == "schema") return {};
    if (key == kNear) return take_costs(node, false);
    if (key == kFar) return take_costs(node, true);
    if (key == "measured") return take_text(key, node, file_.measured);
    if (key == "host") return take_text(key, node, file_.host);
    if (key == "cpu") return take_text(key, node, file_.cpu);
    if (key == "backends") return take_text(key, node, file_.backends);
    if (key == "ranks") return take_count(key, node, file_.ranks);
    if (key == "rounds") return take_count(key, node, file_.rounds);
    return unknown(key, node);
  }

  Status unknown(std::string_view key, const toml::node& node) const {
    return wrong(node, base::format("there is no '{}' in a cost model", base::shown(key)));
  }

  Status take_text(std::string_view key, const toml::node& node, std::string& into) const {
    const auto* const text = node.as_string();
    if (text == nullptr || !is_plain(text->get())) {
      return wrong(node,
                   base::format("{} is no text of at most {} bytes without control characters", key, kCostTextMax));
    }
    into = text->get();
    return {};
  }

  Status take_count(std::string_view key, const toml::node& node, std::uint32_t& into) const {
    const auto* const number = node.as_integer();
    if (number == nullptr || number->get() < 0 || number->get() > kCountMax) {
      return wrong(node, base::format("{} is no whole number from 0 to {}", key, kCountMax));
    }
    into = static_cast<std::uint32_t>(number->get());
    return {};
  }

  Result<double> number_of(const CostField& field, const toml::node& node) const {
    double value = 0;
    if (const auto* const number = node.as_floating_point()) {
      value = number->get();
    } else if (const auto* const whole = node.as_integer()) {
      value = static_cast<double>(whole->get());
    } else {
      return wrong(node, base::format("{} is no number", field.name));
    }
    if (const Status bad = check_cost(field, value); !bad.ok()) return wrong(node, std::string(bad.message()));
    return value;
  }

  Status take_costs(const toml::node& node, bool far) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return wrong(node, base::format("{} is no table", table_of(far)));
    for (const auto& [key, cost] : *table) {
      const std::string_view name = key.str();
      const auto field = std::ranges::find_if(
          kCostFields, [&](const CostField& each) { return each.name == name && each.is_far == far; });
      if (field == kCostFields.end()) return unknown(name, cost);
      HAWSER_TRY_ASSIGN(file_.costs[static_cast<std::size_t>(field - kCostFields.begin())], cost_of(*field, cost));
    }
    return {};
  }

  /// A number, or { value, low, high }.
  Result<MeasuredCost> cost_of(const CostField& field, const toml::node& node) const {
    const toml::table* const table = node.as_table();
    if (table == nullptr) {
      HAWSER_TRY_ASSIGN(const double value, number_of(field, node));
      return MeasuredCost{.value = value, .low = value, .high = value};
    }
    MeasuredCost cost;
    for (const auto& [key, part] : *table) {
      const std::string_view name = key.str();
      double* const into = name == "value"  ? &cost.value
                           : name == "low"  ? &cost.low
                           : name == "high" ? &cost.high
                                            : nullptr;
      if (into == nullptr) return unknown(name, part);
      HAWSER_TRY_ASSIGN(*into, number_of(field, part));
    }
    if (cost.low == 0 || cost.value < cost.low || cost.value > cost.high) {
      return wrong(node, base::format("{} has not low <= value <= high", field.name));
    }
    return cost;
  }

  Status check_whole(bool far, const toml::table& table) const {
    const toml::node* const part = table.get(table_of(far));
    if (part == nullptr) return {};
    for (std::size_t i = 0; i < kCostFields.size(); ++i) {
      if (kCostFields[i].is_far != far || file_.costs[i]) continue;
      return wrong(*part, base::format("[{}] has no {}", table_of(far), kCostFields[i].name));
    }
    return {};
  }

  const std::string_view path_;
  CostFile file_;
};

void add_costs(const CostFile& file, bool far, std::string& text) {
  text += base::format("\n[{}]\n", table_of(far));
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    if (kCostFields[i].is_far != far || !file.costs[i]) continue;
    const MeasuredCost& cost = *file.costs[i];
    text += base::format("{} = {{ value = {}, low = {}, high = {} }}\n", kCostFields[i].name, cost.value, cost.low,
                         cost.high);
  }
}

}  // namespace

bool CostFile::has(bool far) const {
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    if (kCostFields[i].is_far == far && costs[i]) return true;
  }
  return false;
}

schedule::CostModel CostFile::model() const {
  schedule::CostModel model;
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    if (costs[i]) model.*kCostFields[i].value = costs[i]->value;
  }
  return model;
}

Result<CostFile> parse_cost_file(std::string_view text, std::string_view path) {
  if (text.size() > kCostFileMax) {
    return Status(Code::kInvalid,
                  base::format("cost model: {}: it is larger than {} bytes", base::shown(path), kCostFileMax));
  }
  try {
    return Reader(path).read(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return Status(Code::kInvalid, base::format("cost model: {}:{}:{}: {}", base::shown(path), at.line, at.column,
                                               base::shown(error.description())));
  }
}

Result<CostFile> read_cost_file(const std::string& path) {
  const auto unreadable = [&](std::string_view why) {
    return Status(Code::kNotFound, base::format("cost model: cannot read '{}': {}", base::shown(path), why))
        .with_advice("give the path of a file that `hawser bench coll --tune --output FILE` wrote");
  };
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return unreadable("there is no such file");
  if (!S_ISREG(found.st_mode)) return unreadable("it is no regular file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return unreadable("permission denied, or it is gone");
  std::string text(kCostFileMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_cost_file(text, path);
}

std::string to_toml(const CostFile& file) {
  std::string text = base::format(
      "# What messages and bytes of collectives cost, in nanoseconds: measured by `hawser bench coll --tune`.\n"
      "# Give it to worlds as the option cost_model, or by HAWSER_COST_MODEL. One rank that has it is enough.\n"
      "schema = \"{}\"\nmeasured = {}\nhost = {}\ncpu = {}\nbackends = {}\nranks = {}\nrounds = {}\n",
      kCostSchema, in_quotes(file.measured), in_quotes(file.host), in_quotes(file.cpu), in_quotes(file.backends),
      file.ranks, file.rounds);
  for (const bool far : {false, true}) {
    if (file.has(far)) {
      add_costs(file, far, text);
    } else {
      text +=
          base::format("\n# No [{}]: it was not measured, so Hawser's built-in values count there.\n", table_of(far));
    }
  }
  return text;
}

}  // namespace hawser::runtime
