// A directory in a folder, shared by processes. Puts and erases run under the folder's lock; lists and watches are
// answered from a picture of the folder in memory.

#include "directory/file_directory.h"

#include <chrono>
#include <map>

#include "base/format.h"
#include "base/mutex.h"
#include "directory/desk.h"
#include "directory/folder.h"
#include "directory/picture.h"

namespace hawser::directory {
namespace {

/// Looks that see an unchanged marker before the folder is scanned all the same, in case somebody changed it by hand.
constexpr int kQuietLooksMax = 20;
constexpr Duration kLockPatience = std::chrono::seconds(2);  ///< Then a put answers kBusy.
constexpr std::size_t kWarningsMax = 64;
const std::string kWholeFolder = ".";  ///< In place of a file's name.

std::uint64_t system_wall_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

using Entries = std::vector<DirectoryEntry>;
using MaybeRecord = std::optional<FileRecord>;

class FileDirectory final : public Directory {
 public:
  FileDirectory(FileOptions options, Folder folder)
      : options_(std::move(options)),
        folder_(std::move(folder)),
        picture_(folder_, store_, [this](const std::string& name, std::string_view why) { warn(name, why); }) {}

  std::string_view kind() const override { return "file"; }
  Ticket put(std::string_view key, std::string_view value, const PutOptions& options) override {
    return desk_.submit(
        {.kind = Request::Kind::kPut, .key = std::string(key), .value = std::string(value), .options = options});
  }
  Ticket erase(std::string_view key, const EraseOptions& options) override {
    return desk_.submit({.kind = Request::Kind::kErase, .key = std::string(key), .erasing = options});
  }
  Ticket get(std::string_view key) override { return submit(Request::Kind::kGet, key); }
  Ticket list(std::string_view prefix) override { return submit(Request::Kind::kList, prefix); }
  Ticket watch(std::string_view prefix) override { return submit(Request::Kind::kWatch, prefix); }
  void cancel(Ticket ticket) override { desk_.cancel(ticket); }
  std::optional<DirectoryEvent> poll(Ticket ticket) override { return desk_.poll(ticket, store_); }
  std::vector<std::string> warnings() const override;
  bool run_job(Instant now, Instant deadline) override;

 private:
  Ticket submit(Request::Kind kind, std::string_view key) {
    return desk_.submit({.kind = kind, .key = std::string(key)});
  }
  std::uint64_t wall_ns() const { return options_.wall_ns ? options_.wall_ns() : system_wall_ns(); }
  void warn(const std::string& name, std::string_view why);

  bool run_locked(Instant now) HAWSER_REQUIRES(job_mutex_);
  void run_listings(Request first) HAWSER_REQUIRES(job_mutex_);
  void step_scan() HAWSER_REQUIRES(job_mutex_);
  bool look(Instant now) HAWSER_REQUIRES(job_mutex_);
  Status follow_folder() HAWSER_REQUIRES(job_mutex_);
  bool run_change(Request request, Instant now) HAWSER_REQUIRES(job_mutex_);
  void run_get(const Request& request);
  Status put_locked(FolderLock& lock, const Request& request, Entries& entries);
  Status erase_locked(FolderLock& lock, const Request& request, Entries& entries);
  Result<MaybeRecord> read(const std::string& key);
  bool is_there(const MaybeRecord& record) const {
    return record && (record->expiry_ns == 0 || record->expiry_ns > wall_ns());
  }

