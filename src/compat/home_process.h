#pragma once

// HomeProcess: the process that opened an agent. A child of it has the agent's memory, and neither its threads nor the
// locks that they held.
//
// Thread rule: any thread. Lifetime: a value.

#include <cstdint>
#include <string_view>

#include <hawser/compat/agent.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

class HomeProcess {
 public:
  /// This process.
  HomeProcess();

  /// Asks the kernel.
  bool is_this() const;
  /// kBackend in a child, naming both processes. Makes no system call.
  Status need(std::string_view call, std::string_view agent) const;

 private:
  int pid_;
  std::uint32_t forks_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
