#include "reduce/codecs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "reduce/small_float.h"

namespace hawser::reduce {
namespace {

template <typename T>
T load(const void* from, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(void* to, std::size_t index, T value) {
  std::memcpy(static_cast<std::byte*>(to) + index * sizeof(T), &value, sizeof(T));
}

float widened(DataType type, const void* from, std::size_t index) {
  if (type == DataType::kFloat16) return Float16::to_float(load<std::uint16_t>(from, index));
  if (type == DataType::kBFloat16) return BFloat16::to_float(load<std::uint16_t>(from, index));
  return load<float>(from, index);
}

void narrowed(DataType type, float value, void* to, std::size_t index) {
  if (type == DataType::kFloat16) return store(to, index, Float16::from_float(value));
  if (type == DataType::kBFloat16) return store(to, index, BFloat16::from_float(value));
  store(to, index, value);
}

bool is_packable(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat16 || type == DataType::kBFloat16;
}

Status not_packed(const std::string& name) {
  return Status(Code::kCorrupt, "another rank's part is none that " + name + " makes");
}

/// ratio * count, rounded up: at least one, unless there is none.
std::uint64_t share(double ratio, std::uint64_t count) {
  const auto chosen = static_cast<std::uint64_t>(std::ceil(ratio * static_cast<double>(count)));
  return std::min(count, std::max<std::uint64_t>(chosen, 1));
}

/// A NaN counts as the largest, so that it is sent and seen.
float magnitude(float value) { return std::isnan(value) ? std::numeric_limits<float>::infinity() : std::abs(value); }

/// Places (u32) in ascending order, then values; where all are chosen, values only.
class TopK final : public Codec {
 public:
  explicit TopK(double ratio) : ratio_(ratio) {}

  std::string name() const override { return fmt::format("top_k({})", ratio_); }
  bool accepts(DataType type) const override { return is_packable(type); }
  std::uint64_t packed_bytes(std::uint64_t count, DataType type) const override {
    const std::uint64_t chosen = share(ratio_, count);
    return chosen * (size_of(type) + (chosen == count ? 0 : sizeof(std::uint32_t)));
  }

  void pack(std::span<const float> values, DataType type, std::uint64_t /*number*/,
            std::span<std::byte> out) const override {
    const std::size_t chosen = share(ratio_, values.size());
    std::vector<std::uint32_t> places(values.size());
    std::iota(places.begin(), places.end(), 0U);
    if (chosen < places.size()) {
      const auto is_first = [&](std::uint32_t a, std::uint32_t b) {
        const float of_a = magnitude(values[a]), of_b = magnitude(values[b]);
        return of_a != of_b ? of_a > of_b : a < b;
      };
      std::nth_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(chosen), places.end(), is_first);
      places.resize(chosen);
      std::ranges::sort(places);
      std::memcpy(out.data(), places.data(), chosen * sizeof(std::uint32_t));
      out = out.subspan(chosen * sizeof(std::uint32_t));
    }
    for (std::size_t i = 0; i < chosen; ++i) narrowed(type, values[places[i]], out.data(), i);
  }

  Status unpack(std::span<const std::byte> packed, DataType type, std::uint64_t /*number*/, float factor,
                std::span<float> into) const override {
    if (packed.size() != packed_bytes(into.size(), type)) return not_packed(name());
    const std::size_t chosen = share(ratio_, into.size());
    const bool has_all = chosen == into.size();
    const std::byte* const values = packed.data() + (has_all ? 0 : chosen * sizeof(std::uint32_t));
    std::uint64_t least = 0;  // Of the next place.
    for (std::size_t i = 0; i < chosen; ++i) {
      const std::uint64_t place = has_all ? i : load<std::uint32_t>(packed.data(), i);
      if (place < least || place >= into.size()) return not_packed(name());
      least = place + 1;
      into[place] += factor * widened(type, values, i);
    }
    return {};
  }

 private:
  double ratio_;
};

class RandomK final : public Codec {
 public:
  RandomK(double ratio, std::uint64_t seed) : ratio_(ratio), seed_(seed) {}

  std::string name() const override { return fmt::format("random_k({}, seed {})", ratio_, seed_); }
  bool accepts(DataType type) const override { return is_packable(type); }
  std::uint64_t packed_bytes(std::uint64_t count, DataType type) const override {
    return share(ratio_, count) * size_of(type);
  }

  void pack(std::span<const float> values, DataType type, std::uint64_t number,
            std::span<std::byte> out) const override {
    for_each(values.size(), number,
             [&](std::size_t i, std::uint64_t place) { narrowed(type, values[place], out.data(), i); });
  }

  Status unpack(std::span<const std::byte> packed, DataType type, std::uint64_t number, float factor,
                std::span<float> into) const override {
    if (packed.size() != packed_bytes(into.size(), type)) return not_packed(name());
    for_each(into.size(), number,
             [&](std::size_t i, std::uint64_t place) { into[place] += factor * widened(type, packed.data(), i); });
    return {};
  }

