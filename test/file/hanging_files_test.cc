// A file system that hangs under the agent's own files: closing ends when its user said, and tells what is still used.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/file/factory.h"
#include "backend/file/port.h"
#include "backend/test_wrapped.h"
#include "base/test_folder.h"
#include "fileio/fake_queue.h"
#include "fileio/leftovers.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = 8192;

/// The backend `file` over a disk that ends nothing by itself.
class HangingBackend final : public backend::WrappedBackend {
 public:
  HangingBackend(std::unique_ptr<Backend> inner, const backend::Context& context, fileio::FakeQueue** disk)
      : WrappedBackend(std::move(inner)), context_(context), disk_(disk) {}
  Result<std::unique_ptr<backend::Port>> open_port() override {
    auto queue = std::make_unique<fileio::FakeQueue>(8);
    *disk_ = queue.get();
    return std::unique_ptr<backend::Port>(new backend::file::FilePort(context_, address(), std::move(queue), 8));
  }

 private:
  const backend::Context context_;
  fileio::FakeQueue** const disk_;
};

class HangingFiles : public testing::Test {
 protected:
  HangingFiles() {
    const backend::Factory inner = backend::file_factory();
    const backend::Factory hanging{
        "file", 0,
        [inner, this](const backend::Context& context,
                      const Params& params) -> Result<std::unique_ptr<backend::Backend>> {
          auto opened = inner.open(context, params);
          if (!opened) return opened.error();
          return std::unique_ptr<backend::Backend>(new HangingBackend(*std::move(opened), context, &disk_));
        }};
    AgentOptions options;
    options.name = "files";
    options.backends = {{"file", {}}};
    agent_ = std::make_unique<Agent>(std::move(agent::open_with(std::move(options), {hanging}).value()));
    file_ = agent_->add_file({.name = "file", .path = folder_.path("file"), .create = true, .direct = DirectIo::kOff})
                .value();
  }

  /// Starts to write `memory` to the file, until the disk has it.
  Transfer begin(const Region& memory) {
    const LocalRange from = memory.range(0, kSize);
    const RemoteRange to = agent_->self().range("file", 0, kSize);
    Plan plan = agent_->plan_write(agent_->self(), {&from, 1}, {&to, 1}).value();
    Transfer transfer = plan.submit().value();
    for (int i = 0; i < 1000 && disk_->started.empty(); ++i) static_cast<void>(agent_->poll());
    EXPECT_EQ(disk_->started.size(), 1u);
    return transfer;
  }
  /// Closes the agent; gives what it said, which came soon.
  Status close(Duration patience) {
    const auto start = std::chrono::steady_clock::now();
    const Status status = agent_->close(patience);
    EXPECT_LT(std::chrono::steady_clock::now() - start, patience + 10s);
    return status;
  }

  const base::TestFolder folder_{"hawser-hanging"};
  fileio::FakeQueue* disk_ = nullptr;
  std::unique_ptr<Agent> agent_;
  Region file_;
};

TEST_F(HangingFiles, AllocatedMemoryIsAbandoned) {
  Region memory = agent_->allocate({.name = "memory", .size = kSize}).value();
  std::memset(memory.bytes().data(), 'a', kSize);
  const Transfer transfer = begin(memory);
  const Status status = close(50ms);
  EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
  EXPECT_NE(status.to_string().find("kernel"), std::string::npos) << status.to_string();
  EXPECT_EQ(disk_->cancelled.size(), 1u);
  EXPECT_EQ(transfer.status().code(), Code::kCancelled);
  memory = Region();
  agent_.reset();
  EXPECT_EQ(fileio::sweep_leftovers(), 1u);
  disk_->end();  // Reads the memory, which is there yet.
  EXPECT_EQ(disk_->disk, std::vector<std::byte>(kSize, std::byte{'a'}));
  EXPECT_EQ(fileio::sweep_leftovers(), 0u);
}

TEST_F(HangingFiles, WhoseMemoryItIsIsToldNotToFreeIt) {
  std::vector<std::byte> used(kSize), unused(kSize);
  const Region memory = agent_->add_region({.name = "memory", .bytes = used}).value();
  const Region other = agent_->add_region({.name = "other", .bytes = unused}).value();
  const Transfer transfer = begin(memory);
  const Status status = close(50ms);
  EXPECT_EQ(status.code(), Code::kTimedOut);
  EXPECT_NE(status.to_string().find("region 'memory' is still used by operations on files"), std::string::npos)
      << status.to_string();
  EXPECT_NE(status.advice().find("do not free"), std::string::npos) << status.to_string();
  disk_->end();
  EXPECT_EQ(fileio::sweep_leftovers(), 0u);
}

TEST_F(HangingFiles, WhatEndsInTimeIsWaitedFor) {
  const Region memory = agent_->allocate({.name = "memory", .size = kSize}).value();
  const Transfer transfer = begin(memory);
  disk_->end(0, ECANCELED);  // As the kernel does when it is asked to give it up.
  const Status status = close(30s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(fileio::sweep_leftovers(), 0u);
}

}  // namespace
}  // namespace hawser
