#pragma once

// Whole numbers as arguments. An object with an __index__ (int, bool, numpy's integers) is a whole number. If its
// parameter cannot hold it, the caller gets an InvalidError that names the parameter and its bounds; nanobind would say
// that no overload takes "int". For an object that is no number nanobind raises its TypeError.
//
// Thread rule: with Python's lock held.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace hawser::api::python {

namespace nb = nanobind;

std::uint64_t unsigned_of(nb::handle from, std::uint64_t max, const char* what);
std::int64_t signed_of(nb::handle from, const char* what);

/// `what` is the parameter, as in "range: offset".
template <typename T>
T whole_of(nb::handle from, const char* what) {
  if constexpr (std::is_signed_v<T>) {
    static_assert(sizeof(T) == sizeof(std::int64_t));
    return signed_of(from, what);
  } else {
    return static_cast<T>(unsigned_of(from, std::numeric_limits<T>::max(), what));
  }
}

/// A text among a template's arguments.
template <std::size_t N>
struct Named {
  consteval Named(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT(google-explicit-constructor)
  char text[N] = {};
};

template <typename T, Named kWhat>
struct Whole {
  T value = 0;
  operator T() const { return value; }  // NOLINT(google-explicit-constructor)
};

/// None is nothing.
template <typename T, Named kWhat>
struct MaybeWhole : std::optional<T> {
  using std::optional<T>::optional;
};

/// A list, a tuple or another sequence of them.
template <typename T, Named kWhat>
struct Wholes {
  std::vector<T> values;
};

/// None is nothing.
template <typename T, Named kWhat>
struct MaybeWholes : std::optional<std::vector<T>> {
  using std::optional<std::vector<T>>::optional;
};

template <typename T>
std::vector<T> wholes_of(nb::handle from, const char* what) {
  std::vector<T> values;
  for (const nb::handle each : nb::iter(from)) values.push_back(whole_of<T>(each, what));
  return values;
}

/// One number, and no array of them. numpy takes its arrays of one element for numbers, too.
inline bool is_number(nb::handle from) { return PyIndex_Check(from.ptr()) != 0 && PySequence_Check(from.ptr()) == 0; }

inline bool is_sequence(nb::handle from) {
  return PySequence_Check(from.ptr()) != 0 && !PyUnicode_Check(from.ptr()) && !PyBytes_Check(from.ptr());
}

}  // namespace hawser::api::python

namespace nanobind::detail {

/// Keeps what was given. It becomes a value where nanobind makes the call, and there it may raise.
template <typename Its>
struct WholeCaster {
  using Value = Its;
  template <typename>
  using Cast = Value;
  template <typename>
  static constexpr bool can_cast() {
    return true;
  }
  handle given;
};

template <typename T, hawser::api::python::Named kWhat>
struct type_caster<hawser::api::python::Whole<T, kWhat>> : WholeCaster<hawser::api::python::Whole<T, kWhat>> {
  static constexpr auto Name = const_name("int");
  bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept {
    this->given = from;
    return PyIndex_Check(from.ptr()) != 0;
  }
  explicit operator hawser::api::python::Whole<T, kWhat>() {
    return {hawser::api::python::whole_of<T>(this->given, kWhat.text)};
  }
};

template <typename T, hawser::api::python::Named kWhat>
struct has_arg_defaults<hawser::api::python::MaybeWhole<T, kWhat>> : std::true_type {};

template <typename T, hawser::api::python::Named kWhat>
struct type_caster<hawser::api::python::MaybeWhole<T, kWhat>> : WholeCaster<hawser::api::python::MaybeWhole<T, kWhat>> {
  static constexpr auto Name = const_name("int | None");
  bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept {
    this->given = from;
    return from.is_none() || PyIndex_Check(from.ptr()) != 0;
  }
  explicit operator hawser::api::python::MaybeWhole<T, kWhat>() {
    if (this->given.is_none()) return {};
    return hawser::api::python::whole_of<T>(this->given, kWhat.text);
  }
};

template <typename T, hawser::api::python::Named kWhat>
struct type_caster<hawser::api::python::Wholes<T, kWhat>> : WholeCaster<hawser::api::python::Wholes<T, kWhat>> {
  static constexpr auto Name = const_name("collections.abc.Sequence[int]");
  bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept {
    this->given = from;
    return hawser::api::python::is_sequence(from);
  }
  explicit operator hawser::api::python::Wholes<T, kWhat>() {
    return {hawser::api::python::wholes_of<T>(this->given, kWhat.text)};
  }
};

template <typename T, hawser::api::python::Named kWhat>
struct has_arg_defaults<hawser::api::python::MaybeWholes<T, kWhat>> : std::true_type {};

template <typename T, hawser::api::python::Named kWhat>
struct type_caster<hawser::api::python::MaybeWholes<T, kWhat>>
    : WholeCaster<hawser::api::python::MaybeWholes<T, kWhat>> {
  static constexpr auto Name = const_name("collections.abc.Sequence[int] | None");
  bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept {
    this->given = from;
    return from.is_none() || hawser::api::python::is_sequence(from);
  }
  explicit operator hawser::api::python::MaybeWholes<T, kWhat>() {
    if (this->given.is_none()) return {};
    return hawser::api::python::wholes_of<T>(this->given, kWhat.text);
  }
};

}  // namespace nanobind::detail
