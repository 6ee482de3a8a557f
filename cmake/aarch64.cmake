# SPDX-License-Identifier: BSD-2-Clause
# Toolchain for arm64 (a DPU's cores) on an amd64 Debian machine: Debian's cross compiler, and a sysroot
# that cmake/sysroot.sh extracted. What it builds runs under qemu-aarch64-static -L SYSROOT.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(PEAL_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64" CACHE PATH "Extracted arm64 sysroot")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PEAL_SYSROOT)
get_filename_component(peal_sysroot "${PEAL_SYSROOT}" ABSOLUTE)
if(NOT EXISTS "${peal_sysroot}/.peal-sysroot")
  message(FATAL_ERROR "No sysroot at ${peal_sysroot}: run cmake/sysroot.sh ${peal_sysroot} "
    "(./peal build --preset aarch64 does)")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${peal_sysroot})
set(CMAKE_FIND_ROOT_PATH ${peal_sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(ENV{PKG_CONFIG_LIBDIR}
  "${peal_sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${peal_sysroot}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${peal_sysroot}")
set(ENV{PKG_CONFIG_PATH} "")

find_program(PEAL_QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64)
if(PEAL_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${PEAL_QEMU_AARCH64};-L;${peal_sysroot}")
endif()
