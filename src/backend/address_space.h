#pragma once

// What this process has mapped in a range of addresses, as /proc/self tells it, and whether private pages there may be
// replaced by pages of a memory file without anybody noticing.
//
// Thread rule: any thread; what is told may change as soon as it is told.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

namespace hawser::backend {

/// Addresses from `begin` to before `end`.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::size_t size() const { return end - begin; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(begin); }
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

/// One mapping, or the part of it that lies in the range that was asked for.
struct MappedArea {
  AddressRange range;
  std::string access;        ///< "rw-p": readable, writable, executable, private or shared.
  std::uint64_t offset = 0;  ///< In the file, of `range.begin`.
  std::uint64_t inode = 0;   ///< 0: of no file.
  std::string name;          ///< Path or "[heap]"; mostly empty.
  std::string flags;         ///< The kernel's two-letter marks, "rd wr mr"; only where they were asked for.
};

enum class AreaDetail : std::uint8_t {
  kPlain,  ///< /proc/self/maps.
  kFlags,  ///< /proc/self/smaps: costs a walk over the pages of all mappings below the range.
};

/// The mappings in `range`, in order.
Result<std::vector<MappedArea>> mapped_areas(AddressRange range, AreaDetail detail);

/// While one lives, this thread reads such a file once, however many ranges it asks for with that detail: it is told
/// what was there at the first time. For a call that looks at many ranges, which has no order among them anyway.
/// Of one detail only, because a call that moves pages looks with flags before and without them after.
class AreaSurvey {
 public:
  explicit AreaSurvey(AreaDetail detail);
  ~AreaSurvey();
  AreaSurvey(const AreaSurvey&) = delete;
  AreaSurvey& operator=(const AreaSurvey&) = delete;
  /// How often this process read that file. For tests.
  static std::uint64_t reads(AreaDetail detail);

 private:
  const AreaDetail detail_;
};

/// The same from the text of such a file.
std::vector<MappedArea> parse_areas(std::string_view text, AddressRange range);

/// Why the pages of `range`, which must be whole, cannot become pages of a memory file; good when they can.
/// `areas` are those of the range with their flags.
Status check_movable(const std::vector<MappedArea>& areas, AddressRange range);

/// Bytes of this process that the kernel holds pinned for devices and io_uring; it does not tell which.
std::uint64_t pinned_bytes();

}  // namespace hawser::backend