 private:
  /// A place of each of as many runs as are chosen; the runs' lengths differ by one at most.
  template <typename Visit>
  void for_each(std::uint64_t count, std::uint64_t number, Visit visit) const {
    const std::uint64_t chosen = share(ratio_, count);
    base::Rng rng(seed_ ^ (number * 0x9E3779B97F4A7C15ULL));
    std::uint64_t begin = 0;
    for (std::uint64_t i = 0; i < chosen; ++i) {
      const std::uint64_t length = count / chosen + (i < count % chosen ? 1 : 0);
      visit(i, begin + rng.below(length));
      begin += length;
    }
  }

  double ratio_;
  std::uint64_t seed_;
};

/// An integer of 8 bits, -127 to 127.
struct Integer8 {
  static constexpr float kLargest = 127;
  static std::uint8_t pack(float value) {
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::nearbyint(value)));
  }
  static float unpack(std::uint8_t bits) { return static_cast<float>(static_cast<std::int8_t>(bits)); }
  static constexpr const char* kName = "int8";
};

template <typename Float, int kMost>
struct Small {
  static constexpr float kLargest = kMost;
  static std::uint8_t pack(float value) { return Float::from_float(value); }
  static float unpack(std::uint8_t bits) { return Float::to_float(bits); }
};
struct E4M3 : Small<Float8E4M3, 448> {
  static constexpr const char* kName = "fp8(f8e4m3)";
};
struct E5M2 : Small<Float8E5M2, 57344> {
  static constexpr const char* kName = "fp8(f8e5m2)";
};

/// For each kQuantised elements the scale (f32), by which their bytes are to be multiplied, then the bytes. Without
/// contraction of products and sums, which would give other bits on other processors.
template <typename Number>
class Quantiser final : public Codec {
 public:
  std::string name() const override { return Number::kName; }
  bool accepts(DataType type) const override { return is_packable(type); }
  std::uint64_t packed_bytes(std::uint64_t count, DataType /*type*/) const override {
    return count + (count + kQuantised - 1) / kQuantised * sizeof(float);
  }

  void pack(std::span<const float> values, DataType /*type*/, std::uint64_t /*number*/,
            std::span<std::byte> out) const override {
    while (!values.empty()) {
      const std::span<const float> some = values.first(std::min(values.size(), kQuantised));
      float largest = 0;
      for (const float value : some) largest = std::max(largest, magnitude(value));
      float scale = largest / Number::kLargest;
      // Of numbers below the least normal one the quotient would not be exact enough, or the scale 0.
      if (scale < std::numeric_limits<float>::min()) scale = 0;
      if (!std::isfinite(largest)) scale = std::numeric_limits<float>::quiet_NaN();
      store(out.data(), 0, scale);
      out = out.subspan(sizeof(float));
      for (std::size_t i = 0; i < some.size(); ++i) {
        const float quotient = scale > 0 ? some[i] / scale : 0.0F;
        const float bounded = std::clamp(quotient, -Number::kLargest, Number::kLargest);
        out[i] = static_cast<std::byte>(Number::pack(bounded));
      }
      out = out.subspan(some.size());
      values = values.subspan(some.size());
    }
  }

  Status unpack(std::span<const std::byte> packed, DataType type, std::uint64_t /*number*/, float factor,
                std::span<float> into) const override {
    if (packed.size() != packed_bytes(into.size(), type)) return not_packed(name());
    while (!into.empty()) {
      const std::span<float> some = into.first(std::min(into.size(), kQuantised));
      const auto scale = load<float>(packed.data(), 0);
      packed = packed.subspan(sizeof(float));
      for (std::size_t i = 0; i < some.size(); ++i) {
        const float value = Number::unpack(static_cast<std::uint8_t>(packed[i])) * scale;
        some[i] += factor * value;
      }
      packed = packed.subspan(some.size());
      into = into.subspan(some.size());
    }
    return {};
  }
};

}  // namespace

std::shared_ptr<const Codec> make_top_k(double ratio) { return std::make_shared<TopK>(ratio); }
std::shared_ptr<const Codec> make_random_k(double ratio, std::uint64_t seed) {
  return std::make_shared<RandomK>(ratio, seed);
}
std::shared_ptr<const Codec> make_int8() { return std::make_shared<Quantiser<Integer8>>(); }
std::shared_ptr<const Codec> make_fp8(DataType type) {
  if (type == DataType::kFloat8E5M2) return std::make_shared<Quantiser<E5M2>>();
  return std::make_shared<Quantiser<E4M3>>();
}

void widen(DataType type, const void* from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = widened(type, from, i);
}

void narrow(DataType type, std::span<const float> from, void* to) {
  for (std::size_t i = 0; i < from.size(); ++i) narrowed(type, from[i], to, i);
}

}  // namespace hawser::reduce
