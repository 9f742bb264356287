#include "compat/file_descs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/format.h"
#include "base/try.h"
#include "compat/refusal.h"
#include "fileio/file.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::uint64_t kFarthest = std::numeric_limits<std::int64_t>::max();  ///< As far as an off_t reaches.
/// All that NIXL knows, and "wo". Others make no path, so what lacks here would send bytes to the descriptor `dev`.
constexpr std::array<std::string_view, 7> kWords = {"ro", "wo", "rw", "create", "direct", "sync", "noatime"};

/// What stands before the colon of "rw,create:/path"; empty when it is not made of these words.
std::string_view words_in(std::string_view meta) {
  const std::size_t colon = meta.find(':');
  if (colon == std::string_view::npos) return {};
  std::string_view rest = meta.substr(0, colon);
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) return {};
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return meta.substr(0, colon);
}

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    if (word == wanted) return true;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return false;
}

/// Those that the descriptor was opened with; both where it cannot be asked, so that add_file says what is wrong.
Rights rights_of(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDWR) return Rights::kReadWrite;
  return (flags & O_ACCMODE) == O_RDONLY ? Rights::kRead : Rights::kWrite;
}

std::optional<FileId> id_from(int answer, const struct stat& is) {
  if (answer != 0) return std::nullopt;
  return FileId{.device = static_cast<std::uint64_t>(is.st_dev), .inode = static_cast<std::uint64_t>(is.st_ino)};
}

}  // namespace

FileId id_of(const fileio::File& file) {
  struct stat is {};
  const int descriptor = file.has_buffered() ? file.buffered() : file.direct();
  return id_from(::fstat(descriptor, &is), is).value_or(FileId());
}

std::optional<FileId> named_file(const RegDesc& desc) {
  struct stat is {};
  if (is_path_mode(desc.meta)) return id_from(::stat(std::string(path_in(desc.meta)).c_str(), &is), is);
  if (desc.dev > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return std::nullopt;
  return id_from(::fstat(static_cast<int>(desc.dev), &is), is);
}

bool is_path_mode(std::string_view meta) { return !words_in(meta).empty(); }

bool is_synced(std::string_view meta) { return has_word(words_in(meta), "sync"); }

std::string_view path_in(std::string_view meta) {
  const std::string_view words = words_in(meta);
  return words.empty() ? meta : meta.substr(words.size() + 1);
}

Desc file_range(const Desc& desc) {
  const bool is_unbounded = desc.len == 0 && desc.addr <= kFarthest;
  return {.addr = desc.addr, .len = is_unbounded ? kFarthest - desc.addr : desc.len, .dev = desc.dev};
}

Result<FileOptions> file_options(std::string_view call, const RegDesc& desc) {
  const Desc range = file_range(desc);
  if (range.addr > kFarthest || range.len > kFarthest - range.addr) {
    return refusal(NixlCode::kInvalidParam, call,
                   base::format("{} bytes from offset {} on reach further than a file can", desc.len, desc.addr));
  }
  FileOptions options{.size = range.addr + range.len};
  if (is_path_mode(desc.meta)) {
    const std::string_view words = words_in(desc.meta);
    options.path = path_in(desc.meta);
    options.create = has_word(words, "create");
    options.rights = has_word(words, "ro")   ? Rights::kRead
                     : has_word(words, "wo") ? Rights::kWrite
                                             : Rights::kReadWrite;
    options.direct = has_word(words, "direct") ? DirectIo::kRequire : DirectIo::kOff;
    return options;
  }
  if (desc.dev > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    return refusal(NixlCode::kInvalidParam, call, base::format("{} is no open file's descriptor", desc.dev));
  }
  options.descriptor = static_cast<int>(desc.dev);
  options.rights = rights_of(options.descriptor);
  return options;
}

Result<std::optional<Params>> query_file_desc(const RegDesc& desc) {
  const std::string_view path = path_in(desc.meta);
  HAWSER_TRY_ASSIGN(const FileInfo info, path.empty() ? query_file(static_cast<int>(desc.dev)) : query_file(path));
  if (!info.exists) return std::optional<Params>();
  constexpr std::int64_t kSecond = 1'000'000'000;
  return std::optional<Params>({{"size", std::to_string(info.size)},
                                {"mode", std::to_string(info.mode)},
                                {"mtime", std::to_string(info.mtime_ns / kSecond)}});
}

}  // namespace compat
HAWSER_NAMESPACE_END
