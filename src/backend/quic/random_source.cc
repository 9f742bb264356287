#include "backend/quic/random_source.h"

#include <sodium.h>

namespace hawser::backend::quic {
namespace {

class SecureRandom final : public RandomSource {
 public:
  void fill(std::span<std::uint8_t> bytes) override { randombytes_buf(bytes.data(), bytes.size()); }
};

}  // namespace

RandomSource& secure_random() {
  static SecureRandom source;
  return source;
}

}  // namespace hawser::backend::quic
