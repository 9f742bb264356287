// Checks of RDMA: the library, each device, each port, the limit of pinned memory. See doctor_checks.h.

#include "cli/doctor_rdma.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/system_limits.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

namespace verbs = backend::verbs;

// Below it not even the rings and buffers of a few dozen queue pairs fit beside what a user registers.
constexpr std::uint64_t kMemlockMin = 64ull << 20;
constexpr const char* kSoftRoce =
    "sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev INTERFACE   (Soft-RoCE: RDMA in software{})";
constexpr const char* kContainerRun = "container: --device=/dev/infiniband --ulimit memlock=-1:-1 --network=host";
const char* const kNicWhy = "the NIC moves the bytes by itself; without one, tcp is used between hosts";

Finding library(const RdmaFacts& facts) {
  const verbs::Survey& survey = facts.survey;
  const std::string loads =
      survey.library.empty() ? "libibverbs does not load" : fmt::format("{} loads", survey.library);
  if (survey.devices.empty()) {
    return {"devices.rdma", Verdict::kOk, "no device; " + loads, kNicWhy,
            fmt::format(kSoftRoce, facts.in_container ? "; to be done on the host of this container" : "")};
  }
  std::string names;
  for (const auto& device : survey.devices) names += fmt::format("{}{}", names.empty() ? "" : ", ", device.info.name);
  const bool half = survey.library.empty();
  return {"devices.rdma", half ? Verdict::kWarn : Verdict::kOk, fmt::format("{}; {}", names, loads), kNicWhy,
          half ? "sudo apt-get install libibverbs1 ibverbs-providers" : ""};
}

Finding memlock(const RdmaFacts& facts) {
  const bool none = facts.survey.devices.empty();
  const bool free = !facts.memlock || facts.may_exceed_memlock;
  Finding finding{"memory.memlock", none || free ? Verdict::kOk : Verdict::kWarn, "unlimited",
                  "RDMA pins the memory that it registers; shm and tcp pin nothing", ""};
  if (facts.memlock) {
    finding.found = short_size(*facts.memlock) + (facts.may_exceed_memlock ? ", which CAP_IPC_LOCK lifts" : "") +
                    (*facts.memlock < kMemlockMin && !free && !none ? ": too little for RDMA to work at all" : "") +
                    (none ? ", and no RDMA device" : "");
  }
  if (!free) {
    finding.remedy =
        "ulimit -l unlimited   (for good: '* - memlock unlimited' in /etc/security/limits.conf; a systemd unit: "
        "LimitMEMLOCK=infinity; container: --ulimit memlock=-1:-1)";
  }
  return finding;
}

Finding device_finding(const RdmaFacts& facts, const verbs::SurveyedDevice& device) {
  Finding finding{fmt::format("rdma.{}", device.info.name), Verdict::kOk, "opens",
                  "the backend verbs opens each device that it uses", ""};
  if (device.open.ok()) return finding;
  finding.verdict = Verdict::kWarn;
  finding.found = device.open.message();
  finding.remedy = device.open.advice();
  if (finding.remedy.empty()) finding.remedy = "sudo apt-get install libibverbs1 ibverbs-providers";
  if (!device.has_file && facts.in_container) {
    const bool denied = device.open.code() == Code::kDenied;
    finding.remedy = denied ? fmt::format("{}   ({})", finding.remedy, kContainerRun) : kContainerRun;
  }
  return finding;
}

std::string interface_of(const verbs::PortInfo& port) { return port.netdev.empty() ? "INTERFACE" : port.netdev; }

// Finds faults in the addresses of a port that works otherwise.
void judge_gids(const verbs::PortInfo& port, const std::vector<verbs::GidScore>& table, Finding& finding) {
  if (port.link_layer != verbs::LinkLayer::kEthernet) return;
  const std::string add_address = fmt::format("sudo ip address add A.B.C.D/24 dev {}", interface_of(port));
  if (table.empty() || !table.front().usable) {
    finding.verdict = Verdict::kWarn;
    finding.found += "; no usable GID";
    finding.remedy = add_address;
    return;
  }
  const verbs::Gid& gid = table.front().gid;
  finding.found += fmt::format("; GID {} ({}, {})", gid.index, gid.text(), to_string(gid.type));
  if (gid.type != verbs::GidType::kRoceV2) {
    finding.verdict = Verdict::kWarn;
    finding.found += ": no RoCE v2, so peers of another subnet cannot be reached";
    finding.remedy = "switch RoCE v2 on in the NIC's firmware or driver   (mlx4: options mlx4_core roce_mode=2)";
  } else if (gid.link_local()) {
    finding.verdict = Verdict::kWarn;
    finding.found += ": link-local only, so only peers of this link can be reached";
    finding.remedy = add_address;
  }
}

Finding port_finding(const verbs::SurveyedDevice& device, std::size_t i) {
  const verbs::PortInfo& port = device.info.ports[i];
  Finding finding{fmt::format("rdma.{}:{}", device.info.name, port.number),
                  Verdict::kOk,
                  {},
                  "transfers go through active ports; peers reach a RoCE port by its GID",
                  {}};
  if (device.usable[i].ok()) {
    finding.found = fmt::format("{}, {}, {:g} Gbit/s, MTU {}", to_string(port.state), to_string(port.link_layer),
                                static_cast<double>(port.mbit_per_s) / 1000, port.active_mtu);
    judge_gids(port, device.gids[i], finding);
    return finding;
  }
  // A second port without a cable is nothing to warn of.
  const bool other_works =
      std::any_of(device.usable.begin(), device.usable.end(), [](const Status& status) { return status.ok(); });
  finding.verdict = other_works ? Verdict::kOk : Verdict::kWarn;
  finding.found = device.usable[i].message();
  finding.remedy = device.usable[i].advice();
  return finding;
}

bool has_ipc_lock() {
  constexpr std::uint64_t kIpcLock = 1u << 14;
  std::istringstream lines(read_file("/proc/self/status").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) & kIpcLock) != 0;
  }
  return false;
}

bool in_container() {
  std::error_code error;
  if (std::filesystem::exists("/.dockerenv", error) || std::filesystem::exists("/run/.containerenv", error))
    return true;
  return read_file("/proc/1/environ").value_or("").find("container=") != std::string::npos;
}

}  // namespace

Findings rdma_findings(const RdmaFacts& facts) {
  Findings findings;
  findings.push_back(memlock(facts));
  findings.push_back(library(facts));
  for (const verbs::SurveyedDevice& device : facts.survey.devices) {
    findings.push_back(device_finding(facts, device));
    for (std::size_t i = 0; i < device.info.ports.size(); ++i) findings.push_back(port_finding(device, i));
  }
  return findings;
}

void check_rdma(Findings& findings) {
  RdmaFacts facts;
  facts.survey = verbs::survey_devices();
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur != RLIM_INFINITY) facts.memlock = limit.rlim_cur;
  facts.may_exceed_memlock = has_ipc_lock();
  facts.in_container = in_container();
  for (Finding& finding : rdma_findings(facts)) findings.push_back(std::move(finding));
}

}  // namespace hawser::cli
