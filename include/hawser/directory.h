#pragma once

// A directory keeps small values under keys: cards first. In-process, a folder of files, or etcd.
//
// A directory is driven, not called back: requests return a ticket, answers come out of `poll`. What may block runs in
// `run_job`, on whoever waits, or on a thread of the directory's own, never in a lane's turn.
//
// Bounds: keys of 1 to 1024 bytes, values up to 1 MiB, 1024 requests not yet answered, 4096 tickets not yet taken or
// cancelled. A request beyond them gets a ticket that answers kBusy, a wrong one a ticket that answers kInvalid.
//
// Thread rule: thread-safe.

#include <cstddef>
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

inline constexpr std::size_t kDirectoryKeyMax = 1024;
inline constexpr std::size_t kDirectoryValueMax = std::size_t{1} << 20;

struct PutOptions {
  Duration lease = Duration::zero();  ///< Zero: stays until erased. Putting again renews it.
  bool create_only = false;           ///< kBusy when the key is there already.
  /// kBusy when the version differs; a key that is not there has version 0.
  std::optional<std::uint64_t> if_version = {};
  /// The value stands for whoever put it: a directory that runs_itself keeps it while this handle lives, puts it again
  /// when it was lost, and takes it away within `EtcdOptions::lease` of this process's death. A directory that does
  /// not keeps it until it is erased. Goes with no `lease`.
  bool tied = false;
};

struct EraseOptions {
  /// kBusy when the key is there in another version. A key that is not there is gone, whatever version was meant.
  std::optional<std::uint64_t> if_version = {};
};

struct DirectoryEntry {
  std::string key = {};
  std::string value = {};
  std::uint64_t version = 0;  ///< Of one key it only grows, also when the key was erased between.
};

struct DirectoryEvent {
  enum class Kind : std::uint8_t { kAnswer = 1, kChanged = 2, kErased = 3 };
  Kind kind = Kind::kAnswer;
  Ticket ticket = 0;  ///< Which request or watch this belongs to.
  Status status = {};
  /// get: the one; list: all, by key; put: key and new version; erase: the key, if it was there; watch: what changed,
  /// or the keys that are gone.
  std::vector<DirectoryEntry> entries = {};
};

class HAWSER_API Directory {
 public:
  virtual ~Directory() = default;
  virtual std::string_view kind() const = 0;
  virtual Ticket put(std::string_view key, std::string_view value, const PutOptions& options) = 0;
  /// Good, too, when the key is not there.
  virtual Ticket erase(std::string_view key, const EraseOptions& options) = 0;
  Ticket erase(std::string_view key) { return erase(key, EraseOptions{}); }
  virtual Ticket get(std::string_view key) = 0;  ///< Answer kNotFound when the key is not there.
  virtual Ticket list(std::string_view prefix) = 0;
  /// First answers with the keys that are there, then with changes, each key's latest state. A caller that polls too
  /// rarely to be told of all keys that went gets a kAnswer with all that is there again.
  virtual Ticket watch(std::string_view prefix) = 0;
  /// Forgets a ticket. A put or erase that was not run yet is not run.
  virtual void cancel(Ticket ticket) = 0;
  /// Does one bounded piece of waiting work (a file, a lookup), never longer than `deadline`. True: there was some.
  virtual bool run_job(Instant now, Instant deadline) = 0;
  /// The next answer or change for `ticket`, if there is one.
  virtual std::optional<DirectoryEvent> poll(Ticket ticket) = 0;
  /// Entries that were broken and passed over (a file that is no value), the latest of each; bounded.
  virtual std::vector<std::string> warnings() const = 0;
  /// Its own threads do the work. Then `run_job` only waits a little for an answer, and nobody needs to call it.
  virtual bool runs_itself() const { return false; }
};

/// Agents of this process find each other by it. Each call gives a handle of its own to the one store of that name,
/// which lives as long as any handle. Leases run on the clock whose time is given to `run_job`.
HAWSER_API std::shared_ptr<Directory> inproc_directory(std::string_view name = "default");
/// A folder shared by processes of one host or of a shared file system; made, for this user only, when it is missing.
/// Values are replaced atomically. Leases run on the wall clock, which its hosts must keep in step. Errors: kDenied or
/// kFailed, with the path and what to do.
HAWSER_API Result<std::shared_ptr<Directory>> file_directory(std::string_view path);

struct EtcdOptions {
  /// Client addresses of the members: "host:port", "http://host:port" or "https://host:port"; at most 16. Without a
  /// scheme it is https when `ca` or `cert` is given. One that fails is passed over for the next.
  std::vector<std::string> endpoints = {"127.0.0.1:2379"};
  std::string prefix = {};    ///< Before every key, such as "team-a/": one for each namespace. At most 512 bytes.
  std::string user = {};      ///< Empty: no login.
  std::string password = {};  ///< The token it gives is renewed when it expires.
  std::string ca = {};        ///< PEM file with the authorities to trust; empty: the system's.
  std::string cert = {};      ///< PEM file that proves who we are; `key` belongs to it.
  std::string key = {};
  /// A folder with an identity (IdentityOptions::folder). Of members that are asked by https it gives `cert` with
  /// `key`, and `ca`, where these are empty. Its files are read for each new connection; when they change, the next
  /// request opens one. Empty: none. load_config sets it to the agent's identity.
  std::string identity = {};
  Duration lease = std::chrono::seconds(15);   ///< Of values that are `tied`; whole seconds, etcd has a minimum.
  Duration timeout = std::chrono::seconds(5);  ///< Of one request, with all its tries; 100 ms to 1 h.
};
/// An etcd of version 3.4 or later, through its JSON gateway. Two threads of its own do the work. Versions are etcd's
/// revisions. It opens whether etcd answers or not. Errors: kInvalid, naming the option; kNotFound when libcurl is not
/// installed.
HAWSER_API Result<std::shared_ptr<Directory>> etcd(EtcdOptions options);

HAWSER_NAMESPACE_END
