#pragma once

// Compressed sums: an all_reduce whose ranks send fewer bytes than their elements have. Each rank packs its elements,
// all ranks get all packed parts, and each adds them up in the order of ranks: so the result has the same bits on all
// ranks. What a rank's packing left out it adds to its next elements (error feedback).
//
// A Compressor is a rank's, for one tensor: it holds what was left out so far. Give each tensor one of its own, made in
// the same way on all ranks, and pass it in CollectiveOptions::compress.
//
// Each rank receives (size - 1) packed parts, where a plain all_reduce receives about two tensors: in worlds of n ranks
// packing pays if it makes less than 2 / n of the bytes.
//
// Rules. Elements are f32, f16 or bf16. Ranks add them as f32 and round the sum once, at the end. The ops are sum and
// avg. top_k and random_k send infinities and NaNs as they are; the quantisers make a block with such an element NaN.
// Such elements are not fed back. The state changes when the collective has ended well, and only then.
//
// Thread rule: thread-safe; one collective at a time uses a Compressor.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/datatype.h>
#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN

/// A way to pack elements. Programs may have their own: it is a pure function, the same on all ranks.
class HAWSER_API Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  /// The way and its parameters. Ranks whose names differ are told that they differ in what they call.
  virtual std::string name() const = 0;
  /// Of f32, f16 and bf16.
  virtual bool accepts(DataType type) const = 0;
  virtual std::uint64_t packed_bytes(std::uint64_t count, DataType type) const = 0;
  /// Writes all of `out`, which has packed_bytes. `number` is 0 in a compressor's first call, then 1 and so on.
  virtual void pack(std::span<const float> values, DataType type, std::uint64_t number,
                    std::span<std::byte> out) const = 0;
  /// Adds factor times each packed value to its place; the factor is 1 or -1. kCorrupt for what `pack` does not write:
  /// the bytes may be another rank's.
  virtual Status unpack(std::span<const std::byte> packed, DataType type, std::uint64_t number, float factor,
                        std::span<float> into) const = 0;
};

class HAWSER_API Compressor {
 public:
  /// Packs nothing: a plain collective.
  Compressor() = default;
  /// With `feeds_back` what packing leaves out is added to the next call's elements, else it is lost.
  explicit Compressor(std::shared_ptr<const Codec> codec, bool feeds_back = true);

  /// The elements of the largest magnitude, ratio * count of them, rounded up, with their places: 4 bytes more for
  /// each. kInvalid: the ratio is not in (0, 1].
  static Result<Compressor> top_k(double ratio, bool feeds_back = true);
  /// One element, drawn at random, of each of ratio * count runs of the same length. All ranks draw the same ones by
  /// the seed, so places are not sent.
  static Result<Compressor> random_k(double ratio, std::uint64_t seed = 0, bool feeds_back = true);
  /// 8 bits for each element, and a scale (f32) for each 256 of them.
  static Compressor int8(bool feeds_back = true);
  /// A floating-point number of 8 bits for each element, and a scale (f32) for each 256 of them. kInvalid: the type is
  /// none of kFloat8E4M3 and kFloat8E5M2.
  static Result<Compressor> fp8(DataType type = DataType::kFloat8E4M3, bool feeds_back = true);

  bool valid() const { return state_ != nullptr; }
  /// "top_k(0.01)". Empty: it packs nothing.
  std::string name() const;
  /// What was left out so far, by element; empty before the first call ended, and without feedback.
  std::vector<float> residual() const;
  /// Forgets it, and the number of calls. All ranks do it at the same place of the program. kBusy: a collective uses
  /// it.
  Status reset();

  struct State;
  /// For the library.
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

HAWSER_NAMESPACE_END
