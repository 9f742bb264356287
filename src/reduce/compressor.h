#pragma once

// What a Compressor holds, and the use of it by one collective.
//
// Thread rule: thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hawser/compress.h>

#include "base/mutex.h"

HAWSER_NAMESPACE_BEGIN

struct Compressor::State {
  State(std::shared_ptr<const Codec> its_codec, bool feeds) : codec(std::move(its_codec)), feeds_back(feeds) {}

  const std::shared_ptr<const Codec> codec;
  const bool feeds_back;
  mutable base::Mutex mutex;
  bool is_used HAWSER_GUARDED_BY(mutex) = false;  ///< By a collective that is under way.
  std::uint64_t calls HAWSER_GUARDED_BY(mutex) = 0;
  DataType type HAWSER_GUARDED_BY(mutex) = DataType::kFloat32;  ///< Of the tensor, since the first call,
  std::optional<std::uint64_t> count HAWSER_GUARDED_BY(mutex);  ///< and how many elements it has.
  std::vector<float> residual HAWSER_GUARDED_BY(mutex);
};

HAWSER_NAMESPACE_END

namespace hawser::reduce {

/// One collective's use. It ends without effect unless `commit` was called.
class Packing {
 public:
  /// kInvalid: the codec does not take the type, or the tensor is another one than before. kBusy: another collective
  /// uses it.
  static Result<std::unique_ptr<Packing>> begin(const Compressor& compressor, std::uint64_t count, DataType type);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  std::uint64_t bytes() const;
  std::uint64_t number() const { return number_; }
  const Codec& codec() const { return *state_->codec; }
  /// Packs the elements and what was left out before. `out` has bytes().
  Status pack(const void* elements, std::span<std::byte> out);
  /// Adds up the parts of `ranks` ranks, one behind the other, in their order; divides by their number for an average.
  Status unpack(std::span<const std::byte> parts, std::uint32_t ranks, bool averages, void* out) const;
  /// The collective has ended well: what this rank's part leaves out is kept for the next one.
  void commit();

 private:
  Packing(std::shared_ptr<Compressor::State> state, std::uint64_t count, DataType type, std::uint64_t number);

  const std::shared_ptr<Compressor::State> state_;
  const std::uint64_t count_;
  const DataType type_;
  const std::uint64_t number_;
  std::vector<float> left_out_;
};

}  // namespace hawser::reduce
