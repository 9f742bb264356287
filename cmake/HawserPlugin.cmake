# Plug-ins are built by the other compiler than the library (clang++ when that is gcc, else g++): they must get along with
# nothing in common but plugin.h. HAWSER_OTHER_CXX is that compiler, or HAWSER_OTHER_CXX-NOTFOUND.

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(HAWSER_OTHER_CXX_NAME "g++")
else()
  set(HAWSER_OTHER_CXX_NAME "clang++")
endif()
set(names ${HAWSER_OTHER_CXX_NAME})
foreach(version RANGE 30 12 -1)
  list(APPEND names "${HAWSER_OTHER_CXX_NAME}-${version}")
endforeach()
find_program(HAWSER_OTHER_CXX NAMES ${names} DOC "The compiler that plug-ins are built by: another one than the library's")
set(HAWSER_PLUGIN_DIR "${PROJECT_BINARY_DIR}/lib/plugins")

# hawser_plugin(<name> SOURCES <file>... [HEADERS <file>...])
#   Defines the target <name>_plugin, which makes libhawser_backend_<name>.so in HAWSER_PLUGIN_DIR, if there is another
#   compiler. It gets no flag of this build but for warnings as errors: no sanitizer, no include folder but the door's.
function(hawser_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS")
  if(NOT HAWSER_OTHER_CXX)
    message(STATUS "No ${HAWSER_OTHER_CXX_NAME}: plug-in ${name} is not built, its tests will be skipped")
    return()
  endif()
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE sources)
  list(TRANSFORM arg_HEADERS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE headers)
  set(werror "")
  if(HAWSER_WERROR)
    set(werror -Werror)
  endif()
  set(output "${HAWSER_PLUGIN_DIR}/libhawser_backend_${name}.so")
  file(MAKE_DIRECTORY "${HAWSER_PLUGIN_DIR}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${HAWSER_OTHER_CXX}" -std=c++17 -O2 -g1 -Wall -Wextra -Wshadow ${werror} -fPIC -shared -fvisibility=hidden
            "-I${PROJECT_SOURCE_DIR}/include" ${sources} -o "${output}"
    DEPENDS ${sources} ${headers} "${PROJECT_SOURCE_DIR}/include/hawser/plugin.h"
    COMMENT "Building plug-in ${name} by ${HAWSER_OTHER_CXX}"
    VERBATIM)
  add_custom_target(${name}_plugin ALL DEPENDS "${output}")
endfunction()
