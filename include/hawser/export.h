#pragma once

// Marks what libhawser.so exports; all else has hidden visibility.
#if defined(__GNUC__)
#define HAWSER_API [[gnu::visibility("default")]]
#else
#define HAWSER_API
#endif

// The C++ door is source-compatible within this inline namespace only; the C ABI is what stays stable.
#define HAWSER_NAMESPACE_BEGIN \
  namespace hawser {           \
  inline namespace v0 {
#define HAWSER_NAMESPACE_END \
  }                          \
  }
