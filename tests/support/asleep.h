// SPDX-License-Identifier: BSD-2-Clause
// Does another thread of this process sleep? For tests in which it must, before they go on.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace peal::test {

// As the kernel says it (/proc/self/task/TID/stat): in a call that waits.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name = text.rfind(") ");
  return name != std::string::npos && text[name + 2] == 'S';
}

// The one of that name, or 0.
inline pid_t thread_named(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string text;
    if (std::getline(file, text) && text == name) return std::stoi(task.path().filename());
  }
  return 0;
}

}  // namespace peal::test
