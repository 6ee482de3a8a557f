// SPDX-License-Identifier: BSD-2-Clause
// A program as its caller has it: what was written, and what the card knows of it.
#pragma once

#include <cstdint>
#include <vector>

#include "hostlib/handles.h"
#include "hostlib/program.h"

struct peal_program {
  explicit peal_program(const peal::host::Program::Shape& shape) : written(shape) {}

  peal::host::Program written;
  peal_group* group = nullptr;  // that it is committed to
  bool over = false;            // that group is gone, and with it what the card knew of it
  peal::host::Allocation memory;
  peal::host::Allocation work;  // what it needs beside its caller's, if anything
  uint32_t handle = 0;
  uint32_t starts_max = 0;  // that may be outstanding
  uint64_t next_iteration = 0;
  std::vector<uint64_t> started;  // cookies of requests that may be pending
};
