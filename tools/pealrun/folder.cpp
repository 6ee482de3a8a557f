// SPDX-License-Identifier: BSD-2-Clause
// Making, locking and collecting folders; see folder.h.
#include "tools/pealrun/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace peal::run {
namespace {

constexpr std::string_view kPrefix = "pealrun-";
constexpr std::string_view kPattern = "pealrun-XXXXXX";
constexpr int kTriesMax = 100;

// Locked for us alone, or -1: somebody holds it, or it is no folder of ours.
int lock_folder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat opened = {};
  struct stat named = {};
  // Between its making and its locking another pealrun may have taken it for left behind, and
  // removed it: then the name means nothing any more, or something else.
  const bool ours = fstat(fd, &opened) == 0 && opened.st_uid == geteuid() &&
                    flock(fd, LOCK_EX | LOCK_NB) == 0 && lstat(path.c_str(), &named) == 0 &&
                    named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  if (ours) return fd;
  close(fd);
  return -1;
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

std::string temporary_place() {
  const char* place = getenv("TMPDIR");
  return place != nullptr && *place != '\0' ? place : "/tmp";
}

void collect_left_behind(const std::string& place) {
  DIR* folder = opendir(place.c_str());
  if (folder == nullptr) return;
  std::vector<std::string> found;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name(entry->d_name);
    if (name.size() == kPattern.size() && name.starts_with(kPrefix)) found.emplace_back(name);
  }
  closedir(folder);
  for (const std::string& name : found) {
    std::string path = place;
    path.append("/").append(name);
    const int lock = lock_folder(path);
    if (lock < 0) continue;
    remove_all(path);
    close(lock);
  }
}

Folder::Folder(const std::string& place) {
  collect_left_behind(place);
  for (int i = 0; i < kTriesMax; i++) {
    path_ = place + "/" + std::string(kPattern);
    if (mkdtemp(path_.data()) == nullptr) break;
    lock_ = lock_folder(path_);
    if (lock_ >= 0) return;
    errno = EBUSY;
  }
  path_.clear();
}

Folder::~Folder() {
  if (!path_.empty()) remove_all(path_);
  if (lock_ >= 0) close(lock_);
}

}  // namespace peal::run
