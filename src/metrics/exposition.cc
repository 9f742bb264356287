#include "metrics/exposition.h"

#include <utility>

#include "base/format.h"
#include "base/shown.h"

namespace hawser::metrics {
namespace {

/// Label values and help texts: a backslash, a quote and a line's end have escapes of their own.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string series_of(std::string_view name, Labels labels, std::string_view bound = {}) {
  std::string series(name);
  char before = '{';
  for (const Label& label : labels) {
    series += base::format("{}{}=\"{}\"", before, label.name, escaped(base::shown(label.value), true));
    before = ',';
  }
  if (!bound.empty()) series += base::format("{}le=\"{}\"", std::exchange(before, ','), bound);
  if (before == ',') series += '}';
  return series;
}

/// The shortest text that gives the same number again.
std::string number(double value) { return base::format("{}", value); }

}  // namespace

Exposition::Family& Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  auto found = families_.find(name);
  if (found == families_.end()) {
    found = families_.emplace(std::string(name), Family{.type = type, .help = std::string(help), .samples = {}}).first;
  }
  return found->second;
}

void Exposition::Family::add(std::string series, Value value) {
  const auto [found, is_new] = place.try_emplace(series, samples.size());
  if (is_new) {
    samples.push_back({std::move(series), value});
    return;
  }
  std::visit([&](auto& sum) { sum += std::get<std::decay_t<decltype(sum)>>(value); }, samples[found->second].value);
}

void Exposition::counter(std::string_view name, std::string_view help, Labels labels, std::uint64_t value) {
  family(name, "counter", help).add(series_of(name, labels), value);
}

void Exposition::gauge(std::string_view name, std::string_view help, Labels labels, double value) {
  family(name, "gauge", help).add(series_of(name, labels), value);
}

void Exposition::histogram(std::string_view name, std::string_view help, Labels labels, std::span<const Bucket> buckets,
                           std::uint64_t count, double sum) {
  Family& to = family(name, "histogram", help);
  const std::string bucket = base::format("{}_bucket", name);
  for (const Bucket& each : buckets) to.add(series_of(bucket, labels, number(each.bound)), each.count);
  to.add(series_of(bucket, labels, "+Inf"), count);
  to.add(series_of(base::format("{}_sum", name), labels), sum);
  to.add(series_of(base::format("{}_count", name), labels), count);
}

std::string Exposition::text() const {
  std::string all;
  for (const auto& [name, family] : families_) {
    all += base::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(family.help, false), name, family.type);
    for (const Sample& sample : family.samples) {
      all += sample.series;
      std::visit([&](auto value) { all += base::format(" {}\n", value); }, sample.value);
    }
  }
  return all;
}

}  // namespace hawser::metrics
