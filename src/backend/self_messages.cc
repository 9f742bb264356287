#include "backend/self_messages.h"

#include <utility>

namespace hawser::backend {

bool SelfMessages::push(std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t size = head.size() + body.size();
  if (messages_.size() == kCountMax || bytes_ + size > kBytesMax) return false;
  std::string& message = messages_.emplace_back();
  message.reserve(size);
  for (const auto& part : {head, body}) message.append(reinterpret_cast<const char*>(part.data()), part.size());
  bytes_ += size;
  return true;
}

bool SelfMessages::take(std::string* out) {
  if (messages_.empty()) return false;
  *out = std::move(messages_.front());
  messages_.pop_front();
  bytes_ -= out->size();
  return true;
}

}  // namespace hawser::backend
