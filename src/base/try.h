#pragma once

// Early return of errors, for functions that return Status or Result.
//
//   HAWSER_TRY(store.open());                        // a Status; returns it when it is not good
//   HAWSER_TRY_ASSIGN(auto fd, open_file(path));     // a Result; declares fd or returns the error

#include <utility>

#include <hawser/status.h>

#define HAWSER_TRY_NAME2(prefix, line) prefix##line
#define HAWSER_TRY_NAME(prefix, line) HAWSER_TRY_NAME2(prefix, line)

#define HAWSER_TRY(expression)                                                                                \
  do {                                                                                                        \
    if (::hawser::Status hawser_try_status = (expression); !hawser_try_status.ok()) return hawser_try_status; \
  } while (false)

#define HAWSER_TRY_ASSIGN(declaration, expression) \
  HAWSER_TRY_ASSIGN2(HAWSER_TRY_NAME(hawser_try_result_, __LINE__), declaration, expression)
#define HAWSER_TRY_ASSIGN2(result, declaration, expression) \
  auto result = (expression);                               \
  if (!result.has_value()) return result.error();           \
  declaration = *std::move(result)
