#include "cli/bench/load.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/inside.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kPlansMax = 16;
constexpr Duration kCloseTimeout = std::chrono::seconds(2);
constexpr const char* kName = "load";

}  // namespace

Result<std::unique_ptr<Load>> Load::prepare(Stage& stage, const LoadShape& shape) {
  if (shape.scattered() && shape.bytes() > shape.arena_bytes) {
    return Status(Code::kUnsupported, fmt::format("needs {} MiB of scattered blocks, the arena has {}",
                                                  shape.bytes() >> 20, shape.arena_bytes >> 20))
        .with_advice("without --quick, or with more memory");
  }
  std::unique_ptr<Load> load(new Load(stage, shape));
  HAWSER_TRY(load->make_memory());
  HAWSER_TRY(load->make_plans());
  HAWSER_TRY(load->run_cold());
  return load;
}

Load::~Load() {
  plans_.clear();
  if (!remote_.name.empty() && stage_.alive().ok()) (void)stage_.forget_memory(remote_.name);
  const bool quiet = core_of(local_) == nullptr || local_.close(kCloseTimeout).ok();
  if (!own_.empty() && quiet) munmap(own_.data(), own_.size());
}

Status Load::make_memory() {
  const std::uint64_t size = shape_.scattered() ? shape_.arena_bytes : shape_.bytes();
  if (shape_.memory == MemoryKind::kForeign) {
    void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return base::errno_status("memory for the bench", errno);
    own_ = {static_cast<std::byte*>(base), size};
    HAWSER_TRY_ASSIGN(local_, stage_.agent().add_region({.name = kName, .bytes = own_}));
  } else {
    HAWSER_TRY_ASSIGN(local_, stage_.agent().allocate({.name = kName, .size = size}));
  }
  fill(local_.bytes(), ++seed_);
  HAWSER_TRY_ASSIGN(remote_, stage_.remote_memory(kName, size, shape_.memory));
  return Status();
}

Status Load::make_plans() {
  const std::uint64_t arena_blocks = shape_.scattered() ? shape_.arena_bytes / shape_.block_bytes : shape_.count;
  const std::uint64_t plans = std::clamp<std::uint64_t>(arena_blocks / shape_.count, 1, kPlansMax);
  const RangeTable here = local_.table(shape_.block_bytes);
  const RangeTable there = stage_.peer().table(remote_.name, shape_.block_bytes);
  for (std::uint64_t i = 0; i < plans; ++i) {
    const auto blocks = [&](std::uint64_t seed) {
      return BlockList{shape_.block_bytes, arena_blocks, shape_.count, i * shape_.count, shape_.scattered() ? seed : 0};
    };
    local_blocks_.push_back(blocks(1));
    remote_blocks_.push_back(blocks(2));
    const auto local = local_blocks_.back().indices(), remote = remote_blocks_.back().indices();
    Agent& agent = stage_.agent();
    HAWSER_TRY_ASSIGN(Plan plan, shape_.operation == Operation::kWrite
                                     ? agent.plan_write(stage_.peer(), here, local, there, remote)
                                     : agent.plan_read(stage_.peer(), there, remote, here, local));
    plans_.push_back(std::move(plan));
  }
  return Status();
}

Result<Plan> Load::whole(std::uint64_t bytes) {
  const LocalRange here = local_.range(0, bytes);
  const RemoteRange there = stage_.peer().range(remote_.name, 0, bytes);
  Agent& agent = stage_.agent();
  return shape_.operation == Operation::kWrite ? agent.plan_write(stage_.peer(), {&here, 1}, {&there, 1})
                                               : agent.plan_read(stage_.peer(), {&there, 1}, {&here, 1});
}

Status Load::run_cold() {
  return stage_
      .during({{"mode", "serve"}},
              [this]() -> Status {
                const std::int64_t start = now_ns();
                HAWSER_TRY(run_plan(stage_.agent(), plans_[0]));
                cold_ns_ = now_ns() - start;
                return run_all();
              })
      .status();
}

Status Load::run_all() {
  for (const Plan& plan : plans_) HAWSER_TRY(run_plan(stage_.agent(), plan));
  return Status();
}

Status Load::renew_source() {
  ++seed_;
  if (shape_.operation == Operation::kWrite) {
    fill(local_.bytes(), seed_);
    return Status();
  }
  Json command = control_message("fill");
  command["name"] = remote_.name;
  command["seed"] = seed_;
  return stage_.ask(command).status();
}

Result<std::uint64_t> Load::remote_sum(const BlockList& blocks) {
  Json command = control_message("sum");
  command["name"] = remote_.name;
  command["blocks"] = bench::to_json(blocks);
  HAWSER_TRY_ASSIGN(const Json answer, stage_.ask(command));
  return answer.value("sum", std::uint64_t{0});
}

Status Load::verify(std::uint64_t* bytes) {
  HAWSER_TRY(renew_source());
  HAWSER_TRY(stage_.during({{"mode", "serve"}}, [this]() -> Status { return run_all(); }).status());
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    HAWSER_TRY_ASSIGN(const std::uint64_t there, remote_sum(remote_blocks_[i]));
    if (there != sum_of(local_.bytes(), local_blocks_[i])) {
      return Status(Code::kCorrupt, fmt::format("plan {} of {}: the blocks of both sides differ", i, plans_.size()));
    }
    *bytes += shape_.bytes();
  }
  return Status();
}

std::string Load::carried_by() const {
  std::string most;
  std::uint64_t bytes = 0;
  for (const PathCounters& path : stage_.agent().counters().paths) {
    if (path.bytes_out + path.bytes_in <= bytes) continue;
    bytes = path.bytes_out + path.bytes_in;
    most = path.backend;
  }
  return most;
}

}  // namespace hawser::cli::bench
