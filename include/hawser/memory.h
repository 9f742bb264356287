#pragma once

// Memory as Hawser sees it: regions that an agent registered, ranges of them, and prepared tables of ranges.
//
// A Region owns the registration, not the memory (unless it came from Agent::allocate). Dropping it starts closing;
// `close` waits until nothing on any host uses it. Ranges and tables keep the registration alive, never the memory.
//
// Visibility. Peers with the right to write may change a region at any time. What they wrote is there for this program
// once it took the transfer's notification, saw its signal word grow, or learned of its end in another way; reading it
// before is a race. See transfer.h.
//
// Thread rule: handles are values; one handle may be used by one thread at a time, copies by several.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::agent {
struct LocalRegion;   // A region of this agent.
struct RemoteRegion;  // A region as a peer's card describes it.
struct TableCore;
class Core;
struct PeerCore;
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

class Grant;  // hawser/grant.h
struct GrantOptions;

/// Where bytes live. Open numbers: a plug-in may add kinds.
enum class DeviceKind : std::uint16_t { kHost = 1, kCuda = 2, kFile = 3, kObject = 4, kBlock = 5 };

struct Device {
  DeviceKind kind = DeviceKind::kHost;
  std::uint32_t ordinal = 0;  ///< Which one, for kinds that have several (cuda:1).
  friend bool operator==(const Device&, const Device&) = default;
};
HAWSER_API std::string to_string(Device device);

/// The operations that peers may do in a region. The owner itself may do all.
enum class Rights : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kReadWrite = 3 };
constexpr Rights operator|(Rights a, Rights b) {
  return static_cast<Rights>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool allows(Rights have, Rights want) {
  return (static_cast<std::uint8_t>(have) & static_cast<std::uint8_t>(want)) == static_cast<std::uint8_t>(want);
}

struct RegionOptions {
  std::string name = {};            ///< By which peers look it up; unique in its agent, or empty. At most 255 bytes.
  std::span<std::byte> bytes = {};  ///< The caller's memory; must outlive the region. Not empty.
  Device device = {};               ///< Whose memory it is. A GPU's (kCuda) needs a backend that reaches it.
  Rights rights = Rights::kReadWrite;
  /// False: the card does not list the region, so no peer is told when it comes or goes, and none can look it up. Its
  /// agent uses it as any other, and peers use parts of it by grants (hawser/grant.h). Its name is for errors and logs,
  /// and need not be unique.
  bool listed = true;
};

enum class HugePages : std::uint8_t { kAuto, kOff, kRequire };

struct AllocateOptions {
  std::string name = {};
  std::size_t size = 0;  ///< Bytes; rounded up to whole pages.
  Rights rights = Rights::kReadWrite;
  HugePages huge_pages = HugePages::kAuto;
  bool listed = true;  ///< See RegionOptions.
};

struct LocalRange {
  std::shared_ptr<agent::LocalRegion> region;
  std::uint64_t offset = 0;  ///< Bytes from the region's start.
  std::uint64_t size = 0;    ///< Bytes.
};

struct RemoteRange {
  std::shared_ptr<const agent::RemoteRegion> region;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// A run of device memory that an allocator mapped piece by piece and hands out parts of (PyTorch's expandable
/// segments, whatever uses cuMemMap). Told to backends, a whole segment is registered once, with one key for all
/// regions in it; untold, each region's allocations are registered for themselves.
struct MemorySegment {
  std::span<std::byte> bytes = {};  ///< What is mapped now, without a gap. It may grow at its end.
  Device device = {};               ///< Whose memory it is. Segments of the host are passed over.
  std::uint64_t generation = 0;     ///< Another number once any of it was mapped anew; 0: the allocator cannot tell.
};
/// All segments that there are now, in any order; an error leaves those that were told before.
using SegmentProvider = std::function<Result<std::vector<MemorySegment>>()>;

/// A region as a peer's card describes it.
struct RemoteRegionInfo {
  std::string name;
  std::uint32_t index = 0;  ///< Its number in the card.
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  Device device;
};
/// Of the region that `range` is part of; empty when it names none.
HAWSER_API RemoteRegionInfo region_info(const RemoteRange& range);

/// `count` blocks of `size` bytes; block i starts at `offset + i * stride`.
struct StridedRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t stride = 0;
  std::uint64_t count = 1;
};

/// A prepared, immutable list of ranges of one region, addressed by index. Cheap to copy. A table that could not be
/// made carries the reason: check `status()`, or let the plan that uses it report it.
class HAWSER_API RangeTable {
 public:
  RangeTable() = default;
  explicit RangeTable(std::shared_ptr<const agent::TableCore> core) : core_(std::move(core)) {}

  Status status() const;       ///< Good, or why there is no table.
  std::uint64_t size() const;  ///< Number of ranges (0 when not good).
  bool is_remote() const;
  /// Offset and size of range `index`; kInvalid when there is no such index.
  Result<StridedRange> at(std::uint64_t index) const;
  /// The table's shape as bytes (<= 1 KiB for a strided table of any count), for Peer::import_table at a peer.
  Result<std::string> encode() const;

 private:
  friend struct Inside;
  std::shared_ptr<const agent::TableCore> core_;
};

/// Registered memory of this agent. Move-only.
class HAWSER_API Region {
 public:
  Region() = default;
  explicit Region(std::shared_ptr<agent::LocalRegion> core) : core_(std::move(core)) {}
  Region(Region&&) noexcept = default;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::string_view name() const;
  std::span<std::byte> bytes() const;
  std::uint64_t size() const;
  Rights rights() const;
  Device device() const;
  std::uint32_t index() const;  ///< Its number in the agent's card.
  bool huge_pages() const;      ///< Whether `allocate` got huge pages.
  bool listed() const;          ///< Whether the card lists it.
  /// Good when peers of this host can map the region: allocated memory, and foreign memory that was adopted (see
  /// AgentOptions::adopt). Else why not.
  Status mappable() const;

  LocalRange range(std::uint64_t offset, std::uint64_t size) const;
  /// Blocks of `block_bytes` back to back over the whole region; a rest that is no whole block is left out.
  RangeTable table(std::uint64_t block_bytes) const;
  RangeTable table(std::span<const StridedRange> ranges) const;
  RangeTable table(StridedRange ranges) const { return table(std::span<const StridedRange>(&ranges, 1)); }

  /// Gives the right to a part of the region out as bytes: see hawser/grant.h.
  Result<Grant> grant(std::uint64_t offset, std::uint64_t size, Rights rights, Duration expiry) const;
  Result<Grant> grant(std::uint64_t offset, std::uint64_t size, Rights rights, Duration expiry,
                      const GrantOptions& options) const;

  /// Refuses new uses, revokes all grants of the region, cancels transfers that use it, and waits until nobody touches
  /// the memory any more. Only kOk means that. kTimedOut names who still holds it; call again to wait further.
  Status close(Duration timeout);

 private:
  friend struct Inside;
  std::shared_ptr<agent::LocalRegion> core_;
};

HAWSER_NAMESPACE_END
