// SPDX-License-Identifier: BSD-2-Clause
// What runs cost the machine: processor time, which what else the machine does leaves alone, and
// memory, all since the object was made.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>

namespace peal::sim {

class RunCost {
 public:
  // Of this process, which has one thread; in seconds.
  [[nodiscard]] double processor_seconds() const { return processor_now() - processor_; }
  // The most that was in use at a time, above what was in use at the beginning.
  [[nodiscard]] uint64_t memory_bytes() const {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const uint64_t most = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    return most > resident_ ? most - resident_ : 0;
  }

 private:
  [[nodiscard]] static double processor_now() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  }
  // Zero where the system does not say.
  [[nodiscard]] static uint64_t resident_now() {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "r"), fclose);
    uint64_t all = 0;
    uint64_t resident = 0;
    if (file == nullptr || std::fscanf(file.get(), "%lu %lu", &all, &resident) != 2) return 0;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }

  double processor_ = processor_now();
  uint64_t resident_ = resident_now();
};

}  // namespace peal::sim
