#include "cli/files/file_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/files/beneath.h"
#include "cli/files/chunk_io.h"

namespace hawser::cli {
namespace {

constexpr Duration kMoveDeadline = std::chrono::seconds(30);
constexpr Duration kReplyDeadline = std::chrono::seconds(5);
constexpr Duration kServerRoomPause = std::chrono::milliseconds(1);

Result<std::string> path_of(const Json& request) { return path_from(request.at("path")); }

struct Span {
  std::uint64_t offset = 0, size = 0, slot = 0;
};

Result<Span> span_of(const Json& request) {
  const Span span{.offset = request.at("offset").get<std::uint64_t>(),
                  .size = request.at("size").get<std::uint64_t>(),
                  .slot = request.value("slot", std::uint64_t{0})};
  if (span.size > 0 && span.size <= kFileChunk && span.offset <= kFileSizeMax && span.slot <= kFileSizeMax) return span;
  return Status(Code::kInvalid, fmt::format("{} bytes at {} are no chunk", span.size, span.offset));
}

}  // namespace

Result<std::unique_ptr<FileServer>> FileServer::open(Agent& agent, const std::string& folder, bool writable) {
  base::Fd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return base::errno_status("serve: opening the folder '" + folder + "'", errno);
  HAWSER_TRY_ASSIGN(Region buffers,
                    agent.allocate({.name = "files", .size = kThreads * kFileChunk, .rights = Rights::kNone}));
  HAWSER_TRY(agent.open_channel(kFileChannel, kFileCredit));
  std::unique_ptr<FileServer> server(new FileServer(agent, std::move(root), std::move(buffers), writable));
  for (std::size_t i = 0; i < kThreads; ++i) server->threads_.emplace_back([its = server.get(), i] { its->work(i); });
  return server;
}

FileServer::~FileServer() {
  mutex_.lock();
  is_closing_ = true;
  queue_.clear();
  mutex_.unlock();
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

FileServerCounters FileServer::counters() const {
  return {.requests = requests_,
          .refused = refused_,
          .bytes_read = bytes_read_,
          .bytes_written = bytes_written_,
          .files_written = files_written_,
          .listings = listings_.kept(),
          .uploads = uploads_open_};
}

std::size_t FileServer::take_requests() {
  forget_gone();
  std::size_t taken = 0;
  for (;; ++taken) {
    const base::MutexLock lock(mutex_);
    if (queue_.size() >= kQueueMax) return taken;
    std::optional<Message> message = agent_.take_message(kFileChannel);
    if (!message) return taken;
    queue_.push_back(*std::move(message));
    wake_.notify_one();
  }
}

void FileServer::forget_gone() {
  std::vector<Incarnation> gone;
  {
    const base::MutexLock lock(mutex_);
    std::erase_if(clients_, [&](const auto& entry) {
      const bool is_gone = entry.second.state() == PeerState::kDown;
      if (is_gone) gone.push_back(entry.first);
      return is_gone;
    });
  }
  for (const Incarnation& client : gone) listings_.drop(client);
  close_parts_of_gone();
}

// They stay, to be gone on with, but are not locked any more, and who deletes one has its room at once.
void FileServer::close_parts_of_gone() {
  // Held by who opens a part, for as long as the file system takes; there is a next time soon.
  if (!uploads_mutex_.try_lock()) return;
  std::erase_if(uploads_, [](const auto& entry) { return entry.second.from.state() == PeerState::kDown; });
  uploads_open_ = uploads_.size();
  uploads_mutex_.unlock();
}

void FileServer::work(std::size_t number) {
  for (;;) {
    mutex_.lock();
    while (queue_.empty() && !is_closing_) wake_.wait(mutex_);
    if (is_closing_) {
      mutex_.unlock();
      return;
    }
    const Message message = std::move(queue_.front());
    queue_.pop_front();
    mutex_.unlock();
    serve(number, message);
  }
}

void FileServer::serve(std::size_t number, const Message& message) {
  ++requests_;
  const FileMessage request = decode_file_message(message.bytes);
  if (!request.json.contains("id") || !request.json["id"].is_number_unsigned()) {
    ++refused_;
    return;
  }
  bool answered = false;
  Result<Json> made = Status(Code::kInvalid, "the request lacks a field, or one is of the wrong kind");
  try {
    made = answer(number, message, request, &answered);
  } catch (const Json::exception&) {  // Keeps the text above.
  } catch (const std::filesystem::filesystem_error& error) {
    made = Status(Code::kFailed, error.what());
  }
  if (answered) return;
  Json json = made ? *made : Json{{"ok", false}, {"error", to_json(made.error())}};
  if (!made) ++refused_;
  json["id"] = request.json["id"];
  if (!json.contains("ok")) json["ok"] = true;
  reply(message.peer, json);
}

Result<Json> FileServer::answer(std::size_t number, const Message& message, const FileMessage& request,
                                bool* answered) {
  const std::string op = request.json.at("op").get<std::string>();
  if (op == "hello") return hello(message, request);
  if (op == "stat") return stat(request.json);
  if (op == "list") return list(message.peer, request.json);
  if (op == "hash") return hash(number, request.json);
  if (op == "begin") return begin(message.peer, request.json);
  if (op == "write") return write(number, message.peer, request.json);
  if (op == "finish") return finish(message.peer, request.json);
  if (op != "read")
    return Status(Code::kUnsupported, fmt::format("'{}' is no request that is known here", base::shown(op)));
  HAWSER_TRY(read(number, message.peer, request.json));
  *answered = true;
  return Json::object();
}

Result<Json> FileServer::hello(const Message& message, const FileMessage& request) {
  HAWSER_TRY_ASSIGN(const Peer peer, agent_.add_peer(std::string_view(request.tail)));
  if (peer.incarnation() != message.peer.incarnation()) return Status(Code::kDenied, "that card is another agent's");
  const base::MutexLock lock(mutex_);
  if (clients_.size() >= kClientsMax)
    return Status(Code::kBusy, fmt::format("{} clients are here already", kClientsMax));
  clients_[peer.incarnation()] = peer;
  return Json{{"chunk", kFileChunk}, {"writable", writable_}};
}

Result<Peer> FileServer::client(const Peer& from) {
  const base::MutexLock lock(mutex_);
  const auto found = clients_.find(from.incarnation());
  if (found == clients_.end()) return Status(Code::kInvalid, "say hello first");
  return found->second;
}

Status FileServer::may_write() const {
  if (writable_) return {};
  return Status(Code::kDenied, "this server only lets read").with_advice("start it without --read-only");
}

Result<Json> FileServer::stat(const Json& request) {
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  const Result<base::Fd> fd = open_beneath(root_.get(), path, O_PATH);
  if (!fd && fd.error().code() == Code::kNotFound) return Json{{"exists", false}};
  if (!fd) return fd.error();
  HAWSER_TRY_ASSIGN(const FileFacts facts, facts_of(fd->get(), path));
  return Json{{"exists", true},     {"folder", facts.is_folder}, {"file", facts.is_file},     {"kind", facts.kind},
              {"size", facts.size}, {"mode", facts.mode},        {"mtime_ns", facts.mtime_ns}};
}

/// What else than a file lies there is not even opened: who waits at a FIFO would go on.
Result<base::Fd> FileServer::open_file(const std::string& path) const {
  HAWSER_TRY_ASSIGN(const base::Fd seen, open_beneath(root_.get(), path, O_PATH));
  HAWSER_TRY_ASSIGN(const FileFacts facts, facts_of(seen.get(), path));
  if (!facts.is_file) return not_copied(path, facts.kind);
  return open_beneath(root_.get(), path, O_RDONLY);
}

Result<Json> FileServer::list(const Peer& who, const Json& request) {
  HAWSER_TRY_ASSIGN(const Peer peer, client(who));
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  const auto from = request.value("from", std::size_t{0});
  const auto walk = [&]() -> Result<std::vector<ListedFile>> {
    HAWSER_TRY_ASSIGN(const base::Fd folder, open_beneath(root_.get(), path, O_RDONLY | O_DIRECTORY));
    return walk_folder(folder.get(), path);
  };
  HAWSER_TRY_ASSIGN(const Listing files, listings_.get(peer.incarnation(), path, from, walk));
  Json listed = Json::array();
  std::size_t bytes = 0, at = from;
  for (; at < files->size() && bytes < kListBytes; ++at) {
    listed.push_back({{"path", json_of_path((*files)[at].path)}, {"size", (*files)[at].size}});
    bytes += listed.back().dump().size();
  }
  const bool more = at < files->size();
  // Nobody else drops the listing of a client that went while its folder was walked.
  if (!more || peer.state() == PeerState::kDown) listings_.drop(peer.incarnation(), path);
  return Json{{"files", std::move(listed)}, {"more", more}};
}

Result<Json> FileServer::hash(std::size_t number, const Json& request) {
  HAWSER_TRY_ASSIGN(const Span span, span_of(request));
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  HAWSER_TRY_ASSIGN(const base::Fd fd, open_file(path));
  const std::span<std::byte> bytes = buffer(number, span.size);
  HAWSER_TRY_ASSIGN(const ReadChunk read, read_chunk(fd.get(), path, span.offset, bytes));
  return Json{{"bytes", read.bytes}, {"hash", read.sum}};
}

Status FileServer::move(Operation op, std::size_t number, const Peer& from, std::uint64_t slot, std::uint64_t size,
                        std::optional<std::string_view> notify) {
  HAWSER_TRY_ASSIGN(const Peer peer, client(from));
  const LocalRange ours = buffers_.range(number * kFileChunk, size);
  const RemoteRange theirs = peer.range(kFileRegion, slot, size);
  HAWSER_TRY_ASSIGN(const Plan plan, op == Operation::kWrite
                                         ? agent_.plan_write(peer, std::span(&ours, 1), std::span(&theirs, 1))
                                         : agent_.plan_read(peer, std::span(&theirs, 1), std::span(&ours, 1)));
  HAWSER_TRY_ASSIGN(Transfer transfer, plan.submit({.notify = notify, .deadline = kMoveDeadline}));
  // The buffer is free once the transfer is final; that is not put off beyond what cancelling takes.
  Status status = transfer.wait(2 * kMoveDeadline);
  while (!transfer.done()) static_cast<void>(transfer.wait(kMoveDeadline));
  return status;
}

Status FileServer::read(std::size_t number, const Peer& from, const Json& request) {
  HAWSER_TRY_ASSIGN(const Span span, span_of(request));
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  HAWSER_TRY_ASSIGN(const base::Fd fd, open_file(path));
  const std::span<std::byte> bytes = buffer(number, span.size);
  HAWSER_TRY_ASSIGN(const ReadChunk read, read_chunk(fd.get(), path, span.offset, bytes));
  if (read.bytes < span.size) {
    return Status(Code::kFailed, fmt::format("'{}' ends at byte {}; {} were expected", base::shown(path),
                                             span.offset + read.bytes, span.offset + span.size))
        .with_advice("it was cut while it was copied; run the command again");
  }
  // Asked for after the bytes were read: a change that is among them has another time.
  HAWSER_TRY_ASSIGN(const FileFacts facts, facts_of(fd.get(), path));
  const Json json{
      {"id", request.at("id")}, {"ok", true}, {"hash", read.sum}, {"size", facts.size}, {"mtime_ns", facts.mtime_ns}};
  HAWSER_TRY(move(Operation::kWrite, number, from, span.slot, span.size, encode_file_message(json)));
  bytes_read_ += span.size;
  return {};
}

Result<std::shared_ptr<PartFile>> FileServer::part_for(const Peer& from, const std::string& path, bool make) {
  HAWSER_TRY_ASSIGN(const Peer peer, client(from));
  const base::MutexLock lock(uploads_mutex_);
  const auto found = uploads_.find(peer.incarnation());
  if (found != uploads_.end() && found->second.path == path) return found->second.part;
  uploads_.erase(peer.incarnation());
  uploads_open_ = uploads_.size();
  HAWSER_TRY_ASSIGN(Beneath at, find_beneath(root_.get(), path, make));
  if (at.name == ".") return Status(Code::kInvalid, "the served folder is no file");
  // Whatever leads over a link is refused, also where a file would only take its place.
  if (Status there = open_beneath(at.folder.get(), at.name, O_PATH).error(); there.code() == Code::kDenied)
    return there;
  HAWSER_TRY_ASSIGN(std::shared_ptr<PartFile> part, PartFile::open(std::move(at.folder), at.name, path, make));
  uploads_[peer.incarnation()] = {.from = peer, .path = path, .part = part};
  uploads_open_ = uploads_.size();
  return part;
}

Result<Json> FileServer::begin(const Peer& from, const Json& request) {
  HAWSER_TRY(may_write());
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  HAWSER_TRY_ASSIGN(const std::shared_ptr<PartFile> part, part_for(from, path, true));
  HAWSER_TRY_ASSIGN(const FileFacts facts, part->facts());
  return Json{{"size", facts.size}};
}

Result<Json> FileServer::write(std::size_t number, const Peer& from, const Json& request) {
  HAWSER_TRY(may_write());
  HAWSER_TRY_ASSIGN(const Span span, span_of(request));
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  HAWSER_TRY_ASSIGN(const std::shared_ptr<PartFile> part, part_for(from, path, true));
  HAWSER_TRY(move(Operation::kRead, number, from, span.slot, span.size, std::nullopt));
  const std::span<std::byte> bytes = buffer(number, span.size);
  if (sum_of(bytes) != request.at("hash").get<std::string>()) {
    return Status(Code::kCorrupt, fmt::format("the bytes of '{}' at {} do not have the sum that was told",
                                              base::shown(path), span.offset));
  }
  HAWSER_TRY(write_chunk(part->fd(), part->path(), span.offset, bytes).error());
  bytes_written_ += span.size;
  return Json::object();
}

Result<Json> FileServer::finish(const Peer& from, const Json& request) {
  HAWSER_TRY(may_write());
  HAWSER_TRY_ASSIGN(const std::string path, path_of(request));
  const FileFacts facts{.is_file = true,
                        .size = request.at("size").get<std::uint64_t>(),
                        .mode = request.at("mode").get<std::uint32_t>(),
                        .mtime_ns = request.at("mtime_ns").get<std::int64_t>()};
  if (facts.size > kFileSizeMax || facts.mtime_ns < 0) return Status(Code::kInvalid, "no size or time of a file");
  HAWSER_TRY_ASSIGN(const std::shared_ptr<PartFile> part, part_for(from, path, facts.size == 0));
  const Status published = part->publish(facts);
  {
    const base::MutexLock lock(uploads_mutex_);
    uploads_.erase(from.incarnation());
    uploads_open_ = uploads_.size();
  }
  HAWSER_TRY(published);
  ++files_written_;
  return Json::object();
}

/// A client that does not take its answers loses them; its own deadline then ends its request.
void FileServer::reply(const Peer& to, const Json& json) {
  std::string text = encode_file_message(json);
  if (text.size() > kMessageMax) {  // Errors quote what a client wrote.
    const Status longer(Code::kInvalid, "the request was refused, in more words than an answer may have");
    text = encode_file_message({{"id", json.value("id", std::uint64_t{0})}, {"ok", false}, {"error", to_json(longer)}});
  }
  const Instant deadline = Clock::steady().now() + kReplyDeadline;
  Status sent;
  while ((sent = to.notify(text)).code() == Code::kBusy && Clock::steady().now() < deadline) {
    agent_.wait(kServerRoomPause);
  }
}

}  // namespace hawser::cli
