// SPDX-License-Identifier: BSD-2-Clause
// Addresses and sockets of the out-of-band exchange; see oob_protocol.h.
#include "hostlib/oob_protocol.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/clock.h"
#include "base/unix_socket.h"

namespace peal::host {
namespace {

constexpr std::string_view kServe = ",serve";

void limit_connecting(int fd, uint64_t deadline_ms) {
  timeval wait = {};  // zero is for ever
  if (deadline_ms != kOobForEver) {
    const uint64_t now = monotonic_ms();
    const uint64_t left_ms = deadline_ms > now ? deadline_ms - now : 0;
    wait.tv_sec = static_cast<time_t>(left_ms / 1000);
    wait.tv_usec = left_ms == 0 ? 1 : static_cast<suseconds_t>(left_ms % 1000 * 1000);
  }
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

void set_tcp_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));  // a machine that vanished
}

// Applies connect or bind+listen to each resolved address until one works.
template <typename Try>
int with_resolved(const OobAddress& address, int flags, Try attempt) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host_or_path.c_str(), address.port.c_str(), &hints, &found) != 0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  int result = -1;
  int error = ECONNREFUSED;
  for (addrinfo* each = found; each != nullptr && result < 0; each = each->ai_next) {
    FileDescriptor fd(socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
    if (fd.valid()) set_tcp_options(fd.get());
    if (fd.valid() && attempt(fd.get(), each->ai_addr, each->ai_addrlen)) {
      result = fd.release();
    } else {
      error = errno;
    }
  }
  freeaddrinfo(found);
  errno = error;
  return result;
}

template <typename Try>
int with_unix(const OobAddress& address, Try attempt) {
  UnixAddress name;
  if (!name.set(address.host_or_path)) return -1;
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || !attempt(fd.get(), name.get(), UnixAddress::bytes())) return -1;
  return fd.release();
}

}  // namespace

const char* refusal_name(OobRefusal reason) {
  switch (reason) {
    case OobRefusal::kNonsense:
      return "no exchange of Peal's";
    case OobRefusal::kVersion:
      return "another version";
    case OobRefusal::kUser:
      return "another user";
    case OobRefusal::kToken:
      return "wrong token";
    case OobRefusal::kSize:
      return "another size of the job";
    case OobRefusal::kDuplicate:
      return "rank there already";
    case OobRefusal::kSlow:
      return "too slow";
    case OobRefusal::kCrowd:
      return "too many at once";
    case OobRefusal::kCount:
      break;
  }
  return "unknown reason";
}

bool parse_oob_address(const std::string& text, OobAddress* address, std::string* error) {
  *address = OobAddress{};
  std::string_view rest(text);
  if (rest.ends_with(kServe)) {
    address->serve = true;
    rest.remove_suffix(kServe.size());
  }
  if (rest.starts_with("unix:")) {
    address->host_or_path = rest.substr(5);
  } else if (rest.starts_with("tcp:")) {
    rest.remove_prefix(4);
    const size_t colon = rest.rfind(':');
    if (colon != std::string_view::npos) {
      address->tcp = true;
      address->host_or_path = rest.substr(0, colon);
      address->port = rest.substr(colon + 1);
    }
  }
  if (address->host_or_path.empty() || (address->tcp && address->port.empty())) {
    *error = "out-of-band server \"" + text + "\": expected unix:PATH or tcp:HOST:PORT";
    return false;
  }
  return true;
}

int oob_connect_once(const OobAddress& address, uint64_t deadline_ms) {
  const auto attempt = [deadline_ms](int fd, const sockaddr* name, socklen_t bytes) {
    do {
      limit_connecting(fd, deadline_ms);
      if (connect(fd, name, bytes) == 0) {
        limit_connecting(fd, kOobForEver);
        return true;
      }
      // A signal: tcp goes on meanwhile, and the next call waits for the same connection.
    } while (errno == EINTR && monotonic_ms() < deadline_ms);
    // A Unix socket whose queue is full, and a port that does not answer.
    if (errno == EAGAIN || errno == EINPROGRESS || errno == EALREADY || errno == EINTR)
      errno = ETIMEDOUT;
    return false;
  };
  return address.tcp ? with_resolved(address, 0, attempt) : with_unix(address, attempt);
}

int oob_listen(const OobAddress& address, int backlog) {
  const auto attempt = [backlog](int fd, const sockaddr* name, socklen_t bytes) {
    const int on = 1;
    if (name->sa_family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, name, bytes) == 0 && listen(fd, backlog) == 0;
  };
  return address.tcp ? with_resolved(address, AI_PASSIVE, attempt) : with_unix(address, attempt);
}

int64_t oob_peer_user(int fd) {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return -1;
  return peer.uid;
}

bool may_take_part(int64_t user) { return user == geteuid() || user == 0; }

}  // namespace peal::host
