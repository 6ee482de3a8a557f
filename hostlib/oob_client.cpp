// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band exchange as programs use it; see peal/oob.h.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "hostlib/context.h"
#include "hostlib/oob_server.h"
#include "hostlib/rings.h"

struct peal_oob {
  int fd = -1;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint64_t round = 0;
  bool failed = false;
  std::unique_ptr<peal::host::OobServer> server;
  std::thread server_thread;
  peal::host::ForkGuard guard{[](void* oob) { static_cast<peal_oob*>(oob)->leave_to_parent(); },
                              this};

  void leave_to_parent() noexcept {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  ~peal_oob() {
    if (fd >= 0) close(fd);
    if (server) server->stop();
    if (server_thread.joinable()) server_thread.join();
  }
};

namespace peal::host {
namespace {

constexpr unsigned kTimeoutDefaultMs = 30'000;
constexpr int kRetryMs = 20;

bool send_all(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes != 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

OobMessage message_of(const peal_oob& oob, OobKind kind) {
  OobMessage message = {};
  message.magic = kOobMagic;
  message.version = kOobVersion;
  message.kind = kind;
  message.rank = oob.rank;
  message.size = oob.size;
  message.round = oob.round;
  return message;
}

// The server answers a hello that it likes, and closes on one that it does not.
peal_error say_hello(peal_oob& oob, const char* server) {
  const OobMessage hello = message_of(oob, OobKind::kHello);
  OobMessage answer = {};
  if (!send_all(oob.fd, &hello, sizeof(hello)) || !receive_all(oob.fd, &answer, sizeof(answer)) ||
      answer.magic != kOobMagic || answer.version != kOobVersion ||
      answer.kind != OobKind::kHello) {
    return fail(PEAL_ERR_OUT_OF_BAND,
                "%s refused rank %u of %u: another size, or that rank is there already", server,
                oob.rank, oob.size);
  }
  return PEAL_OK;
}

peal_error connect_oob(const char* server, uint32_t rank, uint32_t size, unsigned timeout_ms,
                       peal_oob** result) {
  if (server == nullptr) server = getenv("PEAL_OOB");
  if (server == nullptr || *server == '\0') {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "no out-of-band server was named and $PEAL_OOB is not set: start with pealrun");
  }
  if (size == 0 || rank >= size || size > PEAL_RANKS_MAX) {
    return fail(PEAL_ERR_BAD_RANK, "rank %u of %u", rank, size);
  }
  OobAddress address;
  std::string error;
  if (!parse_oob_address(server, &address, &error)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s", error.c_str());
  }
  auto oob = std::make_unique<peal_oob>();
  oob->rank = rank;
  oob->size = size;
  if (address.serve && rank == 0) {
    oob->server = std::make_unique<OobServer>(size);
    if (!oob->server->listen(address, &error)) {
      return fail(PEAL_ERR_OUT_OF_BAND, "%s", error.c_str());
    }
    oob->server_thread = std::thread([&server_object = *oob->server] { server_object.run(); });
  }
  const uint64_t deadline =
      now_ns() + uint64_t{timeout_ms != 0 ? timeout_ms : kTimeoutDefaultMs} * 1'000'000;
  while ((oob->fd = oob_connect_once(address)) < 0) {
    if (now_ns() >= deadline) return fail_errno(PEAL_ERR_OUT_OF_BAND, "cannot reach %s", server);
    poll(nullptr, 0, kRetryMs);  // the server may not be up yet
  }
  const peal_error refused = say_hello(*oob, server);
  if (refused != PEAL_OK) return refused;
  *result = oob.release();
  return PEAL_OK;
}

peal_error exchange(peal_oob& oob, const void* send, void* receive, size_t bytes) {
  if (bytes > PEAL_OOB_BLOCK_BYTES_MAX) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "out-of-band block of %zu bytes, the limit is %u", bytes,
                PEAL_OOB_BLOCK_BYTES_MAX);
  }
  if (oob.guard.inherited()) {
    return fail(PEAL_ERR_FORKED, "the out-of-band connection is that of process %d, the parent",
                static_cast<int>(oob.guard.owner()));
  }
  if (oob.failed) return fail(PEAL_ERR_OUT_OF_BAND, "an earlier round failed");
  oob.failed = true;  // until it has worked
  OobMessage block = message_of(oob, OobKind::kBlock);
  block.bytes = static_cast<uint32_t>(bytes);
  OobMessage result = {};
  if (!send_all(oob.fd, &block, sizeof(block)) || !send_all(oob.fd, send, bytes) ||
      !receive_all(oob.fd, &result, sizeof(result))) {
    return fail(PEAL_ERR_OUT_OF_BAND, "the out-of-band server is gone");
  }
  if (result.magic == kOobMagic && result.kind == OobKind::kFailure) {
    return fail(PEAL_ERR_OUT_OF_BAND, "rank %u is gone or out of step", result.rank);
  }
  if (result.magic != kOobMagic || result.kind != OobKind::kResult || result.bytes != bytes ||
      result.size != oob.size || result.round != oob.round) {
    return fail(PEAL_ERR_OUT_OF_BAND, "the out-of-band server's answer makes no sense");
  }
  if (!receive_all(oob.fd, receive, bytes * oob.size)) {
    return fail(PEAL_ERR_OUT_OF_BAND, "the out-of-band server is gone");
  }
  oob.round++;
  oob.failed = false;
  return PEAL_OK;
}

bool read_number(const char* name, uint32_t* value) {
  const char* text = getenv(name);
  if (text == nullptr) return false;
  const char* end = text + strlen(text);
  const auto [stop, bad] = std::from_chars(text, end, *value);
  return bad == std::errc{} && stop == end;
}

}  // namespace
}  // namespace peal::host

using peal::host::fail;
using peal::host::guarded;

extern "C" peal_error peal_oob_connect(const char* server, uint32_t rank, uint32_t size,
                                       unsigned timeout_ms, peal_oob** oob) {
  if (oob == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_oob_connect: oob is null");
  *oob = nullptr;
  return guarded([&] { return peal::host::connect_oob(server, rank, size, timeout_ms, oob); });
}

extern "C" int peal_oob_allgather(void* oob, const void* send, void* receive, size_t bytes) {
  if (oob == nullptr || (bytes != 0 && (send == nullptr || receive == nullptr))) {
    fail(PEAL_ERR_INVALID_ARGUMENT, "peal_oob_allgather: an argument is null");
    return PEAL_ERR_INVALID_ARGUMENT;
  }
  return guarded(
      [&] { return peal::host::exchange(*static_cast<peal_oob*>(oob), send, receive, bytes); });
}

extern "C" void peal_oob_close(peal_oob* oob) {
  // A child's copy has a thread that was never copied; only the parent can end it.
  if (oob != nullptr && oob->guard.inherited()) return;
  delete oob;
}

extern "C" peal_error peal_launch_rank(uint32_t* rank, uint32_t* size) {
  if (rank == nullptr || size == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_launch_rank: an argument is null");
  }
  if (!peal::host::read_number("PEAL_RANK", rank) || !peal::host::read_number("PEAL_SIZE", size) ||
      *rank >= *size) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "$PEAL_RANK and $PEAL_SIZE are not set as a launcher sets them: use pealrun");
  }
  return PEAL_OK;
}
