#include "runtime/world_memory.h"

namespace hawser::runtime {

std::vector<MemoryUse> WorldMemory::list() const {
  return {{.kind = "boards", .bytes = boards},     {.kind = "unreceived", .bytes = unreceived},
          {.kind = "receives", .bytes = receives}, {.kind = "pool", .bytes = pool},
          {.kind = "calls", .bytes = calls},       {.kind = "collectives", .bytes = collectives},
          {.kind = "relays", .bytes = relays},     {.kind = "flight recorder", .bytes = flight_recorder}};
}

}  // namespace hawser::runtime
