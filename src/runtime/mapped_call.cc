#include "runtime/mapped_call.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/planted.h"
#include "base/try.h"
#include "runtime/digest.h"
#include "schedule/hosts.h"
#include "schedule/mapped.h"

namespace hawser::runtime {
namespace {

using schedule::Buffer;
using What = schedule::Operation;

std::uint64_t sum_of(std::span<const std::uint64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void add(Digest& digest, const std::optional<wire::BufferPlace>& place) {
  const wire::BufferPlace its = place.value_or(wire::BufferPlace());
  digest.add(std::uint64_t{its.index} << 32 | its.generation);
  digest.add(its.key.lo);
  digest.add(its.key.hi);
  digest.add(its.region_size);
}

agent::RegionId id_of(const wire::BufferPlace& place) {
  return {.index = place.index, .generation = place.generation, .key = place.key};
}

}  // namespace

MappedCall::MappedCall(Uses uses, const schedule::Call& call, const std::byte* input, const std::byte* output)
    : uses_(std::move(uses)),
      call_(call),
      mates_(schedule::Hosts::sharing(call.hosts, call.rank, call.size)),
      leader_(call.hosts.empty() ? call.root : schedule::Hosts(call.hosts, call.rank, call.root).mates().world_rank(0)),
      input_(input),
      output_(output),
      own_(wire::kBufferLetterSize),
      letters_(wire::kBufferLetterSize * mates_.size()) {}

std::uint32_t MappedCall::place_of(std::uint32_t rank) const {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(mates_, rank) - mates_.begin());
}

std::uint64_t MappedCall::lent_bytes(std::uint32_t rank, Buffer buffer) const {
  const bool is_input = buffer == Buffer::kInput;
  std::uint64_t count = 0;
  switch (call_.operation) {
    case What::kAllReduce:
      count = call_.count;
      break;
    case What::kReduceScatter:
      count = is_input ? sum_of(call_.counts) : 0;
      break;
    case What::kAllGather:
      if (call_.hosts.empty()) {
        count = is_input ? call_.counts[rank] : 0;
      } else {  // What ranks have brought from other hosts lies in their outputs.
        count = is_input ? 0 : sum_of(call_.counts);
      }
      break;
    case What::kBroadcast:
      count = !is_input && rank == leader_ ? call_.count : 0;
      break;
    default:
      break;
  }
  return count * call_.element_bytes;
}

/// What this rank stores into its output changes nothing that others still read of its input.
bool MappedCall::is_safe() const {
  std::uint64_t written = 0;
  const auto in = reinterpret_cast<std::uintptr_t>(input_), out = reinterpret_cast<std::uintptr_t>(output_);
  std::uintptr_t same = out;  // Where the input may begin although it is a part of the output. A board has no output.
  switch (call_.operation) {
    case What::kAllReduce:
      written = call_.count;
      break;
    case What::kReduceScatter:
      written = call_.counts[call_.rank];
      same = 0;
      break;
    case What::kAllGather:
      written = sum_of(call_.counts);
      same = out + sum_of(std::span(call_.counts).first(call_.rank)) * call_.element_bytes;
      break;
    default:
      return true;
  }
  const std::uint64_t read = lent_bytes(call_.rank, Buffer::kInput);
  const bool overlaps = in < out + written * call_.element_bytes && out < in + read;
  return !overlaps || in == same;
}

schedule::Schedule MappedCall::exchange() const {
  schedule::Schedule made;
  schedule::tell_all(made, schedule::Members::among(mates_, place_of(call_.rank)), wire::kBufferLetterSize);
  return made;
}

schedule::Call MappedCall::exchange_on_boards() const {
  return {.operation = What::kAllGather,
          .rank = place_of(call_.rank),
          .size = static_cast<std::uint32_t>(mates_.size()),
          .counts = std::vector<std::uint64_t>(mates_.size(), wire::kBufferLetterSize)};
}

std::uint64_t MappedCall::own_regions() const {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(call_.operation));
  digest.add(call_.root);
  add(digest, letter_.input);
  add(digest, letter_.output);
  return digest.value();
}

void MappedCall::write_letter() {
  letter_ = {.can_be_mapped = is_safe()};
  const auto find = [&](Buffer buffer, const std::byte* data, std::optional<wire::BufferPlace>& to) {
    const std::uint64_t bytes = lent_bytes(call_.rank, buffer);
    if (bytes == 0 || !letter_.can_be_mapped) return;
    const auto place = uses_.place({data, static_cast<std::size_t>(bytes)});
    letter_.can_be_mapped = place.has_value();
    if (!place) return;
    to = wire::BufferPlace{.index = place->region.index,
                           .generation = place->region.generation,
                           .key = place->region.key,
                           .region_size = place->region_size,
                           .offset = place->offset};
  };
  find(Buffer::kInput, input_, letter_.input);
  find(Buffer::kOutput, output_, letter_.output);
  if (!letter_.can_be_mapped) {
    letter_.input.reset();
    letter_.output.reset();
  } else if (const MappedMemory::Known* const known = uses_.memory.find(own_regions())) {
    look(*known);
  }
  wire::encode(letter_, std::span<std::byte, wire::kBufferLetterSize>(own_));
}

