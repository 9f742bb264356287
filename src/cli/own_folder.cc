#include "cli/own_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"

namespace hawser::cli {

Result<OwnFolder> OwnFolder::make(const std::string& prefix) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    return Status(Code::kNotFound, "the folder for temporary files: " + error.message())
        .with_advice("set TMPDIR to a folder that exists, or unset it");
  }
  std::string path = (parent / (prefix + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) return base::errno_status("a folder " + path, errno);
  return OwnFolder(std::move(path));
}

OwnFolder::OwnFolder(OwnFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace hawser::cli
