# SPDX-License-Identifier: BSD-2-Clause
# Which of Peal's homes can be built here. Each option is on by default where its means are found; asking
# for one by name where they are missing is an error that says what to install.

find_package(PkgConfig)
find_package(Threads)

option(PEAL_FIRMWARE_ONLY "Build only abi/ and firmware/" OFF)
option(PEAL_TESTS "Build the tests" ON)
option(PEAL_FUZZ "Build the libFuzzer targets (clang)" OFF)

if(PEAL_FIRMWARE_ONLY)
  set(PEAL_TESTS OFF)
endif()

# DPDK: the emulator card. Link PkgConfig::DPDK.
if(PKG_CONFIG_FOUND AND NOT PEAL_FIRMWARE_ONLY)
  pkg_check_modules(DPDK QUIET IMPORTED_TARGET GLOBAL libdpdk)
endif()
option(PEAL_DPDK "Build peal-nic, the DPDK card" ${DPDK_FOUND})
if(PEAL_DPDK AND NOT DPDK_FOUND AND NOT PEAL_FIRMWARE_ONLY)
  message(FATAL_ERROR "PEAL_DPDK=ON but libdpdk was not found: install libdpdk-dev (./peal setup does)")
endif()

# Kernel headers: the driver. Those of Debian that suit it, looked for again when they are gone; or PEAL_KERNEL_DIR.
include(KernelHeaders)
set(PEAL_KERNEL_DIR "" CACHE PATH "Kernel build folder for driver/ (default: the installed headers that suit it)")
if(NOT PEAL_KERNEL_DIR AND NOT CMAKE_CROSSCOMPILING)
  if(NOT EXISTS "${PEAL_KERNEL_FOUND}/Makefile")
    file(GLOB peal_kernel_dirs /usr/src/linux-headers-*-amd64)
    peal_choose_kernel(peal_kernel_best ${peal_kernel_dirs})
    set(PEAL_KERNEL_FOUND "${peal_kernel_best}" CACHE INTERNAL "What was found where PEAL_KERNEL_DIR is empty")
  endif()
  set(PEAL_KERNEL_DIR "${PEAL_KERNEL_FOUND}") # the cache keeps what the user said
endif()
set(peal_driver_default OFF)
if(PEAL_KERNEL_DIR AND NOT PEAL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(peal_driver_default ON)
endif()
option(PEAL_DRIVER "Build peal.ko" ${peal_driver_default})
if(PEAL_DRIVER AND NOT EXISTS "${PEAL_KERNEL_DIR}/Makefile")
  message(FATAL_ERROR "PEAL_DRIVER=ON but no kernel headers in '${PEAL_KERNEL_DIR}': install linux-headers-amd64 or set "
    "PEAL_KERNEL_DIR; if it is empty they are looked for")
endif()

# QEMU: the driver's guests.
find_program(PEAL_QEMU_X86_64 qemu-system-x86_64)
set(peal_guest_default OFF)
if(PEAL_DRIVER AND PEAL_DPDK AND PEAL_QEMU_X86_64)
  set(peal_guest_default ON)
endif()
option(PEAL_GUEST "Build and register the guest tests (QEMU)" ${peal_guest_default})
if(PEAL_GUEST AND NOT PEAL_QEMU_X86_64)
  message(FATAL_ERROR "PEAL_GUEST=ON but qemu-system-x86_64 was not found: install qemu-system-x86")
endif()

if(PEAL_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PEAL_FUZZ needs clang (libFuzzer): use the preset 'fuzz'")
endif()

# Another name of add_subdirectory, for folders that were written before all of the tree was there.
function(peal_add_folder folder)
  add_subdirectory(${folder})
endfunction()

# Every program and library that a folder and its sub-folders define.
function(peal_collect_targets folder result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    peal_collect_targets(${below} more)
    list(APPEND targets ${more})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# peal-tests-NAME builds what the tests of tests/FOLDER need, so that a preset that serves one label builds
# only that.
function(peal_add_test_target name folder)
  set(targets)
  get_property(folders DIRECTORY ${PROJECT_SOURCE_DIR}/tests PROPERTY SUBDIRECTORIES)
  if(${PROJECT_SOURCE_DIR}/tests/${folder} IN_LIST folders)
    peal_collect_targets(${PROJECT_SOURCE_DIR}/tests/${folder} targets)
  endif()
  add_custom_target(peal-tests-${name})
  if(targets)
    add_dependencies(peal-tests-${name} ${targets})
  endif()
endfunction()

function(peal_print_summary)
  message(STATUS "Peal ${PROJECT_VERSION}: config ${peal_config_file}")
  message(STATUS "  DPDK card ${PEAL_DPDK}, driver ${PEAL_DRIVER}, guests ${PEAL_GUEST}, "
    "fuzz ${PEAL_FUZZ}, sanitizers '${PEAL_SANITIZE}', freestanding ${PEAL_FREESTANDING}")
endfunction()
