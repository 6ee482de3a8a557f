// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/unix_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unix_socket.h"

namespace peal::nic {
namespace {

constexpr int kBacklog = 128;
constexpr int kLockPatienceMs = 5000;
constexpr int kLockLookMs = 10;

// Held while a name is taken: no two see the same abandoned socket. A file of its own, not the
// folder: that one may be locked by whoever it belongs to, and anybody may lock /tmp. It goes when
// the name is taken; what a killed process leaves is locked by the next.
class NameLock {
 public:
  explicit NameLock(const std::string& socket) : path_(socket + ".lock") {
    for (int waited = 0; !take() && errno == EWOULDBLOCK && waited < kLockPatienceMs;
         waited += kLockLookMs)
      poll(nullptr, 0, kLockLookMs);
  }
  ~NameLock() {
    if (!held()) return;
    unlink(path_.c_str());
  }
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;
  [[nodiscard]] bool held() const { return fd_.valid(); }

 private:
  static bool is_a_lock(int fd) {
    struct stat info = {};
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0 &&
           info.st_uid == geteuid();
  }

  // A file that its last owner removed meanwhile locks nothing.
  bool take() {
    FileDescriptor file(
        open(path_.c_str(), O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file.valid()) return false;
    if (!is_a_lock(file.get())) {  // somebody's own
      errno = EEXIST;
      return false;
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      struct stat opened = {};
      struct stat named = {};
      if (fstat(file.get(), &opened) == 0 && lstat(path_.c_str(), &named) == 0 &&
          named.st_ino == opened.st_ino && named.st_dev == opened.st_dev) {
        fd_ = std::move(file);
        return true;
      }
      errno = EWOULDBLOCK;
    }
    return false;
  }

  std::string path_;
  FileDescriptor fd_;
};

// A socket, and nobody listens on it.
bool is_abandoned(const UnixAddress& address, int type) {
  struct stat info = {};
  if (lstat(address.name.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const FileDescriptor probe(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.valid() && connect(probe.get(), address.get(), UnixAddress::bytes()) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string UnixListener::listen(const std::string& path, int type, mode_t mode) {
  path_ = path;
  const std::string error = claim(type, mode);
  if (!error.empty()) close();
  return error;
}

std::string UnixListener::claim(int type, mode_t mode) {
  UnixAddress address;
  if (!address.set(path_))
    return "socket path '" + path_ + "' must have 1 to " + std::to_string(kUnixPathMax) +
           " characters";
  const std::string failed = "cannot listen on '" + path_ + "'";
  fd_.reset(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_.valid()) return system_error("cannot create a socket");
  const NameLock lock(path_);
  if (!lock.held()) return system_error(failed + " (cannot take '" + path_ + ".lock')");
  if (is_abandoned(address, type)) unlink(path_.c_str());
  // Nobody else may connect before the mode is what it shall be.
  const mode_t mask = umask(0777 & ~mode);
  const int bound = bind(fd_.get(), address.get(), UnixAddress::bytes());
  const int bind_error = errno;
  umask(mask);
  errno = bind_error;
  if (bound != 0)
    return system_error(failed) +
           (bind_error == EADDRINUSE ? " (another peal-nic? choose another path)" : "");
  struct stat info = {};
  named_ = lstat(path_.c_str(), &info) == 0;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  if (::listen(fd_.get(), kBacklog) != 0) return system_error(failed);
  return {};
}

// The socket still listens, so nobody has taken the name for abandoned.
void UnixListener::remove_name() {
  struct stat info = {};
  if (named_ && lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_)
    unlink(path_.c_str());
  named_ = false;
}

void UnixListener::close() {
  remove_name();
  fd_.reset();
}

int UnixListener::release() {
  remove_name();
  return fd_.release();
}

}  // namespace peal::nic
