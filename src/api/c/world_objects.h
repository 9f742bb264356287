#pragma once

// The objects behind the handles of the C ABI of worlds, and what its functions share.
//
// Thread rule: as objects.h.

#include <hawser/c_world.h>
#include <hawser/world.h>

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/c/objects.h"
#include "base/mutex.h"

namespace hawser::api {

struct WorldObject final : OwnObject {
  static constexpr std::uint8_t kKind = 12;
  static constexpr std::string_view kName = "world";
  explicit WorldObject(World its) : world(std::move(its)) {}
  ~WorldObject() override;

  World world;
  std::atomic<bool> closed{false};
};

struct RequestObject final : OwnObject {
  static constexpr std::uint8_t kKind = 13;
  static constexpr std::string_view kName = "request";
  explicit RequestObject(Request its) : request(std::move(its)) {}
  ~RequestObject() override;

  Request request;
};

/// A handler's answer, while it runs.
struct AnswerObject final : OwnObject {
  static constexpr std::uint8_t kKind = 14;
  static constexpr std::string_view kName = "answer";
  base::Mutex mutex;
  CallAnswer bytes HAWSER_GUARDED_BY(mutex);
  Status failure HAWSER_GUARDED_BY(mutex);
};

struct CompressorObject final : OwnObject {
  static constexpr std::uint8_t kKind = 15;
  static constexpr std::string_view kName = "compressor";
  explicit CompressorObject(Compressor its) : compressor(std::move(its)) {}

  Compressor compressor;
};

struct PoolObject final : OwnObject {
  static constexpr std::uint8_t kKind = 18;
  static constexpr std::string_view kName = "pool";
  explicit PoolObject(BufferPool its) : pool(std::move(its)) {}

  BufferPool pool;
};

/// The one that an option names; none for the handle 0.
Result<Compressor> compressor_of(const char* call, const hawser_operation_options& options);
Result<hawser_operation_options> operation_options(const char* call, const hawser_operation_options* options);

/// Waits for what was begun.
Status finish(Result<Request> begun);
/// Gives a handle of it.
Status hand_out(const char* call, Result<Request> begun, hawser_request* out);

hawser_received received_of(const Received& received);

/// Fills a list of the caller's.
Status give_ranks(const char* call, const std::vector<std::uint32_t>& from, std::uint32_t* ranks, std::size_t capacity,
                  std::size_t* count);

}  // namespace hawser::api
