#include "base/large_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace hawser::base {

void prefer_huge_pages(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr || bytes < kLargeFrom) return;
  // Only where all of a page is this memory's: neighbours keep theirs.
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace hawser::base
