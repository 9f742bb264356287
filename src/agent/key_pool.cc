#include "agent/key_pool.h"

#include <sodium.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <utility>

namespace hawser::agent {
namespace {

constexpr std::size_t kKeyBytes = KeyPool::kKeys * sizeof(base::Id128);

/// Zeros. Null where the kernel cannot promise that a child finds zeros again.
base::Id128* make_page() {
  void* const page = ::mmap(nullptr, kKeyBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, kKeyBytes, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kKeyBytes);
    return nullptr;
  }
  ::madvise(page, kKeyBytes, MADV_DONTDUMP);  // Keys that nobody has yet are of no use in a core file.
  return static_cast<base::Id128*>(page);
}

}  // namespace

KeyPool::~KeyPool() {
  if (keys_ == nullptr) return;
  sodium_memzero(keys_, kKeyBytes);
  ::munmap(keys_, kKeyBytes);
}

std::size_t KeyPool::left() const { return left_ == 0 || keys_[left_ - 1].is_zero() ? 0 : left_; }

bool KeyPool::refill() {
  if (is_refused_) return false;
  if (keys_ == nullptr) keys_ = make_page();
  is_refused_ = keys_ == nullptr;
  if (is_refused_) return false;
  // A signal may cut so many bytes short: then there are fewer.
  const ssize_t got = ::getrandom(keys_, kKeyBytes, 0);
  left_ = got > 0 ? static_cast<std::size_t>(got) / sizeof(base::Id128) : 0;
  return left_ != 0;
}

base::Id128 KeyPool::take() {
  // A zero is what a fork leaves; drawn it is never.
  if (left() == 0 && !refill()) return base::random_id128();
  base::Id128& next = keys_[--left_];
  const base::Id128 key = next;
  sodium_memzero(&next, sizeof next);
  return key.is_zero() ? base::random_id128() : key;
}

}  // namespace hawser::agent
