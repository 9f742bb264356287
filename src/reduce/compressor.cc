#include "reduce/compressor.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "reduce/codecs.h"

HAWSER_NAMESPACE_BEGIN

Compressor::Compressor(std::shared_ptr<const Codec> codec, bool feeds_back)
    : state_(codec == nullptr ? nullptr : std::make_shared<State>(std::move(codec), feeds_back)) {}

namespace {

Status check_ratio(const char* name, double ratio) {
  if (ratio > 0 && ratio <= 1) return {};
  return Status(Code::kInvalid,
                std::string(name) + ": the ratio " + std::to_string(ratio) + " is not above 0 and up to 1");
}

}  // namespace

Result<Compressor> Compressor::top_k(double ratio, bool feeds_back) {
  HAWSER_TRY(check_ratio("top_k", ratio));
  return Compressor(reduce::make_top_k(ratio), feeds_back);
}

Result<Compressor> Compressor::random_k(double ratio, std::uint64_t seed, bool feeds_back) {
  HAWSER_TRY(check_ratio("random_k", ratio));
  return Compressor(reduce::make_random_k(ratio, seed), feeds_back);
}

Compressor Compressor::int8(bool feeds_back) { return Compressor(reduce::make_int8(), feeds_back); }

Result<Compressor> Compressor::fp8(DataType type, bool feeds_back) {
  if (type != DataType::kFloat8E4M3 && type != DataType::kFloat8E5M2) {
    return Status(Code::kInvalid, "fp8: " + std::string(to_string(type)) + " is none of f8e4m3 and f8e5m2");
  }
  return Compressor(reduce::make_fp8(type), feeds_back);
}

std::string Compressor::name() const { return valid() ? state_->codec->name() : std::string(); }

std::vector<float> Compressor::residual() const {
  if (!valid()) return {};
  const base::MutexLock lock(state_->mutex);
  return state_->residual;
}

Status Compressor::reset() {
  if (!valid()) return {};
  const base::MutexLock lock(state_->mutex);
  if (state_->is_used) return Status(Code::kBusy, name() + ": a collective that is under way uses it");
  state_->residual.clear();
  state_->count.reset();
  state_->calls = 0;
  return {};
}

HAWSER_NAMESPACE_END

namespace hawser::reduce {

Packing::Packing(std::shared_ptr<Compressor::State> state, std::uint64_t count, DataType type, std::uint64_t number)
    : state_(std::move(state)), count_(count), type_(type), number_(number) {}

Result<std::unique_ptr<Packing>> Packing::begin(const Compressor& compressor, std::uint64_t count, DataType type) {
  const std::shared_ptr<Compressor::State>& state = compressor.state();
  const std::string name = compressor.name();
  const auto invalid = [](const std::string& text) { return Status(Code::kInvalid, text); };
  if (!state->codec->accepts(type)) {
    return invalid(name + " does not pack " + std::string(to_string(type)) + "; it may be f32, f16 or bf16");
  }
  if (count > UINT32_MAX) {
    return invalid(name + ": " + std::to_string(count) + " elements; " + std::to_string(UINT32_MAX) + " are the most");
  }
  const base::MutexLock lock(state->mutex);
  if (state->is_used) {
    return Status(Code::kBusy, name + ": another collective that is under way uses this compressor")
        .with_advice("give each tensor a compressor of its own");
  }
  if (state->count && (*state->count != count || state->type != type)) {
    return invalid(name + ": this compressor is of a tensor of " + std::to_string(*state->count) + " " +
                   std::string(to_string(state->type)) + ", not of " + std::to_string(count) + " " +
                   std::string(to_string(type)))
        .with_advice("give each tensor a compressor of its own, or reset it");
  }
  state->is_used = true;
  return std::unique_ptr<Packing>(new Packing(state, count, type, state->calls));
}

Packing::~Packing() {
  const base::MutexLock lock(state_->mutex);
  state_->is_used = false;
}

std::uint64_t Packing::bytes() const { return codec().packed_bytes(count_, type_); }

Status Packing::pack(const void* elements, std::span<std::byte> out) {
  std::vector<float> values(count_);
  widen(type_, elements, values);
  {
    const base::MutexLock lock(state_->mutex);
    for (std::size_t i = 0; i < state_->residual.size(); ++i) values[i] += state_->residual[i];
  }
  codec().pack(values, type_, number_, out);
  if (!state_->feeds_back) return {};
  HAWSER_TRY(codec().unpack(out, type_, number_, -1.0F, values));
  for (float& value : values) value = std::isfinite(value) ? value : 0.0F;
  left_out_ = std::move(values);
  return {};
}

Status Packing::unpack(std::span<const std::byte> parts, std::uint32_t ranks, bool averages, void* out) const {
  std::vector<float> sum(count_, 0.0F);
  const std::size_t size = bytes();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Status status = codec().unpack(parts.subspan(rank * size, size), type_, number_, 1.0F, sum);
    if (status.ok()) continue;
    return Status(status.code(), "the part of rank " + std::to_string(rank) + ": " + std::string(status.message()));
  }
  if (averages) {
    for (float& each : sum) each /= static_cast<float>(ranks);
  }
  narrow(type_, sum, out);
  return {};
}

void Packing::commit() {
  const base::MutexLock lock(state_->mutex);
  state_->residual = std::move(left_out_);
  state_->count = count_;
  state_->type = type_;
  ++state_->calls;
}

}  // namespace hawser::reduce