/// What cannot be seen yet is being asked for from now on.
void MappedCall::look(const MappedMemory::Known& known) {
  bool sees_all = true;
  for (const RankRegion& region : known.regions) {
    Result<std::unique_ptr<backend::View>> view = uses_.view(region);
    sees_all = sees_all && view;
    if (view) seen_.push_back({.rank = region.rank, .id = region.id, .view = std::move(*view)});
  }
  if (sees_all) {
    letter_.known = known.number;
  } else {
    seen_.clear();
  }
}

MappedMemory::Known MappedCall::known_by(std::span<const wire::BufferLetter> letters) const {
  MappedMemory::Known known;
  Digest digest;
  for (std::size_t at = 0; at < letters.size(); ++at) {
    const std::uint32_t rank = mates_[at];
    for (const auto& place : {letters[at].input, letters[at].output}) {
      add(digest, place);
      if (!place || rank == call_.rank) continue;
      const RankRegion region{.rank = rank, .id = id_of(*place), .size = place->region_size};
      if (known.regions.empty() || known.regions.back() != region) known.regions.push_back(region);
    }
  }
  known.number = digest.value() | 1;  // 0 stands for nothing.
  return known;
}

Result<bool> MappedCall::decide() {
  std::vector<wire::BufferLetter> letters;
  for (const std::uint32_t rank : mates_) {
    HAWSER_TRY_ASSIGN(letters.emplace_back(), wire::decode_buffer_letter(std::span(letters_).subspan(
                                                  letters.size() * wire::kBufferLetterSize, wire::kBufferLetterSize)));
    const wire::BufferLetter& letter = letters.back();
    if (!letter.can_be_mapped) return false;
    const bool has_all = letter.input.has_value() == (lent_bytes(rank, Buffer::kInput) > 0) &&
                         letter.output.has_value() == (lent_bytes(rank, Buffer::kOutput) > 0);
    if (!has_all) return Status(Code::kCorrupt, "rank " + std::to_string(rank) + " lends other buffers than it must");
  }
  MappedMemory::Known known = known_by(letters);
  const bool all_know = std::ranges::all_of(letters, [&](const auto& each) { return each.known == known.number; });
  if (all_know || base::planted(base::Planted::kMappedUnknowing)) {
    HAWSER_TRY(resolve(letters));
    return true;
  }
  seen_.clear();
  look(known);  // So that they are mapped by the next call.
  seen_.clear();
  uses_.memory.learn(own_regions(), std::move(known));
  return false;
}

const backend::View* MappedCall::view_of(std::uint32_t rank, const agent::RegionId& id) const {
  const auto found = std::ranges::find_if(seen_, [&](const Seen& each) { return each.rank == rank && each.id == id; });
  return found == seen_.end() ? nullptr : found->view.get();
}

Status MappedCall::resolve(std::span<const wire::BufferLetter> letters) {
  inputs_.resize(mates_.size());
  outputs_.resize(mates_.size());
  for (std::size_t at = 0; at < mates_.size(); ++at) {
    const std::uint32_t rank = mates_[at];
    if (rank == call_.rank) continue;
    for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput}) {
      const auto& place = buffer == Buffer::kInput ? letters[at].input : letters[at].output;
      if (!place) continue;
      const backend::View* const view = view_of(rank, id_of(*place));
      const std::uint64_t size = view == nullptr ? 0 : view->bytes().size();
      const bool fits = view != nullptr && place->offset >= view->first() &&
                        backend::in_bounds(place->offset - view->first(), lent_bytes(rank, buffer), size);
      if (!fits && size != 0) {
        return Status(Code::kCorrupt, "rank " + std::to_string(rank) + " lends more than it has mapped");
      }
      (buffer == Buffer::kInput ? inputs_ : outputs_)[at] = {view, fits ? place->offset - view->first() : 0};
    }
  }
  return {};
}

void MappedCall::let_go() {
  for (const Seen& each : seen_) each.view->let_go();
}

const std::byte* MappedCall::there_at(std::uint32_t place, Buffer buffer) const {
  const There& there = (buffer == Buffer::kInput ? inputs_ : outputs_)[place];
  const std::span<const std::byte> bytes = there.view == nullptr ? std::span<const std::byte>() : there.view->bytes();
  return bytes.empty() ? nullptr : bytes.data() + there.at;
}

}  // namespace hawser::runtime
