# What every translation unit of this repository is compiled with. Targets take it by linking `hawser_options`.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

find_program(HAWSER_CCACHE ccache)
if(HAWSER_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${HAWSER_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HAWSER_CCACHE}")
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(hawser_options INTERFACE)
target_link_libraries(hawser_options INTERFACE Threads::Threads)
target_compile_options(hawser_options INTERFACE
  # Options and messages are aggregates with defaults: naming some fields only is how they are meant to be written.
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  -fno-omit-frame-pointer
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(hawser_options INTERFACE -Wthread-safety)
else()
  # GCC 12 reports -Wrestrict for std::string's own operator+ (GCC bug 105651).
  target_compile_options(hawser_options INTERFACE -Wno-restrict)
endif()
if(HAWSER_WERROR)
  target_compile_options(hawser_options INTERFACE -Werror)
endif()

# Sanitizers go to every target, GoogleTest included: they see through a library only when it has them too.
if(HAWSER_SANITIZE)
  add_compile_options("-fsanitize=${HAWSER_SANITIZE}" -fno-sanitize-recover=all)
  add_link_options("-fsanitize=${HAWSER_SANITIZE}")
  string(REPLACE "," "_" sanitizers "${HAWSER_SANITIZE}")
  string(TOUPPER "HAWSER_SANITIZE_${sanitizers}" definition)
  add_compile_definitions(${definition}=1)
else()
  add_link_options(-Wl,--as-needed)
endif()
if(HAWSER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HAWSER_FUZZ needs clang for libFuzzer; use the preset 'asan'")
  endif()
endif()
