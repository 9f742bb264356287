#pragma once

// The checks of `hawser doctor`: each looks at one thing, tries it where it can, says what was found, why it matters
// and what to type. By subject, one file each.

#include <string>
#include <vector>

namespace hawser::cli {

enum class Verdict { kOk, kWarn, kFail };

struct Finding {
  std::string name;  ///< Stable: "memory.memlock".
  Verdict verdict = Verdict::kOk;
  std::string found;
  std::string why;     ///< Why Hawser needs it.
  std::string remedy;  ///< A command, or empty when there is nothing to mend.
};

using Findings = std::vector<Finding>;

void check_memory(Findings& findings);
void check_kernel(Findings& findings);
void check_machine(Findings& findings);
void check_network(Findings& findings);
void check_rdma(Findings& findings);
void check_devices(Findings& findings);
/// Reads the configuration in force and opens each backend with it.
void check_configuration(const std::string& file, Findings& findings);

std::string to_string(Verdict verdict);

}  // namespace hawser::cli
