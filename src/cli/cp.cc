// hawser cp: copies files from and to a `hawser serve --dir`.

#include <fcntl.h>
#include <fmt/format.h>
#include <hawser/agent.h>
#include <hawser/driver.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/files/beneath.h"
#include "cli/files/copier.h"
#include "cli/files/listings.h"
#include "cli/files/place.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/progress.h"
#include "cli/reach.h"
#include "cli/status_exit.h"
#include "cli/units.h"
#include "identity/files.h"

namespace hawser::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration kCpCloseTimeout = std::chrono::seconds(2);
constexpr const char* kCpExamples =
    "  hawser cp store@10.0.0.5:7000:models/llama.bin .\n"
    "  hawser cp a.bin b.bin 10.0.0.5:7000:incoming/\n"
    "  hawser cp -r 10.0.0.5:7000:models models --json";

struct CpArguments {
  Common common;
  std::vector<std::string> paths;  ///< Sources, then the target.
  bool recursive = false;
  Duration timeout = std::chrono::seconds(30);
  Reach reach;
};

/// One file to copy.
struct Errand {
  std::string from, to;
  std::uint64_t size = 0;
};

/// Empty where the path ends with no name: what is in "." goes into the target itself.
std::string name_in(const std::string& path) {
  const std::string trimmed = path.substr(0, path.find_last_not_of('/') + 1);
  const std::string name = fs::path(trimmed).filename().string();
  return name == "." || name == ".." ? std::string() : name;
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

Status no_folder(const std::string& path) {
  return Status(Code::kInvalid, fmt::format("'{}' is no folder", base::shown(path)))
      .with_advice("name the file without '/.'");
}

class Copy {
 public:
  Copy(const CpArguments& a, std::vector<FilePlace> sources, FilePlace target)
      : a_(a), sources_(std::move(sources)), target_(std::move(target)), up_(target_.is_remote()) {}

  Status run(Agent& agent, const Peer& peer);
  const CopyTotals& totals() const { return totals_; }
  std::int64_t elapsed_ns() const { return elapsed_ns_; }

 private:
  Status run_errands(std::optional<Progress>* progress);
  Status plan();
  Status plan_down(const FilePlace& source, bool into_folder);
  Status plan_up(const FilePlace& source, bool into_folder);
  Result<bool> target_is_folder();

  const CpArguments& a_;
  std::vector<FilePlace> sources_;
  FilePlace target_;
  bool up_;
  std::unique_ptr<Copier> copier_;
  std::vector<Errand> errands_;
  CopyTotals totals_;
  std::int64_t elapsed_ns_ = 0;
};

Result<bool> Copy::target_is_folder() {
  if (name_in(target_.path).empty() || target_.path.ends_with('/')) return true;  // "", "." and "a/.", too.
  if (!up_) {
    std::error_code error;
    const bool is_folder = fs::is_directory(target_.path, error);
    if (is_folder || !error || error == std::errc::no_such_file_or_directory) return is_folder;
    return base::errno_status(fmt::format("looking at '{}'", base::shown(target_.path)), error.value());
  }
  const Result<Json> there = copier_->stat(target_.path);
  if (!there && there.error().code() != Code::kNotFound) return there.error();
  return there && there->value("folder", false);
}

Status Copy::plan_down(const FilePlace& source, bool into_folder) {
  HAWSER_TRY_ASSIGN(const Json facts, copier_->stat(source.path));
  const std::string to = into_folder ? joined(target_.path, name_in(source.path)) : target_.path;
  if (!facts.value("folder", false)) {
    if (name_in(source.path).empty()) return no_folder(source.path);
    errands_.push_back({source.path, to, facts.value("size", std::uint64_t{0})});
    return {};
  }
  if (!a_.recursive) {
    const std::string what = source.path.empty() ? "what the server serves" : "'" + base::shown(source.path) + "'";
    return Status(Code::kInvalid, what + " is a folder").with_advice("copy folders with -r");
  }
  HAWSER_TRY_ASSIGN(const std::vector<RemoteFile> files, copier_->list(source.path));
  for (const RemoteFile& file : files) {
    HAWSER_TRY(check_listed_path(file.path));  // The server's word may not lead out of the target either.
    errands_.push_back({joined(source.path, file.path), joined(to, file.path), file.size});
  }
  return {};
}

Status Copy::plan_up(const FilePlace& source, bool into_folder) {
  const std::string to = into_folder ? joined(target_.path, name_in(source.path)) : target_.path;
  HAWSER_TRY_ASSIGN(const FileFacts facts, facts_at(source.path));
  if (!facts.is_folder) {
    if (!facts.is_file) return not_copied(source.path, facts.kind);
    errands_.push_back({source.path, to, facts.size});
    return {};
  }
  if (!a_.recursive) {
    return Status(Code::kInvalid, fmt::format("'{}' is a folder", base::shown(source.path)))
        .with_advice("copy folders with -r");
  }
  const base::Fd folder(::open(source.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return base::errno_status(fmt::format("opening the folder '{}'", base::shown(source.path)), errno);
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  HAWSER_TRY_ASSIGN(const std::vector<ListedFile> files, walk_folder(folder.get(), source.path, kAll));
  for (const ListedFile& file : files) {
    errands_.push_back({joined(source.path, file.path), joined(to, file.path), file.size});
  }
  return {};
}

Status Copy::plan() {
  HAWSER_TRY_ASSIGN(const bool into_folder, target_is_folder());
  if (sources_.size() > 1 && !into_folder) {
    return Status(Code::kInvalid, fmt::format("'{}' is no folder, and there are {} sources", base::shown(target_.path),
                                              sources_.size()))
        .with_advice("end the target with '/', or make the folder");
  }
  for (const FilePlace& source : sources_) {
    HAWSER_TRY(up_ ? plan_up(source, into_folder) : plan_down(source, into_folder));
  }
  std::map<std::string_view, std::string_view> sources;  // By target: none is written over by what comes after it.
  for (const Errand& errand : errands_) {
    const auto [first, is_new] = sources.try_emplace(errand.to, errand.from);
    if (is_new) continue;
    return Status(Code::kInvalid, fmt::format("'{}' and '{}' would both be '{}'", base::shown(first->second),
                                              base::shown(errand.from), base::shown(errand.to)))
        .with_advice("copy them into folders of their own");
  }
  return {};
}

Status Copy::run(Agent& agent, const Peer& peer) {
  std::optional<Progress> progress;
  HAWSER_TRY_ASSIGN(copier_, Copier::open(agent, peer, a_.timeout, [&](std::uint64_t bytes) {
                      if (progress) progress->update(bytes);
                    }));
  Status status = plan();
  if (status.ok()) status = run_errands(&progress);
  totals_ = copier_->totals();
  copier_.reset();  // Whatever came of it: its thread uses the agent.
  return status;
}

Status Copy::run_errands(std::optional<Progress>* progress) {
  std::uint64_t total = 0;
  for (const Errand& errand : errands_) total += errand.size;
  progress->emplace("copying", total, !a_.common.json);
  const Instant start = Clock::steady().now();
  Status status;
  for (const Errand& errand : errands_) {
    status = up_ ? copier_->send(errand.from, errand.to) : copier_->fetch(errand.from, errand.to);
    if (!status.ok()) break;
  }
  elapsed_ns_ = (Clock::steady().now() - start).count();
  progress->reset();
  return status;
}

Result<Copy> parse(const CpArguments& a, std::string* server) {
  std::vector<FilePlace> places;
  for (const std::string& text : a.paths) {
    HAWSER_TRY_ASSIGN(FilePlace place, parse_place(text, !a.reach.directory.empty()));
    places.push_back(std::move(place));
  }
  FilePlace target = std::move(places.back());
  places.pop_back();
  for (const FilePlace& source : places) {
    if (source.is_remote() == target.is_remote()) {
      return Status(Code::kInvalid, source.is_remote() ? "both sides are servers" : "neither side is a server")
          .with_advice("a server is named as host:port:path; copy between this host and a server");
    }
    if (source.server != places.front().server) return Status(Code::kInvalid, "all sources must be of one server");
  }
  *server = target.is_remote() ? target.server : places.front().server;
  return Copy(a, std::move(places), std::move(target));
}

Result<Json> run_cp(CpArguments& a) {
  std::string server;
  HAWSER_TRY_ASSIGN(Copy copy, parse(a, &server));
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(a.reach, a.common.config));
  options.name = identity::name_beneath(options.identity.folder, identity::one_of_many("cp"));
  options.driven = true;
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
  HAWSER_TRY_ASSIGN(Driver driver, Driver::start());
  HAWSER_TRY(driver.attach(agent));
  Status status;
  if (const Result<Peer> peer = agent.find_peer(server, a.timeout)) {
    status = peer->connect(a.timeout);
    if (status.ok()) status = copy.run(agent, *peer);
  } else {
    status = peer.error();
  }
  const Status detached = driver.detach(agent);
  const Status closed = agent.close(kCpCloseTimeout);
  HAWSER_TRY(status);
  HAWSER_TRY(detached);
  HAWSER_TRY(closed);
  const CopyTotals& totals = copy.totals();
  Json json = document("cp");
  json["ok"] = true;
  json["files"] = totals.files;
  json["bytes"] = totals.bytes;
  json["bytes_kept"] = totals.bytes_kept;
  json["elapsed_ns"] = copy.elapsed_ns();
  json["gb_per_s"] = rate(totals.bytes - totals.bytes_kept, copy.elapsed_ns());
  return json;
}

int report(const CpArguments& a, const Result<Json>& done) {
  if (!done) return fail("cp", a.common.json, done.error());
  if (a.common.json) {
    print(*done);
    return kExitOk;
  }
  const auto bytes = (*done)["bytes"].get<std::uint64_t>(), kept = (*done)["bytes_kept"].get<std::uint64_t>();
  fmt::print("{} file{}, {} in {}, {} GB/s{}\n", (*done)["files"].get<std::uint64_t>(),
             (*done)["files"] == 1 ? "" : "s", short_size(bytes),
             short_duration(Duration((*done)["elapsed_ns"].get<std::int64_t>())),
             short_rate((*done)["gb_per_s"].get<double>()),
             kept == 0 ? "" : fmt::format(", {} were there already", short_size(kept)));
  return kExitOk;
}

}  // namespace

void add_cp(Shell& shell) {
  auto a = std::make_shared<CpArguments>();
  CLI::App* command = add_command(shell, "cp", "Copy files from and to a `hawser serve --dir`", kCpExamples, a->common);
  command->add_option("PATHS", a->paths, "Sources, then the target; a server's file is [name@]host:port:path")
      ->required()
      ->expected(2, 10000);
  command->add_flag("-r,--recursive", a->recursive, "Copy folders with all files in them");
  add_duration(command, "--timeout", a->timeout, "For finding the server and for each of its answers (default 30s)");
  add_reach(command, a->reach);
  on_run(shell, command, [a] {
    catch_interrupts();
    return report(*a, run_cp(*a));
  });
}

}  // namespace hawser::cli
