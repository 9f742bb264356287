#pragma once

// What NIXL's exporter "prometheus" publishes of an agent, under its names (NIXL 1.6, its telemetry guide): counters of
// bytes, requests, memory and errors, and histograms of transfer and post time. Labels: hostname, agent_name.
//
// Thread rule: thread-safe. Lifetime: a value of its agent.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/config.h>

#include "metrics/exposition.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// What the environment says of the exporter.
struct TelemetryExport {
  std::string listen;                      ///< "0.0.0.0:9090"; empty: nothing is exported.
  std::vector<std::string> enabled;        ///< Globs over base names (agent_tx_bytes); empty: all.
  std::vector<std::uint64_t> bounds_us{};  ///< The buckets of histograms, rising.
};

/// From NIXL_TELEMETRY_EXPORTER and the variables beside it; nothing where telemetry is off or the exporter is none
/// or NOP. Errors: kNotSupported for exporters that are not there (BUFFER, prometheus_mp, doca), kInvalidParam for a
/// wrong port or wrong bounds. Each names its variable.
Result<TelemetryExport> telemetry_export(const ConfigSources::Texts& environment);

class Telemetry {
 public:
  Telemetry(std::string_view agent, TelemetryExport what);

  const std::string& listen() const { return what_.listen; }
  void ended(bool is_write, const XferTelemetry& times);
  void failed(NixlCode code);
  void registered(std::uint64_t bytes);
  void deregistered(std::uint64_t bytes);
  void add_to(metrics::Exposition& to) const;

 private:
  struct Durations {
    std::vector<std::uint64_t> counts;  ///< By bound, then one for what is longer than all.
    std::uint64_t last = 0, sum = 0, count = 0;
    void add(std::uint64_t us, const std::vector<std::uint64_t>& bounds);
  };
  struct Amount {
    std::uint64_t last = 0, sum = 0, count = 0;
    void add(std::uint64_t bytes);
  };
  bool is_enabled(std::string_view base_name) const;
  void add_amount(metrics::Exposition& to, const std::string& name, std::string_view what, const Amount& amount) const;
  void add_durations(metrics::Exposition& to, const std::string& name, std::string_view what,
                     const Durations& durations) const;

  const std::string agent_, host_;
  const TelemetryExport what_;
  mutable std::mutex mutex_;
  Amount sent_, received_, registered_, deregistered_;
  Durations transfer_, post_;
  std::map<NixlCode, std::uint64_t> errors_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
