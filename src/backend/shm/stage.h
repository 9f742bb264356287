#pragma once

// The life of a path of shm as tables: its stages with what moves it on, and which packets count in which stage.
//
// The tables are the whole machine; their test holds a golden copy of every pair. ShmPath does what they say.
//
// Thread rule: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <string>

namespace hawser::backend::shm {

enum class Stage : std::uint8_t {
  kConnecting = 0,  ///< The peer's socket did not take us yet.
  kGreeting = 1,    ///< Hello is said, or an opener's was heard and is not answered yet.
  kUp = 2,
  kDraining = 3,  ///< Over; what the peer sent before is still read.
  kDown = 4,
};
inline constexpr std::size_t kStages = 5;

enum class StageEvent : std::uint8_t {
  kSaidHello = 0,
  kGreeted = 1,   ///< Both hellos were good.
  kEnded = 2,     ///< The peer left or broke the rules, a deadline passed, or this agent gives the path up.
  kDrained = 3,   ///< Nothing more is in the peer's ring.
  kReleased = 4,  ///< The agent forgot the path and is told nothing more.
};
inline constexpr std::size_t kStageEvents = 5;

enum class StageAction : std::uint8_t {
  kNone = 0,  ///< And the stage stays: the event means nothing here. (Or it was released.)
  kGreet = 1,
  kReportUp = 2,
  kDrain = 3,
  kReportDown = 4,
};

struct StageStep {
  Stage next = Stage::kConnecting;
  StageAction action = StageAction::kNone;
};
const StageStep& step(Stage stage, StageEvent event);

/// In the order of Control.
enum class PacketKind : std::uint8_t { kOpen = 0, kAccept = 1, kBind = 2, kBound = 3, kBye = 4 };
inline constexpr std::size_t kPacketKinds = 5;

enum class Reading : std::uint8_t {
  kPassOver = 0,  ///< An answer that nobody waits for any more.
  kTake = 1,
  kCorrupt = 2,  ///< Ends the path.
};
Reading reading(Stage stage, PacketKind packet);

/// Both tables as text: one line per stage and event that does anything, then one per stage and packet.
std::string stage_table();

}  // namespace hawser::backend::shm
