# Layers and the library made of them.

define_property(GLOBAL PROPERTY HAWSER_LAYERS BRIEF_DOCS "Layers defined so far, in order")

# hawser_add_layers(<folder>...)
#   Adds the layers' folders under src/ in the given order. A folder that is not there yet is passed over.
function(hawser_add_layers)
  foreach(folder IN LISTS ARGN)
    if(HAWSER_ONLY_LAYERS AND NOT folder IN_LIST HAWSER_ONLY_LAYERS)
      continue()
    endif()
    if(folder IN_LIST HAWSER_SKIP_LAYERS)
      continue()
    endif()
    if(EXISTS "${PROJECT_SOURCE_DIR}/src/${folder}/CMakeLists.txt")
      add_subdirectory("${PROJECT_SOURCE_DIR}/src/${folder}" "${PROJECT_BINARY_DIR}/src/${folder}")
    endif()
  endforeach()
endfunction()

# hawser_compile_alone(<file>...)
#   Unity builds compile these files of the calling folder one by one: their local names clash with those of neighbours.
function(hawser_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# hawser_layer(<name> SOURCES <file>... [DEPENDS <layer>...] [LIBS <library>...] [TESTS <x_test.cc>...]
#              [TEST_LIBS <library>...] [APART])
#   Defines the static library hawser_<name> (header-only without sources) and, from TESTS, the GoogleTest executable
#   <name>_test, run by ctest as unit.<name>. Code includes "base/bytes.h" and <hawser/status.h>. DEPENDS names layers
#   defined before this one; LIBS are CMake libraries, third-party ones as dep::<name>. A layer APART does not go into
#   libhawser.so.
function(hawser_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "APART" "" "SOURCES;DEPENDS;LIBS;TESTS;TEST_LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hawser_layer(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_property(layers GLOBAL PROPERTY HAWSER_LAYERS)
  set(depends "")
  foreach(layer IN LISTS arg_DEPENDS)
    if(NOT layer IN_LIST layers)
      message(FATAL_ERROR "hawser_layer(${name}): DEPENDS ${layer}, which is not a layer defined before it (${layers})")
    endif()
    list(APPEND depends hawser_${layer})
  endforeach()

  if(arg_SOURCES)
    # The objects exist once: the static library is for tests, libhawser.so takes the objects themselves.
    add_library(hawser_${name}_objects OBJECT ${arg_SOURCES})
    _hawser_use(hawser_${name}_objects PRIVATE ${depends} ${arg_LIBS})
    if(HAWSER_FUZZ)
      target_compile_options(hawser_${name}_objects PRIVATE -fsanitize=fuzzer-no-link)  # libFuzzer follows its paths.
    endif()
    add_library(hawser_${name} STATIC $<TARGET_OBJECTS:hawser_${name}_objects>)
    set(scope PUBLIC)
  else()
    add_library(hawser_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(hawser_${name} ${scope}
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_link_libraries(hawser_${name} ${scope} ${depends} ${arg_LIBS} Threads::Threads ${CMAKE_DL_LIBS})
  set_property(GLOBAL APPEND PROPERTY HAWSER_LAYERS ${name})
  if(arg_SOURCES AND NOT arg_APART AND NOT name STREQUAL "cli")
    set_property(GLOBAL APPEND PROPERTY HAWSER_LIBRARY_LAYERS ${name})
    set_property(GLOBAL APPEND PROPERTY HAWSER_LIBRARY_LIBS ${arg_LIBS})
  endif()

  _hawser_keep_threaded(arg_TESTS)
  if(arg_TESTS AND HAWSER_BUILD_TESTS)
    hawser_test(NAME ${name}_test CTEST unit.${name} LABEL unit TIMEOUT 120
                SOURCES ${arg_TESTS} LIBS hawser_${name} ${arg_TEST_LIBS})
  endif()
endfunction()

# _hawser_keep_threaded(<variable>)
#   ThreadSanitizer has nothing to find in a test of one thread, and compiling such tests is most of its suite's time: of the
#   files in the variable, its build keeps those that speak of threads, drivers, processes or a helper that makes them.
function(_hawser_keep_threaded variable)
  if(NOT HAWSER_SANITIZE STREQUAL "thread")
    return()
  endif()
  set(kept "")
  foreach(file IN LISTS ${variable})
    file(STRINGS "${file}" found REGEX "[Tt]hread|[Dd]river|[Dd]riven|async|fork|test_writers|relay\\.h|local_worlds" LIMIT_COUNT 1)
    if(found)
      list(APPEND kept "${file}")
    endif()
  endforeach()
  set(${variable} "${kept}" PARENT_SCOPE)
endfunction()

function(_hawser_use target scope)
  target_include_directories(${target} ${scope}
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_link_libraries(${target} ${scope} ${ARGN} PRIVATE hawser_options)
endfunction()

# hawser_add_library()
#   Defines the target `hawser`, libhawser.so, from all layers but the command line.
function(hawser_add_library)
  get_property(layers GLOBAL PROPERTY HAWSER_LIBRARY_LAYERS)
  if(NOT layers)
    message(STATUS "No layer has sources yet: no libhawser")
    return()
  endif()
  get_property(libs GLOBAL PROPERTY HAWSER_LIBRARY_LIBS)
  list(REMOVE_DUPLICATES libs)
  add_library(hawser SHARED)
  add_library(hawser::hawser ALIAS hawser)
  foreach(layer IN LISTS layers)
    target_sources(hawser PRIVATE $<TARGET_OBJECTS:hawser_${layer}_objects>)
  endforeach()
  target_link_libraries(hawser PRIVATE ${libs} hawser_options ${CMAKE_DL_LIBS})
  if(NOT HAWSER_SANITIZE)
    target_link_options(hawser PRIVATE -Wl,--no-undefined)
  endif()
  # Hidden visibility does not reach the templates of the standard library, which would meet those of other libraries.
  target_link_options(hawser PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libhawser.map")
  set_property(TARGET hawser APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/libhawser.map")
  target_include_directories(hawser INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(hawser INTERFACE cxx_std_20)
  set_target_properties(hawser PROPERTIES
    VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}" LINKER_LANGUAGE CXX)
endfunction()

# hawser_executable(<target> SOURCES <file>... [LIBS <library>...] [OUTPUT_NAME <name>] [INSTALL])
#   A program in build/<preset>/bin: the command line, an example, a benchmark.
function(hawser_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "OUTPUT_NAME" "SOURCES;LIBS")
  add_executable(${target} ${arg_SOURCES})
  _hawser_use(${target} PRIVATE ${arg_LIBS})
  if(arg_OUTPUT_NAME)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME "${arg_OUTPUT_NAME}")
  endif()
  if(arg_INSTALL)
    file(RELATIVE_PATH to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
    install(TARGETS ${target} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT hawser)
  endif()
endfunction()

# hawser_check_public_headers()
#   Compiles each header of include/hawser alone, the C ones as C and as C++: none may lean on what another included.
function(hawser_check_public_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/hawser/*.h")
  set(sources "")
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/include" "${header}")
    string(MAKE_C_IDENTIFIER "${name}" stem)
    set(extensions cc)
    if(name MATCHES "^hawser/(c|c_types|c_world|plugin)\\.h$")
      list(APPEND extensions c)
    endif()
    foreach(extension IN LISTS extensions)
      set(source "${PROJECT_BINARY_DIR}/header_alone/${stem}.${extension}")
      file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${name}>\n#include <${name}>\n")
      list(APPEND sources "${source}")
    endforeach()
  endforeach()
  if(sources)
    add_library(hawser_headers_alone OBJECT ${sources})
    target_include_directories(hawser_headers_alone PRIVATE
      "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
    target_link_libraries(hawser_headers_alone PRIVATE hawser_options)
  endif()
endfunction()
