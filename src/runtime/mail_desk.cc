#include "runtime/mail_desk.h"

namespace hawser::runtime {

bool ClassDesk::note_freed_by_peer(std::size_t bytes, std::size_t messages) {
  if (bytes > eager_bytes || messages > eager_messages) return false;
  eager_bytes -= bytes;
  eager_messages -= messages;
  return true;
}

void ClassDesk::note_taken(std::size_t bytes) {
  kept_bytes -= bytes;
  --kept_messages;
  note_freed(bytes);
}

void ClassDesk::forget() {
  words.clear();
  last_words.clear();
  eager_bytes = eager_messages = kept_bytes = kept_messages = 0;
  freed_bytes = freed_messages = 0;
}

std::size_t MailDesk::words() const {
  std::size_t count = 0;
  for (const ClassDesk& each : classes) count += each.words.size() + each.last_words.size();
  return count;
}

void MailDesk::forget() {
  for (ClassDesk& each : classes) each.forget();
  last.clear();
  early.clear();
  kept_asks.clear();
}

}  // namespace hawser::runtime
