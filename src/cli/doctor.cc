// hawser doctor: what works on this machine, what does not, why it matters and what to type.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/doctor_checks.h"
#include "cli/json_out.h"
#include "cli/status_exit.h"
#include "cli/table.h"

namespace hawser::cli {
namespace {

constexpr const char* kDoctorExamples =
    "  hawser doctor\n"
    "  hawser doctor --all\n"
    "  hawser doctor --json | jq '.checks[] | select(.verdict != \"ok\")'";

struct DoctorArguments {
  Common common;
  bool all = false;
};

std::size_t count(const Findings& findings, Verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.verdict == verdict; }));
}

void print_text(const Findings& findings, bool all) {
  Table table({{"check"}, {"result"}, {"found"}});
  for (const Finding& f : findings) table.add({f.name, to_string(f.verdict), f.found});
  fmt::print("{}", table.to_string());
  for (const Finding& f : findings) {
    if (f.verdict == Verdict::kOk && !all) continue;
    fmt::print("\n{} ({})\n  found  {}\n  why    {}\n", f.name, to_string(f.verdict), f.found, f.why);
    if (!f.remedy.empty()) fmt::print("  type   {}\n", f.remedy);
  }
  fmt::print("\n{} ok, {} warnings, {} failures\n", count(findings, Verdict::kOk), count(findings, Verdict::kWarn),
             count(findings, Verdict::kFail));
}

void print_json(const Findings& findings) {
  Json json = document("doctor");
  json["ok"] = count(findings, Verdict::kFail) == 0;
  json["counts"] = {{"ok", count(findings, Verdict::kOk)},
                    {"warn", count(findings, Verdict::kWarn)},
                    {"fail", count(findings, Verdict::kFail)}};
  json["checks"] = Json::array();
  for (const Finding& f : findings) {
    json["checks"].push_back({{"name", f.name},
                              {"verdict", to_string(f.verdict)},
                              {"found", f.found},
                              {"why", f.why},
                              {"remedy", f.remedy}});
  }
  print(json);
}

int run_doctor(const DoctorArguments& a) {
  Findings findings;
  check_configuration(a.common.config, findings);
  check_memory(findings);
  check_kernel(findings);
  check_machine(findings);
  check_network(findings);
  check_rdma(findings);
  check_devices(findings);
  if (a.common.json) {
    print_json(findings);
  } else {
    print_text(findings, a.all);
  }
  return count(findings, Verdict::kFail) == 0 ? kExitOk : exit_code(Code::kUnsupported);
}

}  // namespace

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "fail";
}

void add_doctor(Shell& shell) {
  auto a = std::make_shared<DoctorArguments>();
  CLI::App* command = add_command(shell, "doctor", "Tell what works on this machine, what does not, and what to type",
                                  kDoctorExamples, a->common);
  command->add_flag("--all", a->all, "Explain the good findings too");
  on_run(shell, command, [a] { return run_doctor(*a); });
}

}  // namespace hawser::cli
