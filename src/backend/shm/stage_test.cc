#include "backend/shm/stage.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <variant>

#include "backend/shm/control.h"

namespace hawser::backend::shm {
namespace {

// What stands here is all that happens: every other pair of stage and event changes nothing.
constexpr std::string_view kGolden = R"(connecting  said hello  greeting    greet
connecting  ended       down        report down
connecting  released    down        nothing
greeting    greeted     up          report up
greeting    ended       down        report down
greeting    released    down        nothing
up          ended       draining    drain
up          released    down        nothing
draining    drained     down        report down
draining    released    down        nothing
connecting  open        pass over
connecting  accept      pass over
connecting  bind        pass over
connecting  bound       pass over
connecting  bye         take
greeting    open        pass over
greeting    accept      take
greeting    bind        pass over
greeting    bound       pass over
greeting    bye         take
up          open        corrupt
up          accept      corrupt
up          bind        take
up          bound       take
up          bye         take
draining    open        pass over
draining    accept      pass over
draining    bind        pass over
draining    bound       pass over
draining    bye         take
down        open        pass over
down        accept      pass over
down        bind        pass over
down        bound       pass over
down        bye         take
)";

TEST(ShmStage, GoldenTable) { EXPECT_EQ(stage_table(), kGolden); }

// Whatever happens, a path that the agent holds is reported down exactly once, and up at most once and before that.
TEST(ShmStage, EveryLifeIsReportedOnce) {
  constexpr int kLong = 6;
  const auto live = [](auto&& self, Stage stage, int left, int ups, int downs) -> void {
    ASSERT_LE(ups, 1);
    ASSERT_LE(downs, 1);
    ASSERT_TRUE(downs == 0 || stage == Stage::kDown);
    if (left == 0) return;
    for (std::size_t event = 0; event < kStageEvents; ++event) {
      const StageStep& taken = step(stage, static_cast<StageEvent>(event));
      ASSERT_TRUE(taken.action != StageAction::kReportUp || downs == 0);
      self(self, taken.next, left - 1, ups + (taken.action == StageAction::kReportUp ? 1 : 0),
           downs + (taken.action == StageAction::kReportDown ? 1 : 0));
    }
  };
  live(live, Stage::kConnecting, kLong, 0, 0);
  live(live, Stage::kGreeting, kLong, 0, 0);  // An inbound path begins here.
}

TEST(ShmStage, PacketsAreInTheOrderOfControl) {
  static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(PacketKind::kOpen), Control>, Open>);
  static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(PacketKind::kAccept), Control>, Accept>);
  static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(PacketKind::kBind), Control>, Bind>);
  static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(PacketKind::kBound), Control>, Bound>);
  static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(PacketKind::kBye), Control>, Bye>);
  static_assert(std::variant_size_v<Control> == kPacketKinds);
}

}  // namespace
}  // namespace hawser::backend::shm
