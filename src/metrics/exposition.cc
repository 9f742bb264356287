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

void Exposition::add_head(std::string& out, std::string_view name, const Family& family) {
  out += base::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(family.help, false), name, family.type);
}

void Exposition::add_sample(std::string& out, const Sample& sample) {
  out += sample.series;
  std::visit([&](auto value) { out += base::format(" {}\n", value); }, sample.value);
}

std::string Exposition::text() const {
  std::string all;
  for (const auto& [name, family] : families_) {
    add_head(all, name, family);
    for (const Sample& sample : family.samples) add_sample(all, sample);
  }
  return all;
}

bool Exposition::drain(std::string& out, std::size_t about) {
  const std::size_t end = out.size() + about;
  while (!families_.empty() && out.size() < end) {
    const auto& [name, family] = *families_.begin();
    if (drained_ == 0) add_head(out, name, family);
    do {  // A head goes with a sample, however long it is: else it would be told again.
      add_sample(out, family.samples[drained_++]);
    } while (drained_ < family.samples.size() && out.size() < end);
    if (drained_ < family.samples.size()) break;
    families_.erase(families_.begin());
    drained_ = 0;
  }
  return !families_.empty();
}

}  // namespace hawser::metrics
