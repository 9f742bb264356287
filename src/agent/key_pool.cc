#include "agent/key_pool.h"

#include <sodium.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <array>

namespace hawser::agent {

/// Zeros, and zeros again in a forked child.
struct KeyPool::Page {
  std::array<unsigned char, crypto_stream_chacha20_KEYBYTES> seed;
  std::array<base::Id128, kKeys> keys;
};

/// Null where the kernel cannot promise that a child finds zeros.
KeyPool::Page* KeyPool::make_page() {
  static_assert(sizeof(Page) <= 4096);
  void* const page = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, sizeof(Page), MADV_WIPEONFORK) != 0) {
    ::munmap(page, sizeof(Page));
    return nullptr;
  }
  ::madvise(page, sizeof(Page), MADV_DONTDUMP);  // Keys that nobody has yet are of no use in a core file.
  return static_cast<Page*>(page);
}

KeyPool::~KeyPool() {
  if (page_ == nullptr) return;
  sodium_memzero(page_, sizeof(Page));
  ::munmap(page_, sizeof(Page));
}

std::size_t KeyPool::left() const { return left_ == 0 || page_->keys[left_ - 1].is_zero() ? 0 : left_; }

bool KeyPool::refill() {
  if (is_refused_) return false;
  if (page_ == nullptr) page_ = make_page();
  is_refused_ = page_ == nullptr;
  if (is_refused_) return false;
  auto& seed = page_->seed;
  if (::getrandom(seed.data(), seed.size(), 0) != static_cast<ssize_t>(seed.size())) return false;
  constexpr std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> kNonce{};  // Each seed is used once.
  auto* const keys = reinterpret_cast<unsigned char*>(page_->keys.data());
  static_cast<void>(crypto_stream_chacha20(keys, sizeof page_->keys, kNonce.data(), seed.data()));  // It cannot fail.
  sodium_memzero(seed.data(), seed.size());
  left_ = page_->keys.size();
  return true;
}

base::Id128 KeyPool::take() {
  // A zero is what a fork leaves; drawn it is never.
  if (left() == 0 && !refill()) return base::random_id128();
  base::Id128& next = page_->keys[--left_];
  const base::Id128 key = next;
  sodium_memzero(&next, sizeof next);
  return key.is_zero() ? base::random_id128() : key;
}

}  // namespace hawser::agent
