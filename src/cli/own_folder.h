#pragma once

// OwnFolder: a new folder that only this user can look into, and that goes in the end with what is in it.
//
// Thread rule: one thread.

#include <string>

#include <hawser/status.h>

namespace hawser::cli {

class OwnFolder {
 public:
  /// In the folder for temporary files; its name begins with `prefix`.
  static Result<OwnFolder> make(const std::string& prefix);
  OwnFolder(OwnFolder&& other) noexcept;
  OwnFolder& operator=(OwnFolder&&) = delete;
  ~OwnFolder();
  const std::string& path() const { return path_; }

 private:
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace hawser::cli
