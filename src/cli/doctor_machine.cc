// Checks of the machine around the process: processors, clock, descriptors, containers. See doctor_checks.h.

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <hawser/time.h>

#include "base/control_group.h"
#include "cli/doctor_checks.h"
#include "cli/system_limits.h"

namespace hawser::cli {
namespace {

constexpr std::uint64_t kDescriptorsMin = 4096;
constexpr double kClockSlowNs = 200;

Finding processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const auto quota = base::group_processors();
  const double effective = quota ? std::min(*quota, static_cast<double>(usable)) : usable;
  return {"machine.cpus", effective >= 2 ? Verdict::kOk : Verdict::kWarn,
          quota ? fmt::format("{} usable, and a control group limit of {:.1f}", usable, *quota)
                : fmt::format("{} usable, no control group limit", usable),
          "lanes spin for some microseconds before they sleep; below two cores that takes time from the peer",
          effective >= 2 ? "" : "raise the container's CPU limit (--cpus=2)"};
}

double clock_cost_ns() {
  constexpr int kReads = 20000;
  const Clock& clock = Clock::steady();
  const Instant start = clock.now();
  for (int i = 0; i < kReads; ++i) (void)clock.now();
  return static_cast<double>((clock.now() - start).count()) / kReads;
}

Finding clock_source() {
  const auto source = read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const double cost = clock_cost_ns();
  const bool slow = cost > kClockSlowNs;
  return {"machine.clock", slow ? Verdict::kWarn : Verdict::kOk,
          fmt::format("{}, {:.0f} ns a reading", source.value_or("unknown"), cost),
          "every turn of a lane reads the clock once",
          slow ? "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource" : ""};
}

Finding descriptors() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const bool good = limit.rlim_cur >= kDescriptorsMin;
  return {"machine.nofile", good ? Verdict::kOk : Verdict::kWarn, std::to_string(limit.rlim_cur),
          "a peer takes a few descriptors: sockets, mapped arenas, its process", good ? "" : "ulimit -n 65536"};
}

Finding container() {
  std::string kind;
  if (access("/.dockerenv", F_OK) == 0) kind = "docker";
  if (access("/run/.containerenv", F_OK) == 0) kind = "podman";
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) kind = "kubernetes";
  if (kind.empty()) return {"machine.container", Verdict::kOk, "no sign of one", "", ""};
  return {"machine.container", Verdict::kOk, kind,
          "two containers of one host share memory only if they share the folder of Hawser's sockets, and copy in "
          "foreign memory only in one pid namespace; else tcp is used",
          "--pid=host (or container:NAME) and -v /run/hawser:/run/hawser for shm between containers"};
}

}  // namespace

void check_machine(Findings& findings) {
  findings.push_back(processors());
  findings.push_back(clock_source());
  findings.push_back(descriptors());
  findings.push_back(container());
}

}  // namespace hawser::cli
