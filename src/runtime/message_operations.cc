#include "runtime/message_operations.h"

#include <string>
#include <utility>

namespace hawser::runtime {
namespace {

template <typename Part>
Result<std::unique_ptr<Pieces>> pieces_of(const char* call, std::span<const Part> parts) {
  if (parts.size() > kPiecesMax) {
    return Status(Code::kInvalid, std::string(call) + ": the message has " + std::to_string(parts.size()) + " parts, " +
                                      std::to_string(kPiecesMax) + " are the most");
  }
  auto pieces = std::make_unique<Pieces>();
  for (const Part& part : parts) pieces->add(part);
  return pieces;
}

}  // namespace

std::shared_ptr<Send> make_send(std::span<const std::byte> bytes) {
  auto send = std::make_shared<Send>();
  send->envelope.bytes = bytes.size();
  send->data = bytes.data();
  return send;
}

Result<std::shared_ptr<Send>> make_send(std::span<const std::span<const std::byte>> parts) {
  Result<std::unique_ptr<Pieces>> pieces = pieces_of("send", parts);
  if (!pieces) return pieces.error();
  auto send = std::make_shared<Send>();
  send->envelope.bytes = (*pieces)->bytes();
  send->data = (*pieces)->run(0).data();
  if ((*pieces)->count() > 1) send->pieces = std::move(*pieces);
  return send;
}

std::shared_ptr<Receive> make_receive(std::optional<std::span<std::byte>> into) {
  auto receive = std::make_shared<Receive>();
  receive->has_buffer = into.has_value();
  if (into) {
    receive->data = into->data();
    receive->capacity = into->size();
  }
  return receive;
}

Result<std::shared_ptr<Receive>> make_receive(std::span<const std::span<std::byte>> parts) {
  Result<std::unique_ptr<Pieces>> pieces = pieces_of("receive", parts);
  if (!pieces) return pieces.error();
  auto receive = std::make_shared<Receive>();
  receive->capacity = (*pieces)->bytes();
  receive->data = const_cast<std::byte*>((*pieces)->run(0).data());  // The caller's span says that it may be written.
  if ((*pieces)->count() > 1) receive->pieces = std::move(*pieces);
  return receive;
}

}  // namespace hawser::runtime
