#include <hawser/compat/descs.h>

#include "base/format.h"
#include "base/large_memory.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

template <typename List>
std::string text_of(std::string_view what, const List& list) {
  std::string text = base::format("{} of {}, {} entries\n", what, to_string(list.type()), list.size());
  for (const Desc& desc : list) text += base::format("  addr {:#x} len {} dev {}\n", desc.addr, desc.len, desc.dev);
  return text;
}

}  // namespace

void detail::prefer_huge_pages(void* memory, std::size_t bytes) noexcept { base::prefer_huge_pages(memory, bytes); }

std::string_view to_string(MemType type) {
  constexpr std::string_view kTypeNames[] = {"DRAM", "VRAM", "BLOCK", "OBJECT", "FILE"};
  const auto number = static_cast<std::size_t>(type);
  return number < std::size(kTypeNames) ? kTypeNames[number] : "UNKNOWN";
}

Status index_status(std::string_view call, std::uint64_t index, std::uint64_t size) {
  return Status(Code::kInvalid, base::format("{}: index {} is not in a list of {}", call, index, size));
}

std::string to_string(const XferDescList& list) { return text_of("transfer descriptor list", list); }

std::string to_string(const RegDescList& list) { return text_of("registration descriptor list", list); }

XferDescList trim(const RegDescList& list) {
  XferDescList trimmed(list.type());
  trimmed.reserve(list.size());
  for (const RegDesc& desc : list) trimmed.add(static_cast<const Desc&>(desc));
  return trimmed;
}

}  // namespace compat
HAWSER_NAMESPACE_END
