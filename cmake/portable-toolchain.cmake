# For binaries that run on every Linux from glibc 2.28 on (Debian 10, RHEL 8, Ubuntu 18.10 and later): clang with a C++
# library of its own, which it links statically, and the symbols of that glibc, as the package `ziglang` from the Python
# package index brings them. HAWSER_ZIG is its program `zig`; HAWSER_PORTABLE_TARGET says for which processor.
set(HAWSER_ZIG "" CACHE FILEPATH "The program zig of the Python package ziglang")
set(HAWSER_PORTABLE_TARGET "x86_64-linux-gnu.2.28" CACHE STRING "Processor, system and glibc of portable binaries")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HAWSER_ZIG HAWSER_PORTABLE_TARGET)
if(NOT EXISTS "${HAWSER_ZIG}")
  message(FATAL_ERROR "HAWSER_ZIG='${HAWSER_ZIG}' is not there: `./dev wheel` installs it and sets this")
endif()
string(REGEX MATCH "^[^-]+" processor "${HAWSER_PORTABLE_TARGET}")
if(NOT processor STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR "${processor}")
endif()
set(CMAKE_C_COMPILER "${HAWSER_ZIG}" cc -target "${HAWSER_PORTABLE_TARGET}")
set(CMAKE_CXX_COMPILER "${HAWSER_ZIG}" c++ -target "${HAWSER_PORTABLE_TARGET}")
