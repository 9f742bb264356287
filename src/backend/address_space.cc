#include "backend/address_space.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <optional>

#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

struct Mark {
  std::string_view flag;
  std::string_view meaning;
};

// What would be lost or broken with the mapping, or shows that somebody else counts on these pages.
constexpr Mark kMarks[] = {
    {"lo", "is locked (mlock)"},
    {"ht", "is of reserved huge pages"},
    {"dc", "is kept from children (MADV_DONTFORK), as drivers do with memory that they pin"},
    {"wf", "is wiped in children (MADV_WIPEONFORK)"},
    {"dd", "is kept out of core dumps"},
    {"gd", "is a stack"},
    {"pf", "is a device's"},
    {"io", "is a device's"},
    {"um", "is watched by userfaultfd"},
    {"uw", "is watched by userfaultfd"},
    {"ui", "is watched by userfaultfd"},
    {"mt", "is tagged"},
    {"ss", "is a shadow stack"},
    {"sl", "is sealed (mseal)"},
};

/// Cuts the next word off.
std::string_view next_word(std::string_view* text) {
  const std::size_t begin = std::min(text->find_first_not_of(" \t"), text->size());
  const std::size_t end = std::min(text->find_first_of(" \t", begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "7f00-8f00 rw-p 00000000 00:01 1234   /path": the line that begins an area.
std::optional<MappedArea> parse_head(std::string_view line) {
  const std::string_view addresses = next_word(&line);
  const std::size_t dash = addresses.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = number(addresses.substr(0, dash), 16);
  const auto end = number(addresses.substr(dash + 1), 16);
  MappedArea area;
  area.access = next_word(&line);
  const auto offset = number(next_word(&line), 16);
  next_word(&line);  // The device.
  const auto inode = number(next_word(&line), 10);
  if (!begin || !end || !offset || !inode) return std::nullopt;
  area.range = {*begin, *end};
  area.offset = *offset;
  area.inode = *inode;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  area.name = line;
  return area;
}

void cut(MappedArea& area, AddressRange to) {
  const std::uintptr_t begin = std::max(area.range.begin, to.begin);
  area.offset += begin - area.range.begin;
  area.range = {begin, std::min(area.range.end, to.end)};
}

/// Takes such a file line by line.
class AreaReader {
 public:
  explicit AreaReader(AddressRange wanted) : wanted_(wanted) {}

  /// False: all that follows lies beyond the range.
  bool take(std::string_view line) {
    if (auto area = parse_head(line)) {
      is_inside_ = area->range.begin < wanted_.end && area->range.end > wanted_.begin;
      if (area->range.begin >= wanted_.end) return false;
      if (is_inside_) areas_.push_back(*std::move(area));
      return true;
    }
    constexpr std::string_view kFlags = "VmFlags:";
    if (is_inside_ && line.starts_with(kFlags)) areas_.back().flags = line.substr(kFlags.size());
    return true;
  }

  /// Cut to the range.
  std::vector<MappedArea> areas() && {
    for (MappedArea& area : areas_) cut(area, wanted_);
    return std::move(areas_);
  }

 private:
  const AddressRange wanted_;
  bool is_inside_ = false;
  std::vector<MappedArea> areas_;
};

/// Gives `reader` all whole lines of `text`; returns what is left behind the last, or nothing when it had enough.
std::optional<std::string_view> take_lines(AreaReader& reader, std::string_view text) {
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    if (!reader.take(text.substr(0, end))) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return text;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  while (!flags.empty()) {
    if (next_word(&flags) == flag) return true;
  }
  return false;
}

/// Why this area cannot be moved; empty when it can.
std::string_view obstacle(const MappedArea& area) {
  if (area.access.size() < 4 || area.access[3] != 'p') return "is shared";
  if (area.inode != 0) return "is mapped from a file";
  if (area.access[0] != 'r' || area.access[1] != 'w') return "cannot be read and written";
  if (area.access[2] == 'x') return "can be executed";
  const bool is_plain = area.name.empty() || area.name == "[heap]" || area.name.starts_with("[anon");
  if (!is_plain) return "belongs to the system";
  for (const Mark& mark : kMarks) {
    if (has_flag(area.flags, mark.flag)) return mark.meaning;
  }
  return {};
}

constexpr std::size_t kDetails = 2;
std::array<std::atomic<std::uint64_t>, kDetails> reads_so_far{};

Result<std::vector<MappedArea>> read_areas(AddressRange range, AreaDetail detail) {
  const char* const path = detail == AreaDetail::kFlags ? "/proc/self/smaps" : "/proc/self/maps";
  reads_so_far[static_cast<std::size_t>(detail)].fetch_add(1, std::memory_order_relaxed);
  const base::Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return base::errno_status(Code::kUnsupported, base::format("opening {}", path), errno);
  AreaReader reader(range);
  std::string pending;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::errno_status(Code::kUnsupported, base::format("reading {}", path), errno);
    if (got == 0) break;
    pending.append(buffer.data(), static_cast<std::size_t>(got));
    const auto rest = take_lines(reader, pending);
    if (!rest) break;
    pending.erase(0, pending.size() - rest->size());
  }
  return std::move(reader).areas();
}

/// What an AreaSurvey keeps.
struct Survey {
  int depth = 0;
  bool is_made = false;
  std::vector<MappedArea> areas;  ///< Of the whole process.

  Result<std::vector<MappedArea>> in(AddressRange range, AreaDetail detail) {
    if (!is_made) {
      HAWSER_TRY_ASSIGN(areas, read_areas({0, UINTPTR_MAX}, detail));
      is_made = true;
    }
    std::vector<MappedArea> found;
    auto at =
        std::ranges::partition_point(areas, [&](const MappedArea& area) { return area.range.end <= range.begin; });
    for (; at != areas.end() && at->range.begin < range.end; ++at) {
      found.push_back(*at);
      cut(found.back(), range);
    }
    return found;
  }
};

Survey& survey_of(AreaDetail detail) {
  static thread_local std::array<Survey, kDetails> surveys;
  return surveys[static_cast<std::size_t>(detail)];
}

}  // namespace

AreaSurvey::AreaSurvey(AreaDetail detail) : detail_(detail) { ++survey_of(detail).depth; }
AreaSurvey::~AreaSurvey() {
  Survey& survey = survey_of(detail_);
  if (--survey.depth == 0) survey = {};
}
std::uint64_t AreaSurvey::reads(AreaDetail detail) {
  return reads_so_far[static_cast<std::size_t>(detail)].load(std::memory_order_relaxed);
}

std::vector<MappedArea> parse_areas(std::string_view text, AddressRange range) {
  AreaReader reader(range);
  take_lines(reader, text);
  return std::move(reader).areas();
}

Result<std::vector<MappedArea>> mapped_areas(AddressRange range, AreaDetail detail) {
  Survey& survey = survey_of(detail);
  return survey.depth > 0 ? survey.in(range, detail) : read_areas(range, detail);
}

Status check_movable(const std::vector<MappedArea>& areas, AddressRange range) {
  std::uintptr_t at = range.begin;
  for (const MappedArea& area : areas) {
    if (area.range.begin != at) break;
    if (const std::string_view why = obstacle(area); !why.empty()) {
      return Status(Code::kUnsupported,
                    base::format("the memory at {:#x} {}{}{}", at, why, area.name.empty() ? "" : ": ", area.name));
    }
    at = area.range.end;
  }
  if (at == range.end) return {};
  return Status(Code::kInvalid, base::format("nothing is mapped at {:#x}", at));
}

std::uint64_t pinned_bytes() {
  const base::Fd fd(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  const ssize_t got = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  const std::string_view text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  constexpr std::string_view kPinned = "\nVmPin:";
  const std::size_t found = text.find(kPinned);
  if (found == text.npos) return 0;
  std::string_view line = text.substr(found + kPinned.size());
  return number(next_word(&line), 10).value_or(0) * 1024;
}

}  // namespace hawser::backend
