#pragma once

// The ways to pack elements that <hawser/compress.h> offers.
//
// Thread rule: immutable.

#include <cstdint>
#include <memory>
#include <span>

#include <hawser/compress.h>

namespace hawser::reduce {

inline constexpr std::size_t kQuantised = 256;  ///< Elements of one scale.

/// The ratios are in (0, 1].
std::shared_ptr<const Codec> make_top_k(double ratio);
std::shared_ptr<const Codec> make_random_k(double ratio, std::uint64_t seed);
std::shared_ptr<const Codec> make_int8();
/// Of f8e4m3 or f8e5m2.
std::shared_ptr<const Codec> make_fp8(DataType type);

/// f32, f16 and bf16 to float and back, rounded to the nearest.
void widen(DataType type, const void* from, std::span<float> to);
void narrow(DataType type, std::span<const float> from, void* to);

}  // namespace hawser::reduce
