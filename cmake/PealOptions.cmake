# SPDX-License-Identifier: BSD-2-Clause
# Language, warnings, instruction set and sanitizers. They are set for the whole tree, so that no target
# escapes by forgetting to link something; peal_options exists to be linked by name, and peal_strict
# adds the conversion warnings that firmware/ and abi/ live under.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(THREADS_PREFER_PTHREAD_FLAG ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
endif()
# Assertions stay on in release builds, so no NDEBUG. Functions and lines are what backtraces, profiles and sanitizers need
# of debug information; all of it takes a quarter more of the compiler's time. (For a debugger's variables, add -g to
# PEAL_ARCH_FLAGS.)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer")

option(PEAL_WERROR "Warnings are errors" ON)
option(PEAL_FREESTANDING "Compile without a hosted C++ library: no exceptions, RTTI or heap" OFF)
set(PEAL_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize=, for example address,undefined")

# CRC32C instructions are in every machine we aim at: x86-64-v2 (2009 on), and Armv8 with crc.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(peal_default_arch -march=x86-64-v2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(peal_default_arch -march=armv8-a+crc)
endif()
set(PEAL_ARCH_FLAGS "${peal_default_arch}" CACHE STRING "Instruction set flags")

# No fused multiply-add: a seed must mean the same on every machine, cost model included.
add_compile_options(${PEAL_ARCH_FLAGS} -ffp-contract=off -Wall -Wextra -Wshadow)
if(PEAL_WERROR)
  add_compile_options(-Werror)
endif()

if(PEAL_SANITIZE)
  add_compile_options(-fsanitize=${PEAL_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PEAL_SANITIZE})
  # A program in C uses a library in C++, whose checks have a part of the run time of their own.
  if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    add_link_options(-fsanitize-link-c++-runtime)
    link_libraries(stdc++)
  endif()
  if(PEAL_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# A card that runs without a loader has no table of offsets, which position-independent code wants where it takes the
# address of a function: its firmware lies where it was linked for.
if(PEAL_FREESTANDING)
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  add_compile_options(-fno-pie -ffreestanding -fno-asynchronous-unwind-tables -fno-stack-protector
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-threadsafe-statics>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-use-cxa-atexit>)
endif()

add_library(peal_options INTERFACE)
target_compile_features(peal_options INTERFACE cxx_std_20)
target_compile_options(peal_options INTERFACE -Wall -Wextra -Wshadow)

add_library(peal_strict INTERFACE)
target_link_libraries(peal_strict INTERFACE peal_options)
target_compile_options(peal_strict INTERFACE -Wconversion)
