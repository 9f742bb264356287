#pragma once

// TestFolder: an empty folder of its own for a test, which goes with all that is in it. For code of tests alone; it
// includes and links nothing of Hawser.
//
// Thread rule: a value. Throws when it cannot be made, for then there is nothing to test.

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace hawser::base {

class TestFolder {
 public:
  /// In the system's folder for temporary files, or where `prefix` says, if that is an absolute path.
  explicit TestFolder(const std::string& prefix = "hawser-test")
      : path_((std::filesystem::temp_directory_path() / (prefix + "-XXXXXX")).string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "making the folder " + path_);
    }
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  /// A path in it.
  std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace hawser::base
