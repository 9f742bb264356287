#include <utility>

#include "backend/file/factory.h"
#include "backend/file/port.h"
#include "backend/params.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace file {
namespace {

constexpr Choice<fileio::Engine> kEngines[] = {
    {"auto", fileio::Engine::kAuto}, {"io_uring", fileio::Engine::kUring}, {"threads", fileio::Engine::kThreads}};

Traits traits_of() {
  Traits traits;
  traits.name = "file";
  traits.same_host_only = true;
  traits.self_only = true;
  traits.reaches_memory = false;
  traits.reaches_files = true;
  traits.direct = true;
  traits.lossless = true;
  traits.chunk_pieces_max = 1024;
  traits.quiesce_max = std::chrono::seconds(30);  // What a device may take for what it has; the kernel knows no end.
  traits.latency_ns = 50'000;
  traits.bytes_per_ns = 1.5;
  traits.piece_ns = 1'000;
  return traits;
}

class FileBackend final : public Backend {
 public:
  FileBackend(const Context& context, const ParamReader& read, std::unique_ptr<fileio::Queue> queue,
              std::uint32_t depth, std::vector<std::string> warnings)
      : context_(context),
        params_(read.in_force()),
        warnings_(std::move(warnings)),
        depth_(depth),
        queue_(std::move(queue)),
        open_queue_(queue_.get()) {}

  const Traits& traits() const override { return traits_; }
  std::string address() const override {
    std::string bytes;
    base::ByteWriter out(&bytes);
    out.id(context_.identity.incarnation);
    return bytes;
  }
  std::string readable_address() const override { return base::format("this agent's files, by {}", name_); }
  Status reachable(std::string_view peer_address) const override {
    if (peer_address == address()) return {};
    return Status(Code::kUnsupported, "file reaches this agent's own files only");
  }
  Result<std::string> add_region(const RegionEntry&) override { return std::string(); }
  void remove_region(const RegionEntry&) override {}
  Result<std::unique_ptr<Port>> open_port() override {
    return std::unique_ptr<Port>(new FilePort(context_, address(), std::move(queue_), depth_));
  }
  Params params() const override { return params_; }
  std::vector<std::string> warnings() const override { return warnings_; }
  void disown_after_fork() override { open_queue_->disown_after_fork(); }

 private:
  const Context context_;
  const Traits traits_ = traits_of();
  const Params params_;
  const std::vector<std::string> warnings_;
  const std::uint32_t depth_;
  std::unique_ptr<fileio::Queue> queue_;  ///< Until the port is opened, which then owns it.
  fileio::Queue* const open_queue_;
  const std::string name_{open_queue_->name()};
};

Result<std::unique_ptr<Backend>> open(const Context& context, const Params& params) {
  ParamReader read("file", params);
  fileio::QueueOptions options;
  options.engine = read.choice("engine", options.engine, kEngines);
  options.depth = static_cast<std::uint32_t>(read.count("depth", options.depth, {.min = 1, .max = 4096}));
  options.threads = static_cast<std::uint32_t>(read.count("threads", options.threads, {.min = 1, .max = 64}));
  HAWSER_TRY(read.finish());
  std::vector<std::string> warnings = read.warnings();
  Status why_not;
  HAWSER_TRY_ASSIGN(auto queue, fileio::open_queue(options, &why_not));
  if (!why_not.ok()) {
    warnings.push_back(base::format("{} threads read and write files, since io_uring cannot be used: {}",
                                    options.threads, why_not.message()));
  }
  return std::unique_ptr<Backend>(new FileBackend(context, read, std::move(queue), options.depth, std::move(warnings)));
}

}  // namespace
}  // namespace file

Factory file_factory() {
  return {"file", 0, [](const Context& context, const Params& params) { return file::open(context, params); }};
}

}  // namespace hawser::backend
