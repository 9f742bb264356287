#pragma once

// What tests of judges share: a universe, and two lives without agents.
//
// Thread rule: one thread.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "sim/life.h"
#include "sim/reasons.h"
#include "sim/verdict.h"

namespace hawser::simulation {

struct TwoLives {
  TwoLives() {
    for (Life* life : {&a, &b}) {
      life->number = life == &a ? 0 : 1;
      life->node = life->number;
      life->name = "agent-" + std::to_string(life->number);
      life->incarnation.bytes[0] = static_cast<std::byte>(1 + life->number);
      life->alive = true;
    }
  }
  static constexpr std::uint64_t kPainter = 1'000'000;  ///< Of memory as it is made; no writer has that number.
  static Area& add_area(Life& life, std::size_t size) {
    Area& area = *life.areas.emplace_back(std::make_unique<Area>());
    area.plot = std::make_unique<Plot>(life.name + "/area", size, Rights::kReadWrite, kPainter);
    return area;
  }
  /// As a peer or a device would.
  static void put(Area& area, std::size_t offset, std::uint64_t value) {
    std::memcpy(area.plot->bytes().data() + offset, &value, sizeof(value));
  }

  sim::Universe universe{{.seed = 7, .trace = {}}};
  Verdict verdict{universe};
  Reasons reasons{universe};
  WriterNumbers writers;
  Life a, b;
};

}  // namespace hawser::simulation
