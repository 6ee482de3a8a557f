// SPDX-License-Identifier: BSD-2-Clause
// memfd, seals, and the link that names it.
#include "emulator/nic/pci/guest_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace peal::nic {
namespace {

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), target, sizeof(target));
  return length < 0 ? std::string() : std::string(target, static_cast<size_t>(length));
}

// A link that a killed card left: into /proc, and leading nowhere.
bool is_left_over(const std::string& path) {
  struct stat info = {};
  return read_link(path).rfind("/proc/", 0) == 0 && stat(path.c_str(), &info) != 0;
}

}  // namespace

std::unique_ptr<GuestMemory> GuestMemory::create(const std::string& path, uint64_t bytes,
                                                 std::string* error) {
  std::unique_ptr<GuestMemory> memory(new GuestMemory(path, bytes));
  *error = memory->open();
  if (error->empty()) *error = memory->link();
  if (!error->empty()) return nullptr;
  return memory;
}

std::string GuestMemory::open() {
  fd_ = memfd_create("peal-guest-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0) return system_error("cannot create the guest's memory");
  if (ftruncate(fd_, static_cast<off_t>(bytes_)) != 0)
    return system_error("cannot make the guest's memory " + std::to_string(bytes_) + " bytes");
  void* const base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED)
    return system_error("cannot map the guest's memory (" + std::to_string(bytes_) + " bytes)");
  base_ = static_cast<uint8_t*>(base);
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_error("cannot seal the guest's memory");
  return {};
}

std::string GuestMemory::link() {
  target_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
  if (is_left_over(path_)) unlink(path_.c_str());
  if (symlink(target_.c_str(), path_.c_str()) == 0) return {};
  std::string error = system_error("cannot create '" + path_ + "'");
  if (errno == EEXIST) error += "; remove it or choose another RAMFILE";
  target_.clear();
  return error;
}

void GuestMemory::unlink_name() {
  if (!target_.empty() && read_link(path_) == target_) unlink(path_.c_str());
  target_.clear();
}

GuestMemory::~GuestMemory() {
  unlink_name();
  if (base_ != nullptr) munmap(base_, bytes_);
  if (fd_ >= 0) close(fd_);
}

}  // namespace peal::nic
