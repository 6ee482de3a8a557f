// SPDX-License-Identifier: BSD-2-Clause
// A folder of a test's own, which goes with it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace peal::nic::test {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(::testing::TempDir() + "peal-" + name + "-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace peal::nic::test
