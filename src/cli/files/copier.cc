#include "cli/files/copier.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/files/part_file.h"
#include "cli/interrupt.h"

namespace hawser::cli {
namespace {

Status changed(const std::string& path) {
  return Status(Code::kFailed, fmt::format("'{}' changed while it was copied", base::shown(path)))
      .with_advice("run the command again when nobody writes it");
}

Status make_parent(const std::string& local) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(local).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  return error ? base::errno_status(fmt::format("making the folder '{}'", base::shown(parent.string())), error.value())
               : Status();
}

Result<base::Fd> open_file(const std::string& path, int flags) {
  constexpr mode_t kMode = 0666;
  base::Fd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, kMode));
  if (!fd) return base::errno_status(fmt::format("opening '{}'", base::shown(path)), errno);
  return fd;
}

Result<std::shared_ptr<PartFile>> open_part(const std::string& local) {
  HAWSER_TRY(make_parent(local));
  const std::filesystem::path path = local;
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  HAWSER_TRY_ASSIGN(base::Fd folder, open_file(parent, O_RDONLY | O_DIRECTORY));
  return PartFile::open(std::move(folder), path.filename().string(), local, true);
}

}  // namespace

Copier::Copier(Agent& agent, const Peer& peer, Duration timeout, Region window,
               std::function<void(std::uint64_t)> progress)
    : agent_(agent), calls_(agent, peer, timeout), window_(std::move(window)), progress_(std::move(progress)) {}

Result<std::unique_ptr<Copier>> Copier::open(Agent& agent, const Peer& peer, Duration timeout,
                                             std::function<void(std::uint64_t)> progress) {
  HAWSER_TRY_ASSIGN(Region window, agent.allocate({.name = std::string(kFileRegion), .size = kWindow * kFileChunk}));
  std::unique_ptr<Copier> copier(new Copier(agent, peer, timeout, std::move(window), std::move(progress)));
  HAWSER_TRY(copier->hello());
  return copier;
}

Status Copier::hello() {
  HAWSER_TRY_ASSIGN(const std::string card, agent_.card());
  HAWSER_TRY_ASSIGN(const Json welcome, calls_.call({{"op", "hello"}}, card));
  if (welcome.value("chunk", std::uint64_t{0}) >= kFileChunk) return {};
  return Status(Code::kUnsupported, "the server takes smaller chunks than this program sends");
}

Result<Json> Copier::stat(const std::string& path) {
  HAWSER_TRY_ASSIGN(Json facts, calls_.call({{"op", "stat"}, {"path", json_of_path(path)}}));
  if (!facts.value("exists", false))
    return Status(Code::kNotFound, fmt::format("the server has no '{}'", base::shown(path)));
  return facts;
}

Result<std::vector<RemoteFile>> Copier::list(const std::string& path) {
  std::vector<RemoteFile> files;
  for (bool more = true; more;) {
    HAWSER_TRY_ASSIGN(const Json part,
                      calls_.call({{"op", "list"}, {"path", json_of_path(path)}, {"from", files.size()}}));
    const std::size_t before = files.size();
    for (const Json& file : part.value("files", Json::array())) {
      HAWSER_TRY_ASSIGN(std::string name, path_from(file.value("path", Json())));
      files.push_back({.path = std::move(name), .size = file.value("size", std::uint64_t{0})});
    }
    more = part.value("more", false) && files.size() > before;
  }
  return files;
}

