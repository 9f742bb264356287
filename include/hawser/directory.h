#pragma once

// A directory keeps small values under keys: cards first. In-process, a folder of files, TCP peer to peer, etcd later.
//
// A directory is driven, not called back: requests return a ticket, answers come out of `poll`. What may block runs in
// `run_job`, on a worker of the driver or on whoever waits, never in a lane's turn.
//
// Thread rule: thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

using Ticket = std::uint64_t;

struct PutOptions {
  Duration lease = Duration::zero();             ///< Zero: stays until erased.
  bool create_only = false;                      ///< kBusy when the key is there already.
  std::optional<std::uint64_t> if_version;       ///< kBusy when the version differs.
};

struct DirectoryEntry {
  std::string key;
  std::string value;
  std::uint64_t version = 0;
};

struct DirectoryEvent {
  enum class Kind : std::uint8_t { kAnswer = 1, kChanged = 2, kErased = 3 };
  Kind kind = Kind::kAnswer;
  Ticket ticket = 0;  ///< Which request or watch this belongs to.
  Status status;
  std::vector<DirectoryEntry> entries;  ///< get: one; list: all; put: the new version; watch: what changed.
};

class HAWSER_API Directory {
 public:
  virtual ~Directory() = default;
  virtual std::string_view kind() const = 0;
  virtual Ticket put(std::string_view key, std::string_view value, const PutOptions& options) = 0;
  virtual Ticket erase(std::string_view key) = 0;
  virtual Ticket get(std::string_view key) = 0;  ///< Answer kNotFound when the key is not there.
  virtual Ticket list(std::string_view prefix) = 0;
  virtual Ticket watch(std::string_view prefix) = 0;  ///< First answers with what is there, then with each change.
  virtual void cancel(Ticket ticket) = 0;
  /// Does one bounded piece of waiting work (a file, a lookup), never longer than `deadline`. True: there was some.
  virtual bool run_job(Instant now, Instant deadline) = 0;
  /// The next answer or change for `ticket`, if there is one.
  virtual std::optional<DirectoryEvent> poll(Ticket ticket) = 0;
};

/// One per process and name: agents of this process find each other.
HAWSER_API std::shared_ptr<Directory> inproc_directory(std::string_view name = "default");
/// A folder shared by processes of one host or of a shared file system; values are replaced atomically.
HAWSER_API Result<std::shared_ptr<Directory>> file_directory(std::string_view path);

HAWSER_NAMESPACE_END
