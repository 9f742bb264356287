#pragma once

// PartFile: a file under way, NAME.part until it is complete. It is locked while it is open, so two copies into one
// target never mix; what is published is what was written here, and is on the device before it has its name. Until
// then only its owner may read it.
//
// Thread rule: `fd` and `facts` by any thread, `publish` by one.

#include <memory>
#include <string>

#include <hawser/status.h>

#include "base/fd.h"
#include "cli/files/chunk_io.h"

namespace hawser::cli {

class PartFile {
 public:
  /// NAME.part in `folder`, made if `make` says so. kBusy while another copy has it. File systems that know no locks
  /// keep copies apart by nothing. kInvalid where something else than a file lies at NAME or NAME.part. `path` is for
  /// errors.
  static Result<std::shared_ptr<PartFile>> open(base::Fd folder, std::string name, std::string path, bool make);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  Result<FileFacts> facts() const { return facts_of(fd_.get(), path_); }
  /// Gives it size, mode, time and name; durable when this returns. kFailed when the part was taken away or replaced
  /// meanwhile, or is shorter than that size.
  Status publish(const FileFacts& facts);

 private:
  PartFile(base::Fd folder, std::string name, std::string path)
      : folder_(std::move(folder)), name_(std::move(name)), path_(std::move(path)) {}
  std::string part_name() const;
  Result<bool> try_open(int flags);
  Result<bool> is_in_place() const;

  base::Fd folder_;
  const std::string name_, path_;
  base::Fd fd_;
};

}  // namespace hawser::cli
