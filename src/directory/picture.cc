#include "directory/picture.h"

#include <algorithm>

#include "base/try.h"

namespace hawser::directory {
namespace {

constexpr std::size_t kNamesPerStep = 64;  ///< A step takes about a millisecond.
/// Files removed after one scan; others after the next.
constexpr std::size_t kSweepMax = 64;

bool is_expired(std::uint64_t expiry_ns, std::uint64_t wall_ns) { return expiry_ns != 0 && expiry_ns <= wall_ns; }

Instant to_instant(std::uint64_t expiry_ns) {
  if (expiry_ns == 0) return Instant::max();
  return Instant::from_ns(static_cast<std::int64_t>(std::min<std::uint64_t>(expiry_ns, INT64_MAX)));
}

void remember(std::vector<std::string>& names, const std::string& name) {
  if (names.size() < kSweepMax) names.push_back(name);
}

}  // namespace

Status Picture::begin_scan() {
  // Read first: what changes during the scan makes the marker another one, and so is looked at again.
  marker_ = folder_.marker();
  HAWSER_TRY_ASSIGN(names_, folder_.scan());
  ++scan_;
  stale_.clear();
  expired_.clear();
  return {};
}

bool Picture::step(std::uint64_t wall_ns) {
  for (std::size_t i = 0; i < kNamesPerStep; ++i) {
    const std::optional<std::string> name = names_->next();
    if (!name) {
      end_scan(wall_ns);
      return false;
    }
    examine(*name, wall_ns);
  }
  return true;
}

void Picture::examine(const std::string& name, std::uint64_t wall_ns) {
  if (name.starts_with('.')) {
    if (name.starts_with(kTempPrefix)) remember(stale_, name);
    return;
  }
  const std::optional<FileStamp> stamp = folder_.stamp(name);
  if (!stamp) return;
  Known& known = known_[name];
  const bool is_new = known.scan == 0 || known.stamp != *stamp || !stamp->settled;
  known.scan = scan_;
  if (is_new) {
    known.stamp = *stamp;
    adopt(name, known, folder_.read(name), wall_ns);
  }
  if (is_expired(known.expiry_ns, wall_ns)) remember(expired_, name);
}

void Picture::adopt(const std::string& name, Known& known, Result<std::optional<FileRecord>> read,
                    std::uint64_t wall_ns) {
  std::string before = std::exchange(known.key, {});
  known.expiry_ns = 0;
  std::string_view wrong;
  if (!read) {
    warn_(name, read.status().message());
  } else if (*read && file_name((*read)->key) != name) {
    warn_(name, "not a directory value: its key belongs to another file name");
  } else if (*read) {
    const FileRecord& record = **read;
    known.expiry_ns = record.expiry_ns;
    if (!is_expired(record.expiry_ns, wall_ns)) {
      known.key = record.key;
      base::MutexLock lock(store_.mutex);
      const Store::Record* old = store_.store.find(record.key);
      const bool same = old != nullptr && old->version == record.version && old->value == record.value;
      if (!same && !store_.store.put(record.key, record.value, record.version, to_instant(record.expiry_ns))) {
        wrong = "the folder has too many values";
      }
    }
  }
  if (!wrong.empty()) warn_(name, wrong);
  if (before != known.key) forget(before);
}

void Picture::forget(const std::string& key) {
  if (key.empty()) return;
  base::MutexLock lock(store_.mutex);
  store_.store.erase(key);
}

void Picture::end_scan(std::uint64_t wall_ns) {
  names_.reset();
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second.scan == scan_) {
      ++at;
      continue;
    }
    forget(at->second.key);
    at = known_.erase(at);
  }
  sweep(wall_ns);
}

void Picture::sweep(std::uint64_t wall_ns) {
  if (stale_.empty() && expired_.empty()) return;
  // Without the lock this is left to the next scan, here or in another process.
  Result<std::optional<FolderLock>> lock = folder_.try_lock();
  if (!lock || !*lock) return;
  // Temporary files live only under the lock, so one that was met before we had it has no owner any more.
  for (const std::string& name : stale_) (void)folder_.remove(**lock, name);
  for (const std::string& name : expired_) sweep_expired(**lock, name, wall_ns);
}

void Picture::sweep_expired(FolderLock& lock, const std::string& name, std::uint64_t wall_ns) {
  const Result<std::optional<FileRecord>> read = folder_.read(name);
  // Read again under the lock: its owner may have renewed it meanwhile.
  if (!read || !*read || !is_expired((*read)->expiry_ns, wall_ns)) return;
  if (lock.begin_change((*read)->version)) (void)folder_.remove(lock, name);
}

}  // namespace hawser::directory
