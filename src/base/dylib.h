#pragma once

// Dylib: a shared library opened at run time (ibverbs, CUDA, UCX), so that one binary runs where it is missing.
//
// Thread rule: open from any thread; afterwards const. Lifetime: symbols are good while the Dylib lives.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/status.h>

namespace hawser::base {

class Dylib {
 public:
  /// Opens the first of `names` that can be opened; the error (kNotFound) has the loader's words for each.
  static Result<Dylib> open(std::span<const std::string_view> names);
  static Result<Dylib> open(std::initializer_list<std::string_view> names) {
    return open(std::span<const std::string_view>(names.begin(), names.size()));
  }

  Dylib(Dylib&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        name_(std::move(other.name_)),
        keep_loaded_(other.keep_loaded_) {}
  Dylib& operator=(Dylib&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    std::swap(keep_loaded_, other.keep_loaded_);
    return *this;
  }
  ~Dylib();

  /// The function or object `name` as a T*: `symbol<int(void)>("f")`. kNotFound names both library and symbol.
  template <typename T>
  Result<T*> symbol(const char* name) const {
    void* address = find(name);
    if (address == nullptr) return missing(name);
    return reinterpret_cast<T*>(address);
  }
  /// Null when it is missing: for what only newer versions have.
  template <typename T>
  T* find_symbol(const char* name) const {
    return reinterpret_cast<T*>(find(name));
  }

  /// For tables of many: fills `*out`, or leaves it and notes the first that is missing.
  template <typename T>
  void bind(const char* name, T** out, Status* first_missing) const {
    if (Result<T*> found = symbol<T>(name); found) {
      *out = *found;
    } else if (first_missing->ok()) {
      *first_missing = found.error();
    }
  }

  /// The name that was opened.
  const std::string& name() const { return name_; }
  /// It stays loaded when this object dies: some libraries have threads or exit handlers of their own.
  void keep_loaded() { keep_loaded_ = true; }

 private:
  Dylib(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* find(const char* name) const;
  Status missing(const char* name) const;

  void* handle_;
  std::string name_;
  bool keep_loaded_ = false;
};

}  // namespace hawser::base