Status Copier::for_chunks(std::uint64_t size, const ChunkMover& move) {
  const std::uint64_t count = (size + kFileChunk - 1) / kFileChunk;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  base::Mutex mutex;
  Status first;
  const auto work = [&](std::size_t number) {
    for (std::uint64_t chunk = 0; !failed.load() && (chunk = next.fetch_add(1)) < count;) {
      const std::uint64_t offset = chunk * kFileChunk, bytes = std::min(kFileChunk, size - offset);
      Status status = interrupt_status();
      if (status.ok()) status = move(offset, bytes, number);
      const base::MutexLock lock(mutex);
      if (status.ok()) {
        progress_(in_place_ += bytes);
        continue;
      }
      if (!failed.exchange(true)) first = std::move(status);
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < kWindow && i < count; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others) thread.join();
  return first;
}

Status Copier::fetch(const std::string& remote, const std::string& local) {
  HAWSER_TRY_ASSIGN(const Json found, stat(remote));
  if (!found.value("file", false)) return not_copied(remote, found.value("kind", "no regular file"));
  const FileFacts source{.is_file = true,
                         .size = found.value("size", std::uint64_t{0}),
                         .mode = found.value("mode", 0644u),
                         .mtime_ns = found.value("mtime_ns", std::int64_t{0})};
  HAWSER_TRY_ASSIGN(const std::shared_ptr<PartFile> part, open_part(local));
  HAWSER_TRY_ASSIGN(const FileFacts here, part->facts());
  const Json path = json_of_path(remote);
  const auto is_kept = [&](std::uint64_t offset, std::uint64_t size, std::size_t number) -> Result<bool> {
    if (offset + size > here.size) return false;
    HAWSER_TRY_ASSIGN(const ReadChunk read, read_chunk(part->fd(), part->path(), offset, slot(number, size)));
    HAWSER_TRY_ASSIGN(const Json sum,
                      calls_.call({{"op", "hash"}, {"path", path}, {"offset", offset}, {"size", size}}));
    return read.bytes == size && sum.value("hash", "") == read.sum;
  };
  HAWSER_TRY(for_chunks(source.size, [&](std::uint64_t offset, std::uint64_t size, std::size_t number) -> Status {
    HAWSER_TRY_ASSIGN(const bool kept, is_kept(offset, size, number));
    if (kept) {
      kept_ += size;
      return {};
    }
    HAWSER_TRY_ASSIGN(
        const Json told,
        calls_.call(
            {{"op", "read"}, {"path", path}, {"offset", offset}, {"size", size}, {"slot", number * kFileChunk}}));
    if (told.value("size", source.size + 1) != source.size ||
        told.value("mtime_ns", std::int64_t{-1}) != source.mtime_ns) {
      return changed(remote);
    }
    if (told.value("hash", "") == sum_of(slot(number, size))) {
      return write_chunk(part->fd(), part->path(), offset, slot(number, size)).error();
    }
    return Status(Code::kCorrupt, fmt::format("the bytes of '{}' at {} do not have the sum that was told",
                                              base::shown(remote), offset));
  }));
  // Chunks that were kept were compared with what the source was at that time, and no answer tells when that was.
  HAWSER_TRY_ASSIGN(const Json after, stat(remote));
  if (after.value("size", source.size + 1) != source.size ||
      after.value("mtime_ns", std::int64_t{-1}) != source.mtime_ns) {
    return changed(remote);
  }
  HAWSER_TRY(part->publish(source));
  totals_ = {.files = totals_.files + 1, .bytes = totals_.bytes + source.size, .bytes_kept = kept_};
  return {};
}

Status Copier::send(const std::string& local, const std::string& remote) {
  HAWSER_TRY_ASSIGN(const FileFacts found, facts_at(local));
  if (!found.is_file) return not_copied(local, found.kind);
  HAWSER_TRY_ASSIGN(const base::Fd fd, open_file(local, O_RDONLY | O_NONBLOCK));
  HAWSER_TRY_ASSIGN(const FileFacts source, facts_of(fd.get(), local));
  if (!source.is_file) return not_copied(local, source.kind);
  const Json path = json_of_path(remote), part = json_of_path(remote + std::string(kPartSuffix));
  HAWSER_TRY_ASSIGN(const Json there, calls_.call({{"op", "begin"}, {"path", path}}));
  const auto part_size = there.value("size", std::uint64_t{0});
  HAWSER_TRY(for_chunks(source.size, [&](std::uint64_t offset, std::uint64_t size, std::size_t number) -> Status {
    HAWSER_TRY_ASSIGN(const ReadChunk read, read_chunk(fd.get(), local, offset, slot(number, size)));
    if (read.bytes < size) return changed(local);
    if (offset + size <= part_size) {
      HAWSER_TRY_ASSIGN(const Json known,
                        calls_.call({{"op", "hash"}, {"path", part}, {"offset", offset}, {"size", size}}));
      if (known.value("hash", "") == read.sum && known.value("bytes", std::uint64_t{0}) == size) {
        kept_ += size;
        return {};
      }
    }
    return calls_
        .call({{"op", "write"},
               {"path", path},
               {"offset", offset},
               {"size", size},
               {"slot", number * kFileChunk},
               {"hash", read.sum}})
        .error();
  }));
  HAWSER_TRY_ASSIGN(const FileFacts after, facts_of(fd.get(), local));
  if (after.size != source.size || after.mtime_ns != source.mtime_ns) return changed(local);
  HAWSER_TRY(calls_
                 .call({{"op", "finish"},
                        {"path", path},
                        {"size", source.size},
                        {"mode", source.mode},
                        {"mtime_ns", source.mtime_ns}})
                 .error());
  totals_ = {.files = totals_.files + 1, .bytes = totals_.bytes + source.size, .bytes_kept = kept_};
  return {};
}

}  // namespace hawser::cli
