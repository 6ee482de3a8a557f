// SPDX-License-Identifier: BSD-2-Clause
// The job's private folder, for its sockets: pealrun-XXXXXX in the temporary place. Its owner holds
// a lock on it (flock) as long as it lives, however it dies, so the next pealrun can tell the
// folders that a killed one left behind, and removes them.
#pragma once

#include <string>

namespace peal::run {

// $TMPDIR, or /tmp.
std::string temporary_place();
// Removes this user's folders there whose owner is dead.
void collect_left_behind(const std::string& place);

class Folder {
 public:
  // Collects first. An empty path() says that it could not be made; errno then says why.
  explicit Folder(const std::string& place);
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // the folder itself
};

}  // namespace peal::run
