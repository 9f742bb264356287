#pragma once

// SmallVector: a vector whose first N elements lie in the object itself, for lists that mostly are of one or two. An
// object with several of them is then one allocation, where std::vector makes it one more for each.
//
// Thread rule: as std::vector. Lifetime: moving it moves its elements when they lie inside, so their addresses change.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace hawser::base {

template <typename T, std::size_t N>
class SmallVector {
  static_assert(N > 0 && std::is_nothrow_move_constructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;
  ~SmallVector() { drop(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t at) { return data_[at]; }
  const T& operator[](std::size_t at) const { return data_[at]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  void push_back(T value) {
    if (size_ == capacity_) grow(2 * capacity_);
    ::new (static_cast<void*>(data_ + size_)) T(std::move(value));
    ++size_;
  }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

 private:
  T* inside() { return reinterpret_cast<T*>(small_); }
  bool is_inside() const { return data_ == reinterpret_cast<const T*>(small_); }
  void grow(std::size_t capacity) {
    T* const larger = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data_, size_, larger);
    const std::size_t size = size_;
    drop();
    data_ = larger;
    size_ = size;
    capacity_ = capacity;
  }
  /// This one holds nothing.
  void take(SmallVector& other) noexcept {
    if (other.is_inside()) {
      data_ = inside();
      capacity_ = N;
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.inside());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }
  void drop() noexcept {
    std::destroy_n(data_, size_);
    if (!is_inside()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inside();
    size_ = 0;
    capacity_ = N;
  }

  alignas(T) std::byte small_[N * sizeof(T)];
  T* data_ = inside();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace hawser::base
