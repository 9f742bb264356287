#include "compat/telemetry.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "base/address.h"
#include "base/format.h"
#include "base/host_id.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/environment.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::string_view kExporter = "NIXL_TELEMETRY_EXPORTER";
constexpr std::string_view kPort = "NIXL_TELEMETRY_PROMETHEUS_PORT";
constexpr std::string_view kLocal = "NIXL_TELEMETRY_PROMETHEUS_LOCAL";
constexpr std::string_view kMetrics = "NIXL_TELEMETRY_ENABLED_METRICS";
constexpr std::string_view kBuckets = "NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US";
constexpr std::size_t kBoundsMax = 256;

std::string_view trimmed_value_of(const ConfigSources::Texts& environment, std::string_view variable) {
  const auto found = environment.find(variable);
  return found == environment.end() ? std::string_view() : base::trim(found->second);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view word = base::trim(text.substr(0, comma));
    if (!word.empty()) words.emplace_back(word);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return words;
}

/// 10 us to 10 s, at 1, 2.5 and 5 of each power of ten.
std::vector<std::uint64_t> usual_bounds() {
  std::vector<std::uint64_t> bounds;
  for (std::uint64_t power = 10; power <= 1'000'000; power *= 10) {
    bounds.insert(bounds.end(), {power, power * 5 / 2, power * 5});
  }
  bounds.push_back(10'000'000);
  return bounds;
}

Result<std::vector<std::uint64_t>> bounds_of(std::string_view text) {
  if (text.empty()) return usual_bounds();
  std::vector<std::uint64_t> bounds;
  for (const std::string& word : words_of(text)) {
    const std::optional<std::uint64_t> bound = base::parse_count(word);
    if (!bound || *bound == 0 || bounds.size() == kBoundsMax || (!bounds.empty() && *bound <= bounds.back())) {
      return refusal(NixlCode::kInvalidParam, base::format("{}={}", kBuckets, text),
                     "is no list of rising numbers of microseconds")
          .with_advice("write up to 256 whole numbers with commas between them: 10,100,1000");
    }
    bounds.push_back(*bound);
  }
  return bounds;
}

bool is_yes(std::string_view text) {
  const std::string lower = base::to_lower(text);
  return lower == "y" || lower == "yes" || lower == "1" || lower == "true" || lower == "on";
}

std::string host_label() {
  std::string name = base::host_name();
  return name.empty() ? "unknown" : name;
}

/// "NIXL_ERR_BACKEND" is "backend", as NIXL's label `status` has it.
std::string status_of(NixlCode code) {
  constexpr std::string_view kErrors = "NIXL_ERR_";
  const std::string_view name = to_string(code);
  return base::to_lower(name.starts_with(kErrors) ? name.substr(kErrors.size()) : name);
}

constexpr std::array kErrors = {NixlCode::kNotPosted,        NixlCode::kInvalidParam, NixlCode::kBackend,
                                NixlCode::kNotFound,         NixlCode::kMismatch,     NixlCode::kNotAllowed,
                                NixlCode::kRepostActive,     NixlCode::kUnknown,      NixlCode::kNotSupported,
                                NixlCode::kRemoteDisconnect, NixlCode::kCancelled,    NixlCode::kNoTelemetry};

}  // namespace

Result<TelemetryExport> telemetry_export(const ConfigSources::Texts& environment) {
  TelemetryExport what;
  if (!telemetry_wanted(environment, false)) return what;
  const std::string_view exporter = trimmed_value_of(environment, kExporter);
  const std::string name = base::to_lower(exporter);
  if (name.empty() || name == "nop") return what;
  if (name != "prometheus") {
    return refusal(NixlCode::kNotSupported, base::format("{}={}", kExporter, exporter),
                   "there is no such exporter here")
        .with_advice(
            "set it to prometheus, or to NOP; for several processes of a host HAWSER_METRICS=0.0.0.0:9400-9463 gives "
            "each a port of its own");
  }
  const std::string_view port = trimmed_value_of(environment, kPort);
  constexpr std::uint16_t kUsualPort = 9090;
  const Result<std::uint16_t> number = port.empty() ? Result<std::uint16_t>(kUsualPort) : base::parse_port(port);
  if (!number) {
    return refusal(NixlCode::kInvalidParam, base::format("{}={}", kPort, port), "is no port", number.error());
  }
  what.listen = base::format("{}:{}", is_yes(trimmed_value_of(environment, kLocal)) ? "127.0.0.1" : "0.0.0.0", *number);
  what.enabled = words_of(trimmed_value_of(environment, kMetrics));
  HAWSER_TRY_ASSIGN(what.bounds_us, bounds_of(trimmed_value_of(environment, kBuckets)));
  return what;
}

