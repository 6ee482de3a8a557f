// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band server; see oob_server.h. One thread, non-blocking sockets.
#include "hostlib/oob_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace peal::host {
namespace {

// Strangers that never say hello must not use up descriptors.
constexpr size_t kStrangersMax = 64;

std::string as_text(const OobMessage& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

OobMessage make_message(OobKind kind) {
  OobMessage message = {};
  message.magic = kOobMagic;
  message.version = kOobVersion;
  message.kind = kind;
  return message;
}

}  // namespace

OobServer::OobServer(uint32_t size)
    : size_(size), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), seen_(size, false) {}

OobServer::~OobServer() {
  for (Client& client : clients_) close(client.fd);
  if (listener_ >= 0) close(listener_);
  if (stop_ >= 0) close(stop_);
  if (!path_.empty()) unlink(path_.c_str());
}

bool OobServer::listen(const OobAddress& address, std::string* error) {
  listener_ = oob_listen(address, static_cast<int>(size_) + 8);
  if (listener_ < 0 || stop_ < 0) {
    *error = "cannot listen at " + address.host_or_path + ": " + strerror(errno);
    return false;
  }
  fcntl(listener_, F_SETFL, O_NONBLOCK);
  if (!address.tcp) path_ = address.host_or_path;
  return true;
}

void OobServer::stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof(one));
}

void OobServer::run() {
  std::vector<pollfd> waits;
  while (true) {
    waits.clear();
    waits.push_back({stop_, POLLIN, 0});
    waits.push_back({listener_, POLLIN, 0});
    for (const Client& client : clients_) {
      const short events = client.output.empty() ? POLLIN : POLLIN | POLLOUT;
      waits.push_back({client.fd, events, 0});
    }
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    const size_t before = clients_.size();
    for (size_t i = 0; i < before; i++) {
      Client& client = clients_[i];
      const short events = waits[i + 2].revents;
      bool alive = true;
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) alive = read_from(client);
      if (alive && (events & POLLOUT) != 0) alive = write_to(client);
      if (!alive) drop(client);
    }
    std::erase_if(clients_, [](const Client& client) { return client.fd < 0; });
    if ((waits[1].revents & POLLIN) != 0) accept_clients();
  }
}

void OobServer::accept_clients() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (clients_.size() >= size_ + kStrangersMax) {
      close(fd);
      continue;
    }
    clients_.push_back(Client{});
    clients_.back().fd = fd;
  }
}

// False when the client is gone or talks nonsense.
bool OobServer::read_from(Client& client) {
  char buffer[16384];
  while (true) {
    const ssize_t got = read(client.fd, buffer, sizeof(buffer));
    if (got > 0) {
      client.input.append(buffer, static_cast<size_t>(got));
      if (!take_messages(client)) return false;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

bool OobServer::take_messages(Client& client) {
  while (client.input.size() >= sizeof(OobMessage)) {
    OobMessage message = {};
    memcpy(&message, client.input.data(), sizeof(message));
    if (message.magic != kOobMagic || message.version != kOobVersion) return false;
    if (client.rank == kNobody) {
      if (!take_hello(client, message)) return false;
      client.input.erase(0, sizeof(message));
      continue;
    }
    if (message.kind != OobKind::kBlock || message.rank != client.rank || client.has_block ||
        message.round != round_ || message.bytes > PEAL_OOB_BLOCK_BYTES_MAX) {
      return false;
    }
    if (client.input.size() < sizeof(message) + message.bytes) return true;
    if (missing_ != kNobody) {
      send_failure(client, missing_);
      client.input.erase(0, sizeof(message) + message.bytes);
      continue;
    }
    if (blocks_ == 0) {
      block_bytes_ = message.bytes;
      blocks_data_.assign(size_t{block_bytes_} * size_, '\0');
    }
    if (message.bytes != block_bytes_) {  // ranks disagree: the programs are out of step
      missing_ = client.rank;
      send_failure(client, client.rank);
      fail_waiters(client.rank);
      client.input.erase(0, sizeof(message) + message.bytes);
      continue;
    }
    memcpy(blocks_data_.data() + size_t{client.rank} * block_bytes_,
           client.input.data() + sizeof(message), message.bytes);
    client.input.erase(0, sizeof(message) + message.bytes);
    client.has_block = true;
    if (++blocks_ == size_) finish_round();
  }
  return true;
}

bool OobServer::take_hello(Client& client, const OobMessage& message) {
  if (message.kind != OobKind::kHello || message.size != size_ || message.rank >= size_ ||
      seen_[message.rank]) {
    return false;
  }
  client.rank = message.rank;
  seen_[message.rank] = true;
  OobMessage answer = make_message(OobKind::kHello);
  answer.rank = message.rank;
  answer.size = size_;
  client.output += as_text(answer);
  return write_to(client);
}

// Sends what the socket takes now; the rest waits for POLLOUT.
bool OobServer::write_to(Client& client) {
  while (!client.output.empty()) {
    const ssize_t sent = send(client.fd, client.output.data(), client.output.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      client.output.erase(0, static_cast<size_t>(sent));
    } else if (sent < 0 && errno == EINTR) {
      continue;
    } else {
      return sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
  return true;
}

void OobServer::drop(Client& client) {
  close(client.fd);
  client.fd = -1;
  if (client.rank == kNobody || missing_ != kNobody) return;
  // Ranks that leave after their last round fail nobody; those that still want one are told.
  missing_ = client.rank;
  if (blocks_ != 0) fail_waiters(client.rank);
}

void OobServer::finish_round() {
  OobMessage header = make_message(OobKind::kResult);
  header.size = size_;
  header.round = round_;
  header.bytes = block_bytes_;
  round_++;
  blocks_ = 0;
  for (Client& client : clients_) {
    if (client.fd < 0 || !client.has_block) continue;
    client.has_block = false;
    client.output += as_text(header);
    client.output += blocks_data_;
    (void)write_to(client);  // a dead one is noticed by its next poll
  }
}

void OobServer::fail_waiters(uint32_t missing) {
  blocks_ = 0;
  for (Client& client : clients_) {
    if (client.fd < 0 || !client.has_block) continue;
    client.has_block = false;
    send_failure(client, missing);
  }
}

void OobServer::send_failure(Client& client, uint32_t missing) {
  OobMessage message = make_message(OobKind::kFailure);
  message.rank = missing;
  message.round = round_;
  client.output += as_text(message);
  (void)write_to(client);
}

}  // namespace peal::host
