#include "backend/params.h"

#include "base/format.h"
#include "base/quantity.h"

namespace hawser::backend {
namespace {

template <typename Range>
std::string join(const Range& words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

}  // namespace

ParamReader::ParamReader(std::string_view backend, const Params& given) : backend_(backend) {
  for (const auto& [key, value] : given) {
    if (left_.emplace(base::to_lower(base::trim(key)), value).second) continue;
    warnings_.push_back(
        base::format("parameter \"{}\" is given twice in other spelling; \"{}\" is ignored", key, value));
  }
}

std::optional<std::string> ParamReader::take(std::string_view name) {
  const auto at = left_.find(name);
  if (at == left_.end()) return std::nullopt;
  return std::move(left_.extract(at).mapped());
}

void ParamReader::reject(std::string_view name, std::string_view value, std::string_view form) {
  errors_.push_back(base::format("{} = \"{}\" is not {}", name, value, form));
}

template <typename T>
struct ParamReader::Form {
  std::string_view text;
  std::optional<T> (*parse)(std::string_view);
  std::string (*write)(T);
  T none_below, none_above;  ///< Bounds that exclude nothing are not worth telling.

  std::string describe(T min, T max) const {
    const bool below = min != none_below, above = max != none_above;
    std::string result(text);
    if (below && above) return result + base::format(", from {} to {}", write(min), write(max));
    if (below) return result + ", at least " + write(min);
    if (above) return result + ", at most " + write(max);
    return result;
  }
};

template <typename T>
T ParamReader::number(std::string_view name, T fallback, T min, T max, const Form<T>& form) {
  T value = fallback;
  if (const auto given = take(name)) {
    const std::optional<T> parsed = form.parse(*given);
    if (parsed && *parsed >= min && *parsed <= max) {
      value = *parsed;
    } else {
      reject(name, *given, form.describe(min, max));
    }
  }
  in_force_[std::string(name)] = form.write(value);
  return value;
}

std::uint64_t ParamReader::count(std::string_view name, std::uint64_t fallback, CountBounds bounds) {
  constexpr auto kWrite = [](std::uint64_t value) { return std::to_string(value); };
  const Form<std::uint64_t> form{base::kCountForm, base::parse_count, kWrite, 0, UINT64_MAX};
  return number(name, fallback, bounds.min, bounds.max, form);
}

std::uint64_t ParamReader::size(std::string_view name, std::uint64_t fallback, CountBounds bounds) {
  const Form<std::uint64_t> form{base::kSizeForm, base::parse_size, base::format_size, 0, UINT64_MAX};
  return number(name, fallback, bounds.min, bounds.max, form);
}

Duration ParamReader::duration(std::string_view name, Duration fallback, DurationBounds bounds) {
  const Form<Duration> form{base::kDurationForm, base::parse_duration, base::format_duration, Duration::zero(),
                            Duration::max()};
  return number(name, fallback, bounds.min, bounds.max, form);
}

bool ParamReader::flag(std::string_view name, bool fallback) {
  bool value = fallback;
  if (const auto given = take(name)) {
    const auto parsed = base::parse_switch(*given);
    if (!parsed) reject(name, *given, base::kSwitchForm);
    value = parsed.value_or(fallback);
  }
  in_force_[std::string(name)] = value ? "true" : "false";
  return value;
}

std::string ParamReader::text(std::string_view name, std::string_view fallback) {
  auto given = take(name);
  return in_force_[std::string(name)] = given ? *std::move(given) : std::string(fallback);
}

std::size_t ParamReader::choose(std::string_view name, std::size_t fallback, std::span<const std::string_view> words) {
  std::size_t chosen = fallback;
  if (const auto given = take(name)) {
    chosen = words.size();
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (base::equal_ignoring_case(base::trim(*given), words[i])) chosen = i;
    }
    if (chosen == words.size()) {
      reject(name, *given, "one of " + join(words));
      chosen = fallback;
    }
  }
  in_force_[std::string(name)] = std::string(words[chosen]);
  return chosen;
}

Status ParamReader::finish() {
  std::vector<std::string_view> known;
  for (const auto& [key, value] : in_force_) known.push_back(key);
  for (const auto& [key, value] : left_) {
    warnings_.push_back(base::format("unknown parameter \"{}\" is ignored; backend {} knows: {}", key, backend_,
                                     known.empty() ? std::string("none") : join(known)));
  }
  left_.clear();
  if (errors_.empty()) return {};
  std::string text;
  for (const std::string& error : errors_) text.append(text.empty() ? "" : "; ").append(error);
  return Status(Code::kInvalid, base::format("backend {}: parameter {}", backend_, text));
}

}  // namespace hawser::backend
