#include "cli/bench/report_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "base/file_kind.h"
#include "base/try.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uintmax_t kResultsMax = 64u << 20;  // bytes; those of all rows have less than one percent of it

Status no_results(const std::string& path, std::string_view why) {
  return Status(Code::kInvalid, fmt::format("'{}' holds no results of the bench: {}", path, why))
      .with_advice("hawser bench --json > FILE makes them");
}

Status not_written(const std::string& path, int error) {
  return base::errno_status(Code::kFailed, fmt::format("writing the report '{}'", path), error);
}

// Inside of a <script> element nothing may look like the end of one.
std::string script_text(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    c == '<' ? text += "\\u003c" : text += c;
  }
  return text;
}

bool is_results(const Json& json) {
  if (!json.is_object() || json.value("schema", Json()) != document("bench")["schema"]) return false;
  const auto rows = json.find("rows");
  return rows != json.end() && rows->is_array();
}

}  // namespace

std::string report_page(const Json& results) {
  std::string page = kReportTemplate;
  const std::string_view mark = kResultsMark;
  return page.replace(page.find(mark), mark.size(), script_text(results));
}

Result<Json> read_results(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    const Code code = error == std::errc::no_such_file_or_directory ? Code::kNotFound : Code::kFailed;
    return base::errno_status(code, fmt::format("reading '{}'", path), error.value());
  }
  if (size > kResultsMax) return no_results(path, fmt::format("it has {} bytes", size));
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Status(Code::kFailed, fmt::format("'{}' cannot be read", path));
  Json json = Json::parse(text.str(), nullptr, false);
  if (json.is_discarded()) return no_results(path, "it is not JSON");
  if (!is_results(json)) return no_results(path, "its schema is not that of the bench");
  return json;
}

Status write_page(const std::string& path, const Json& results) {
  HAWSER_TRY(base::check_file_place(AT_FDCWD, path, path));
  const std::string part = fmt::format("{}.part.{}", path, ::getpid());
  std::FILE* file = std::fopen(part.c_str(), "wxe");
  if (file == nullptr) return not_written(path, errno);
  const std::string page = report_page(results);
  bool is_good = std::fwrite(page.data(), 1, page.size(), file) == page.size();
  is_good = (std::fclose(file) == 0) && is_good;
  if (is_good && std::rename(part.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  (void)std::remove(part.c_str());
  return not_written(path, error);
}

}  // namespace hawser::cli::bench