Telemetry::Telemetry(std::string_view agent, TelemetryExport what)
    : agent_(agent), host_(host_label()), what_(std::move(what)) {
  transfer_.counts.resize(what_.bounds_us.size() + 1);
  post_.counts.resize(what_.bounds_us.size() + 1);
}

void Telemetry::Durations::add(std::uint64_t us, const std::vector<std::uint64_t>& bounds) {
  ++counts[static_cast<std::size_t>(std::ranges::lower_bound(bounds, us) - bounds.begin())];
  last = us;
  sum += us;
  ++count;
}

void Telemetry::Amount::add(std::uint64_t bytes) {
  last = bytes;
  sum += bytes;
  ++count;
}

void Telemetry::ended(bool is_write, const XferTelemetry& times) {
  const std::lock_guard lock(mutex_);
  (is_write ? sent_ : received_).add(times.total_bytes);
  transfer_.add(times.xfer_duration_us, what_.bounds_us);
  post_.add(times.post_duration_us, what_.bounds_us);
}

void Telemetry::failed(NixlCode code) {
  const std::lock_guard lock(mutex_);
  ++errors_[code];
}

void Telemetry::registered(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  registered_.add(bytes);
}

void Telemetry::deregistered(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  deregistered_.add(bytes);
}

bool Telemetry::is_enabled(std::string_view base_name) const {
  const std::string name(base_name);
  return what_.enabled.empty() || std::ranges::any_of(what_.enabled, [&](const std::string& glob) {
           return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
         });
}

/// `name` is "agent_tx_bytes": the sum has its name and _total, the last one "last_bytes" in the place of "bytes".
void Telemetry::add_amount(metrics::Exposition& to, const std::string& name, std::string_view what,
                           const Amount& amount) const {
  if (!is_enabled(name)) return;
  const std::initializer_list<metrics::Label> labels = {{"hostname", host_}, {"agent_name", agent_}};
  to.counter(name + "_total", base::format("Bytes {}", what), labels, amount.sum);
  const std::string stem = name.ends_with("_bytes") ? name.substr(0, name.size() - 6) : name;
  to.gauge(stem + "_last_bytes", base::format("Bytes {}, by the last operation", what), labels,
           static_cast<double>(amount.last));
}

void Telemetry::add_durations(metrics::Exposition& to, const std::string& name, std::string_view what,
                              const Durations& durations) const {
  if (!is_enabled(name)) return;
  const std::array<metrics::Label, 2> labels{metrics::Label{"hostname", host_}, metrics::Label{"agent_name", agent_}};
  to.counter(name + "_total", base::format("{} in us, summed up", what), labels, durations.sum);
  to.gauge(name, base::format("{} of the last transfer in us", what), labels, static_cast<double>(durations.last));
  std::vector<metrics::Bucket> buckets;
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < what_.bounds_us.size(); ++i) {
    so_far += durations.counts[i];
    buckets.push_back({.bound = static_cast<double>(what_.bounds_us[i]), .count = so_far});
  }
  to.histogram(name + "_us", base::format("{} in us", what), labels, buckets, durations.count,
               static_cast<double>(durations.sum));
}

void Telemetry::add_to(metrics::Exposition& to) const {
  const std::lock_guard lock(mutex_);
  const std::initializer_list<metrics::Label> labels = {{"hostname", host_}, {"agent_name", agent_}};
  add_amount(to, "agent_tx_bytes", "written to other agents", sent_);
  add_amount(to, "agent_rx_bytes", "read from other agents", received_);
  add_amount(to, "agent_memory_registered", "of memory that was registered", registered_);
  add_amount(to, "agent_memory_deregistered", "of memory that was deregistered", deregistered_);
  for (const auto& [name, amount] :
       {std::pair("agent_tx_requests_num", &sent_), {"agent_rx_requests_num", &received_}}) {
    if (is_enabled(name)) to.counter(std::string(name) + "_total", "Requests that ended well", labels, amount->count);
  }
  add_durations(to, "agent_xfer_time", "Time from post to the end", transfer_);
  add_durations(to, "agent_xfer_post_time", "Time within post", post_);
  if (is_enabled("agent_telemetry_events_dropped")) {
    to.counter("agent_telemetry_events_dropped_total", "Always 0: each event is counted when it happens", labels, 0);
  }
  for (const NixlCode code : kErrors) {
    const std::string status = status_of(code);
    if (!is_enabled("agent_err_" + status)) continue;
    const auto found = errors_.find(code);
    to.counter("agent_errors_total", "Requests that failed, by NIXL's code",
               {{"hostname", host_}, {"agent_name", agent_}, {"status", status}},
               found == errors_.end() ? 0 : found->second);
  }
}

}  // namespace compat
HAWSER_NAMESPACE_END
