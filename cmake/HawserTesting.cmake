# Tests. Every one has a name <kind>.<what>, a label and a timeout; exit status 77 means skipped.

enable_testing()
if(NOT HAWSER_BUILD_TESTS)
  function(hawser_ctest)  # Benchmarks and examples are tests, too, where there are any.
  endfunction()
  return()
endif()

if(HAWSER_GTEST_FROM_SOURCE)
  if(NOT EXISTS "${HAWSER_GTEST_SOURCE}/CMakeLists.txt")
    message(FATAL_ERROR "No GoogleTest sources in ${HAWSER_GTEST_SOURCE}: install the package googletest")
  endif()
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  add_subdirectory("${HAWSER_GTEST_SOURCE}" "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL SYSTEM)
  foreach(library gtest gmock gtest_main gmock_main)
    get_target_property(includes ${library} INTERFACE_INCLUDE_DIRECTORIES)
    set_target_properties(${library} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${includes}")
  endforeach()
  if(NOT TARGET GTest::gmock_main)
    add_library(GTest::gmock_main ALIAS gmock_main)
  endif()
else()
  find_package(GTest REQUIRED)
endif()

# Code of tests is compiled once and run briefly: optimising it takes longer than it saves.
set(HAWSER_TEST_OPTIONS "$<$<CONFIG:Debug>:-O0>")

set(HAWSER_TEST_RESULTS "${PROJECT_BINARY_DIR}/results")
set(HAWSER_SANITIZER_ENV
  "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allocator_may_return_null=1"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=${PROJECT_SOURCE_DIR}/test/tsan.supp")

# hawser_ctest(<ctest name> LABEL <label> TIMEOUT <seconds> COMMAND <command>... [SERIAL] [ENV <name=value>...])
#   Registers a command with ctest under this repository's rules.
function(hawser_ctest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "LABEL;TIMEOUT" "COMMAND;ENV")
  math(EXPR timeout "${arg_TIMEOUT} * ${HAWSER_TIMEOUT_SCALE}")
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_BINARY_DIR}")
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABEL}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT "GTEST_OUTPUT=xml:${HAWSER_TEST_RESULTS}/${name}.xml;${HAWSER_SANITIZER_ENV};${arg_ENV}")
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# hawser_vm_ctest(<ctest name> KERNEL <6.1|6.12> TIMEOUT <seconds> COMMAND <command>... [ENV <name=value>...])
#   Registers a command that runs, label rdma, in a virtual machine with two Soft-RoCE devices (tools/rdma-vm). It shares the
#   build folder with it, nothing else can be written. The first one of a kernel makes the machine, which takes a minute.
#   A change is tried on one kernel, 6.12; what runs on 6.1 has the label nightly too.
function(hawser_vm_ctest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KERNEL;TIMEOUT" "COMMAND;ENV")
  math(EXPR timeout "${arg_TIMEOUT} + 180")
  hawser_ctest(${name} LABEL rdma TIMEOUT ${timeout} ENV ${arg_ENV}
    COMMAND "${PROJECT_SOURCE_DIR}/tools/rdma-vm/ctest_in_vm" ${arg_KERNEL} ${arg_TIMEOUT} ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES PROCESSORS 2)  # An emulated machine uses two whole.
  if(arg_KERNEL STREQUAL "6.1")
    set_tests_properties(${name} PROPERTIES LABELS "rdma;nightly")
  endif()
endfunction()

# hawser_test(NAME <name> SOURCES <file>... LABEL <unit|conformance|sim|real> TIMEOUT <seconds> [LIBS <library>...]
#             [ARGS <argument>...] [ENV <name=value>...] [SERIAL] [CTEST <ctest name>])
#   A GoogleTest executable <name>, run by ctest as <label>.<name>. It must not bring its own main() unless it links
#   neither gtest_main nor gmock_main by NO_MAIN. SERIAL keeps other tests away while it runs.
function(hawser_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL;NO_MAIN" "NAME;LABEL;TIMEOUT;CTEST" "SOURCES;LIBS;ARGS;ENV")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_LABEL OR NOT arg_TIMEOUT)
    message(FATAL_ERROR "hawser_test(${arg_NAME}): needs NAME, LABEL, TIMEOUT; unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_CTEST)
    set(arg_CTEST ${arg_LABEL}.${arg_NAME})
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_compile_options(${arg_NAME} PRIVATE ${HAWSER_TEST_OPTIONS})
  target_compile_definitions(${arg_NAME} PRIVATE $<$<BOOL:${CMAKE_CROSSCOMPILING}>:HAWSER_EMULATED>)
  if(arg_NO_MAIN)
    _hawser_use(${arg_NAME} PRIVATE ${arg_LIBS} GTest::gmock)
  else()
    _hawser_use(${arg_NAME} PRIVATE ${arg_LIBS} GTest::gmock_main)
  endif()
  set(serial "")
  if(arg_SERIAL)
    set(serial SERIAL)
  endif()
  hawser_ctest(${arg_CTEST} LABEL ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ${serial}
               COMMAND ${arg_NAME} ${arg_ARGS} ENV ${arg_ENV})
endfunction()

# hawser_fuzz_target(<name> SOURCES <file>... [LIBS <library>...] CORPUS <folder>)
#   SOURCES define LLVMFuzzerTestOneInput. The preset `asan` makes a libFuzzer binary, which ctest runs for a few
#   seconds over the corpus; every other preset runs each input of the corpus once, but `tsan`, for a decoder has one thread.
#   Both are fuzz.<name>. Inputs are the files of the folder, and the lines of test/fuzz/found/<name>.hex
#   (tools/fuzz_corpus.py).
function(hawser_fuzz_target name)
  if(HAWSER_SANITIZE STREQUAL "thread")
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;LIBS")
  get_filename_component(corpus "${arg_CORPUS}" ABSOLUTE)
  if(NOT IS_DIRECTORY "${corpus}")
    message(FATAL_ERROR "hawser_fuzz_target(${name}): no corpus in ${corpus}")
  endif()
  set(target fuzz_${name})
  set(lines "${PROJECT_SOURCE_DIR}/test/fuzz/found/${name}.hex")
  if(NOT EXISTS "${lines}")
    set(lines "")
  endif()
  if(HAWSER_FUZZ)
    add_executable(${target} ${arg_SOURCES})
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    set(found "${PROJECT_BINARY_DIR}/corpus/${name}")
    file(MAKE_DIRECTORY "${found}")
    if(lines)
      add_custom_command(TARGET ${target} POST_BUILD
        COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/fuzz_corpus.py" unpack "${lines}" "${found}")
    endif()
    hawser_ctest(fuzz.${name} LABEL fuzz TIMEOUT 60
      COMMAND ${target} -error_exitcode=1 -max_total_time=4 -timeout=5 -rss_limit_mb=2048 -max_len=65536
              "-artifact_prefix=${PROJECT_BINARY_DIR}/fuzz_${name}_" "${found}" "${corpus}")
  else()
    add_executable(${target} ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/test/fuzz/corpus_main.cc")
    hawser_ctest(fuzz.${name} LABEL fuzz TIMEOUT 60 COMMAND ${target} "${corpus}" ${lines})
  endif()
  _hawser_use(${target} PRIVATE ${arg_LIBS})
endfunction()
