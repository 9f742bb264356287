// Checks of memory: locking, huge pages, memory files, what the control group leaves. See doctor_checks.h.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/control_group.h"
#include "base/fd.h"
#include "cli/doctor_checks.h"
#include "cli/system_limits.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

constexpr std::uint64_t kComfortableMemory = 4ull << 30;
constexpr std::uint64_t kUsualMapCount = 65530;
const char* const kThp = "/sys/kernel/mm/transparent_hugepage/";

Finding thp_anonymous() {
  const auto text = read_file(std::string(kThp) + "enabled");
  const std::string word = text ? chosen_word(*text) : "unknown";
  const bool never = !text || word == "never";
  return {"memory.thp_anon", never ? Verdict::kWarn : Verdict::kOk, fmt::format("transparent huge pages: {}", word),
          "memory that you register yourself is copied up to half again as fast on huge pages",
          never ? fmt::format("echo madvise | sudo tee {}enabled", kThp) : ""};
}

Finding thp_shmem() {
  const auto text = read_file(std::string(kThp) + "shmem_enabled");
  const std::string word = text ? chosen_word(*text) : "unknown";
  const bool never = !text || word == "never" || word == "deny";
  return {"memory.thp_shmem", never ? Verdict::kWarn : Verdict::kOk, fmt::format("for memory files: {}", word),
          "Agent::allocate hands out memory files; with huge pages peers map them 38 times faster and copy faster",
          never ? fmt::format("echo advise | sudo tee {}shmem_enabled", kThp) : ""};
}

Finding hugetlb() {
  const std::uint64_t pages = read_number("/proc/sys/vm/nr_hugepages").value_or(0);
  return {"memory.hugetlb", Verdict::kOk, pages == 0 ? "no reserved pool" : fmt::format("{} pages reserved", pages),
          "AllocateOptions.huge_pages = kRequire takes pages from this pool where transparent ones are off",
          pages == 0 ? "echo 1024 | sudo tee /proc/sys/vm/nr_hugepages   (only if you want a pool)" : ""};
}

Finding memory_files() {
  const char* why = "the shm backend gives its memory to peers as sealed memory files";
  const base::Fd file(memfd_create("hawser-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) {
    return {"memory.memfd", Verdict::kFail, fmt::format("memfd_create: {}", std::strerror(errno)), why,
            "allow the system call memfd_create (container: the default seccomp profile does)"};
  }
  const bool sealed = ftruncate(file.get(), 4096) == 0 &&
                      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
                      ftruncate(file.get(), 0) != 0;
  return {"memory.memfd", sealed ? Verdict::kOk : Verdict::kFail,
          sealed ? "memory files and seals work" : "a memory file could not be sealed", why,
          sealed ? "" : "use Linux 3.17 or newer"};
}

Finding device_shm() {
  for (const Limit& limit : system_limits()) {
    if (limit.name != "dev_shm") continue;
    return {"memory.dev_shm", Verdict::kOk, limit.value,
            "not used by Hawser (memory files need no /dev/shm), but other libraries in the same container may need it",
            limit.number.value_or(0) < (1u << 30) ? "container: --shm-size=1g   (only for those others)" : ""};
  }
  return {};
}

Finding map_count() {
  const auto count = read_number("/proc/sys/vm/max_map_count");
  const bool good = count.value_or(0) >= kUsualMapCount;
  return {"memory.max_map_count", good ? Verdict::kOk : Verdict::kWarn, count ? std::to_string(*count) : "unknown",
          "each arena of each peer on this host is a mapping", good ? "" : "sudo sysctl vm.max_map_count=262144"};
}

Finding control_group() {
  const auto group = base::group_memory();
  const std::uint64_t free = available_memory();
  const bool tight = free != 0 && free < kComfortableMemory;
  return {"memory.available", tight ? Verdict::kWarn : Verdict::kOk,
          fmt::format("{} free{}", short_size(free),
                      group ? fmt::format(" of a control group's {} ({})", short_size(group->limit), group->file)
                            : ", no control group limit"),
          "regions made by `allocate` are paid for at once, and memory files count against the control group",
          tight ? "raise the container's memory limit, or run with less: hawser demo --memory 256MiB" : ""};
}

}  // namespace

void check_memory(Findings& findings) {
  findings.push_back(thp_anonymous());
  findings.push_back(thp_shmem());
  findings.push_back(hugetlb());
  findings.push_back(memory_files());
  findings.push_back(device_shm());
  findings.push_back(map_count());
  findings.push_back(control_group());
}

}  // namespace hawser::cli