  const FileOptions options_;
  Folder folder_;
  Desk desk_;
  SharedStore store_;
  base::Mutex job_mutex_;  ///< One job at a time; held through system calls, so it is only ever tried.
  Picture picture_ HAWSER_GUARDED_BY(job_mutex_);
  std::vector<Request> listings_ HAWSER_GUARDED_BY(job_mutex_);  ///< Answered when the scan ends.
  Instant next_look_ HAWSER_GUARDED_BY(job_mutex_) = Instant::min();
  int quiet_looks_ HAWSER_GUARDED_BY(job_mutex_) = 0;
  mutable base::Mutex warnings_mutex_;
  std::map<std::string, std::string> warnings_ HAWSER_GUARDED_BY(warnings_mutex_);  ///< By file name.
};

void FileDirectory::warn(const std::string& name, std::string_view why) {
  base::MutexLock lock(warnings_mutex_);
  if (warnings_.size() >= kWarningsMax && !warnings_.contains(name)) return;
  warnings_[name] = name == kWholeFolder ? base::format("{}: {}", folder_.path(), why)
                                         : base::format("{}/{} is passed over: {}", folder_.path(), name, why);
}

std::vector<std::string> FileDirectory::warnings() const {
  base::MutexLock lock(warnings_mutex_);
  std::vector<std::string> texts;
  for (const auto& [name, text] : warnings_) texts.push_back(text);
  return texts;
}

bool FileDirectory::run_job(Instant now, Instant) {
  // Another thread's job does for both; a job is a few file operations, so the deadline needs no clock here.
  if (!job_mutex_.try_lock()) return false;
  const bool worked = run_locked(now);
  job_mutex_.unlock();
  return worked;
}

bool FileDirectory::run_locked(Instant now) {
  {
    base::MutexLock lock(store_.mutex);
    store_.store.expire(Instant::from_ns(static_cast<std::int64_t>(wall_ns())));
  }
  if (picture_.scanning()) {
    step_scan();
    return true;
  }
  std::optional<Request> request = desk_.take();
  if (!request) return look(now);
  if (const Status lost = follow_folder(); !lost.ok()) {
    desk_.answer(*request, lost);
    return true;
  }
  if (request->lists()) {
    run_listings(*std::move(request));
  } else if (request->kind == Request::Kind::kGet) {
    run_get(*request);
  } else {
    return run_change(*std::move(request), now);
  }
  return true;
}

Status FileDirectory::follow_folder() {
  const Result<bool> is_another = folder_.follow_path();
  if (!is_another) {
    warn(kWholeFolder, is_another.error().message());
    return is_another.error();
  }
  if (*is_another) {
    warn(kWholeFolder, "the folder was deleted or replaced; agents put their cards again, other values are lost");
  }
  return {};
}

void FileDirectory::run_listings(Request first) {
  listings_.push_back(std::move(first));
  while (std::optional<Request> next = desk_.take_listing()) listings_.push_back(*std::move(next));
  const Status begun = picture_.begin_scan();
  if (begun.ok()) return;
  for (const Request& request : listings_) desk_.answer(request, begun);
  listings_.clear();
}

void FileDirectory::step_scan() {
  if (picture_.step(wall_ns())) return;
  for (const Request& request : listings_) desk_.answer_listing(request, store_);
  listings_.clear();
}

bool FileDirectory::look(Instant now) {
  if (now < next_look_ || !desk_.has_watches()) return false;
  next_look_ = now + options_.poll_interval;
  if (!follow_folder().ok()) return false;
  const std::uint64_t marker = folder_.marker();
  const bool quiet = marker % 2 == 0 && marker == picture_.marker();
  quiet_looks_ = quiet ? quiet_looks_ + 1 : 0;
  if (quiet && quiet_looks_ < kQuietLooksMax) return false;
  quiet_looks_ = 0;
  const Status begun = picture_.begin_scan();
  if (!begun.ok()) warn(kWholeFolder, begun.message());
  return begun.ok();
}

Result<MaybeRecord> FileDirectory::read(const std::string& key) {
  const std::string name = file_name(key);
  Result<MaybeRecord> read = folder_.read(name);
  if (!read && read.status().code() == Code::kCorrupt) warn(name, read.status().message());
  if (!read || !*read || (*read)->key == key) return read;
  return Status(Code::kCorrupt,
                base::format("directory: {}/{} holds key \"{}\", not \"{}\"", folder_.path(), name, (*read)->key, key));
}

void FileDirectory::run_get(const Request& request) {
  const Result<MaybeRecord> found = read(request.key);
  if (!found) {
    const Status cause = found.status();
    return desk_.answer(request, Status(cause.code(), base::format("directory: cannot read \"{}\"", request.key))
                                     .because(cause)
                                     .with_advice("put the value again"));
  }
  if (!is_there(*found)) {
    return desk_.answer(
        request, Status(Code::kNotFound, base::format("directory: no key \"{}\" in {}", request.key, folder_.path())));
  }
  desk_.answer(request, {}, {{request.key, (*found)->value, (*found)->version}});
}

bool FileDirectory::run_change(Request request, Instant now) {
  Result<std::optional<FolderLock>> lock = folder_.try_lock();
  if (lock && !*lock) {
    if (!request.first_tried) request.first_tried = now;
    if (now - *request.first_tried < kLockPatience) {
      desk_.put_back(std::move(request));
      return false;  // Nothing to do but to try again later.
    }
    lock = Status(Code::kBusy, base::format("directory: {}/{} is locked by another process", folder_.path(), kLockName))
               .with_advice("find a stopped process with: fuser -v FILE");
  }
  if (!lock) {
    desk_.answer(request, lock.status());
    return true;
  }
  Entries entries;
  Status status = request.kind == Request::Kind::kPut ? put_locked(**lock, request, entries)
                                                      : erase_locked(**lock, request, entries);
  desk_.answer(request, std::move(status), std::move(entries));
  next_look_ = Instant::min();  // Own watches see own changes at the next job.
  return true;
}

Status FileDirectory::put_locked(FolderLock& lock, const Request& request, Entries& entries) {
  const Result<MaybeRecord> found = read(request.key);
  // A file that is no value is replaced: whoever puts a value mends the folder.
  if (!found && found.status().code() != Code::kCorrupt) return found.status();
  const MaybeRecord old = found ? *found : MaybeRecord();
  Status refused = check_put(request.key, request.options, is_there(old) ? old->version : 0);
  if (!refused.ok()) return refused;
  Result<std::uint64_t> version = lock.begin_change(old ? old->version : 0);
  if (!version) return version.status();
  const auto lease_ns = static_cast<std::uint64_t>(request.options.lease.count());
  const FileRecord record{request.key, request.value, *version, lease_ns == 0 ? 0 : wall_ns() + lease_ns};
  const bool only_new = request.options.create_only && found && !old;
  Status written = folder_.write(lock, file_name(request.key), encode_record(record), only_new);
  if (written.ok()) entries.push_back({request.key, {}, *version});
  return written;
}

Status FileDirectory::erase_locked(FolderLock& lock, const Request& request, Entries& entries) {
  const Result<MaybeRecord> found = read(request.key);
  if (!found && found.status().code() != Code::kCorrupt) return found.status();
  if (found && !*found) return {};
  // One that has expired is not there, and a file that is no value has no version: both are only swept.
  if (found && is_there(**found)) {
    Status refused = check_erase(request.key, request.erasing, (*found)->version);
    if (!refused.ok()) return refused;
  }
  Result<std::uint64_t> version = lock.begin_change(found ? (*found)->version : 0);
  if (!version) return version.status();
  Status removed = folder_.remove(lock, file_name(request.key));
  if (removed.ok() && found && is_there(*found)) entries.push_back({request.key, {}, 0});
  return removed;
}

}  // namespace

Result<std::shared_ptr<Directory>> open_file_directory(FileOptions options) {
  Result<Folder> folder = Folder::open(options.path, options.sync);
  if (!folder) return folder.status();
  return std::shared_ptr<Directory>(std::make_shared<FileDirectory>(std::move(options), *std::move(folder)));
}

}  // namespace hawser::directory

HAWSER_NAMESPACE_BEGIN

Result<std::shared_ptr<Directory>> file_directory(std::string_view path) {
  return directory::open_file_directory({.path = std::string(path)});
}

HAWSER_NAMESPACE_END
