#pragma once

// Makes the sends and receives of users, of memory in one piece or in several.
//
// Thread rule: pure functions. Lifetime: the memory is the operation's until it has ended.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <hawser/status.h>

#include "runtime/operation.h"

namespace hawser::runtime {

std::shared_ptr<Send> make_send(std::span<const std::byte> bytes);
/// kInvalid: there are more parts than kPiecesMax.
Result<std::shared_ptr<Send>> make_send(std::span<const std::span<const std::byte>> parts);
/// Without `into` a buffer is made once the message's size is known.
std::shared_ptr<Receive> make_receive(std::optional<std::span<std::byte>> into);
Result<std::shared_ptr<Receive>> make_receive(std::span<const std::span<std::byte>> parts);

}  // namespace hawser::runtime
