#include "backend/shm/stage.h"

#include <array>
#include <string_view>

namespace hawser::backend::shm {
namespace {

using enum Stage;

struct Rule {
  Stage stage;
  StageEvent event;
  StageStep step;
};

constexpr Rule kRules[] = {
    {kConnecting, StageEvent::kSaidHello, {kGreeting, StageAction::kGreet}},
    {kConnecting, StageEvent::kEnded, {kDown, StageAction::kReportDown}},
    {kConnecting, StageEvent::kReleased, {kDown, StageAction::kNone}},
    {kGreeting, StageEvent::kGreeted, {kUp, StageAction::kReportUp}},
    {kGreeting, StageEvent::kEnded, {kDown, StageAction::kReportDown}},
    {kGreeting, StageEvent::kReleased, {kDown, StageAction::kNone}},
    {kUp, StageEvent::kEnded, {kDraining, StageAction::kDrain}},
    {kUp, StageEvent::kReleased, {kDown, StageAction::kNone}},
    {kDraining, StageEvent::kDrained, {kDown, StageAction::kReportDown}},
    {kDraining, StageEvent::kReleased, {kDown, StageAction::kNone}},
};

using Steps = std::array<std::array<StageStep, kStageEvents>, kStages>;

constexpr Steps make_steps() {
  Steps steps{};
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    for (StageStep& step : steps[stage]) step.next = static_cast<Stage>(stage);
  }
  for (const Rule& rule : kRules) {
    steps[static_cast<std::size_t>(rule.stage)][static_cast<std::size_t>(rule.event)] = rule.step;
  }
  return steps;
}

constexpr Steps kSteps = make_steps();

using enum Reading;
// By stage; columns: open, accept, bind, bound, bye. A goodbye counts to the end: it says how the peer left.
constexpr std::array<std::array<Reading, kPacketKinds>, kStages> kReadings = {{
    {kPassOver, kPassOver, kPassOver, kPassOver, kTake},
    {kPassOver, kTake, kPassOver, kPassOver, kTake},
    {kCorrupt, kCorrupt, kTake, kTake, kTake},
    {kPassOver, kPassOver, kPassOver, kPassOver, kTake},
    {kPassOver, kPassOver, kPassOver, kPassOver, kTake},
}};

constexpr std::array<std::string_view, kStages> kStageNames = {"connecting", "greeting", "up", "draining", "down"};
constexpr std::array<std::string_view, kStageEvents> kEventNames = {"said hello", "greeted", "ended", "drained",
                                                                    "released"};
constexpr std::array<std::string_view, 5> kActionNames = {"nothing", "greet", "report up", "drain", "report down"};
constexpr std::array<std::string_view, kPacketKinds> kPacketNames = {"open", "accept", "bind", "bound", "bye"};
constexpr std::array<std::string_view, 3> kReadingNames = {"pass over", "take", "corrupt"};

void add_cell(std::string& text, std::string_view cell) {
  constexpr std::size_t kWidth = 12;
  text.append(cell).append(kWidth - cell.size(), ' ');
}

}  // namespace

const StageStep& step(Stage stage, StageEvent event) {
  return kSteps[static_cast<std::size_t>(stage)][static_cast<std::size_t>(event)];
}

Reading reading(Stage stage, PacketKind packet) {
  return kReadings[static_cast<std::size_t>(stage)][static_cast<std::size_t>(packet)];
}

std::string stage_table() {
  std::string text;
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    for (std::size_t event = 0; event < kStageEvents; ++event) {
      const StageStep& taken = kSteps[stage][event];
      if (static_cast<std::size_t>(taken.next) == stage && taken.action == StageAction::kNone) continue;
      add_cell(text, kStageNames[stage]);
      add_cell(text, kEventNames[event]);
      add_cell(text, kStageNames[static_cast<std::size_t>(taken.next)]);
      text.append(kActionNames[static_cast<std::size_t>(taken.action)]).push_back('\n');
    }
  }
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    for (std::size_t packet = 0; packet < kPacketKinds; ++packet) {
      add_cell(text, kStageNames[stage]);
      add_cell(text, kPacketNames[packet]);
      text.append(kReadingNames[static_cast<std::size_t>(kReadings[stage][packet])]).push_back('\n');
    }
  }
  return text;
}

}  // namespace hawser::backend::shm
