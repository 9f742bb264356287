#include <utility>

#include "backend/file/factory.h"
#include "backend/file/port.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace file {
namespace {

constexpr Choice<fileio::Engine> kEngines[] = {
    {"auto", fileio::Engine::kAuto}, {"io_uring", fileio::Engine::kUring}, {"threads", fileio::Engine::kThreads}};

class FileBackend final : public SelfBackend {
 public:
  FileBackend(const Context& context, const ParamReader& read, std::unique_ptr<fileio::Queue> queue,
              std::uint32_t depth, std::vector<std::string> warnings)
      : SelfBackend(context, kKind, read, std::move(warnings)),
        depth_(depth),
        queue_(std::move(queue)),
        open_queue_(queue_.get()) {
    traits_.reaches = {DeviceKind::kFile};
    traits_.quiesce_max = std::chrono::seconds(30);  // What a device may take for what it has; the kernel knows no end.
    traits_.latency_ns = 50'000;
    traits_.bytes_per_ns = 1.5;
    traits_.piece_ns = 1'000;
  }

  std::string readable_address() const override { return base::format("this agent's files, by {}", name_); }
  Result<std::unique_ptr<Port>> open_port() override {
    return std::unique_ptr<Port>(new FilePort(context_, address(), std::move(queue_), depth_));
  }
  void disown_after_fork() override { open_queue_->disown_after_fork(); }

 private:
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
