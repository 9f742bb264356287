#include "base/file_limit.h"

#include <sys/resource.h>

#include "base/format.h"

namespace hawser::base {
namespace {

rlim_t limit_now() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

bool is_within_file_limit(std::uint64_t end) {
  const rlim_t limit = limit_now();
  return limit == RLIM_INFINITY || end <= limit;
}

Status check_file_limit(std::string_view what, std::uint64_t end) {
  const rlim_t limit = limit_now();
  if (limit == RLIM_INFINITY || end <= limit) return {};
  return Status(Code::kBusy,
                base::format("{}: {} bytes are more than this process's limit for a file, RLIMIT_FSIZE = {}", what, end,
                             limit))
      .with_advice("raise the limit of the process that owns the file (`ulimit -f`)");
}

}  // namespace hawser::base
