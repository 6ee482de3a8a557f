// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band exchange as programs use it; see peal/oob.h.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "hostlib/handles.h"
#include "hostlib/oob_server.h"
#include "hostlib/rings.h"

struct peal_oob {
  peal::host::OwnDescriptor fd;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint64_t round = 0;
  bool failed = false;
  std::unique_ptr<peal::host::OobServer> server;
  std::thread server_thread;
  peal::host::OwnerProcess owner;
  ~peal_oob() {
    fd.reset();
    if (server) server->stop();
    if (server_thread.joinable()) server_thread.join();
  }
};

namespace peal::host {
namespace {

constexpr unsigned kTimeoutDefaultMs = 30'000;
constexpr int kRetryMs = 20;

// False at the deadline, however often a signal comes or something is ready.
bool wait_for(int fd, short events, uint64_t deadline_ms) {
  if (deadline_ms == kOobForEver) return true;  // the call itself waits (wait_flags())
  while (true) {
    const uint64_t now = monotonic_ms();
    if (now >= deadline_ms) return false;
    pollfd wait = {fd, events, 0};
    const int ready =
        poll(&wait, 1, static_cast<int>(std::min<uint64_t>(deadline_ms - now, INT_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

int wait_flags(uint64_t deadline_ms) { return deadline_ms == kOobForEver ? 0 : MSG_DONTWAIT; }

bool send_all(int fd, const void* data, size_t bytes, uint64_t deadline_ms = kOobForEver) {
  const char* at = static_cast<const char*>(data);
  while (bytes != 0) {
    if (!wait_for(fd, POLLOUT, deadline_ms)) return false;
    const ssize_t sent =
        retried([&] { return send(fd, at, bytes, MSG_NOSIGNAL | wait_flags(deadline_ms)); });
    if (sent < 0 && errno == EAGAIN) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, size_t bytes, uint64_t deadline_ms = kOobForEver) {
  char* at = static_cast<char*>(data);
  while (bytes != 0) {
    if (!wait_for(fd, POLLIN, deadline_ms)) return false;
    const ssize_t got = retried([&] { return recv(fd, at, bytes, wait_flags(deadline_ms)); });
    if (got < 0 && errno == EAGAIN) continue;
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

// Waits for one message and what follows it. False when the server closes, or is silent or slow.
bool receive_message(int fd, uint64_t deadline_ms, OobMessage* message,
                     std::array<uint8_t, 16>* data) {
  if (!receive_all(fd, message, sizeof(*message), deadline_ms) || message->magic != kOobMagic)
    return false;
  if (message->kind == OobKind::kRefused || message->version != kOobVersion) return true;
  return message->bytes == data->size() && receive_all(fd, data->data(), data->size(), deadline_ms);
}

peal_error refused(const peal_oob& oob, const char* server, uint32_t reason) {
  return fail(PEAL_ERR_OUT_OF_BAND, "%s refused rank %u of %u: %s", server, oob.rank, oob.size,
              refusal_name(static_cast<OobRefusal>(reason)));
}

// Both sides prove that they know the token. *again: nobody refused us, so another try may do.
peal_error say_hello(peal_oob& oob, const char* server, const OobToken& token, uint64_t deadline_ms,
                     bool* again) {
  *again = false;
  OobTicket ticket = {};
  if (!draw(&ticket.nonce)) return fail_errno(PEAL_ERR_SYSTEM, "getrandom");
  ticket.ticket = make_proof(token, OobSide::kTicket, oob.rank, oob.size, ticket.nonce, {});
  OobMessage message = message_of(oob, OobKind::kHello);
  message.bytes = sizeof(ticket);
  OobNonce challenge = {};
  OobProof proof = {};
  bool answered = send_all(oob.fd.get(), &message, sizeof(message), deadline_ms) &&
                  send_all(oob.fd.get(), &ticket, sizeof(ticket), deadline_ms) &&
                  receive_message(oob.fd.get(), deadline_ms, &message, &challenge);
  if (answered && message.kind == OobKind::kChallenge) {
    proof = make_proof(token, OobSide::kRank, oob.rank, oob.size, ticket.nonce, challenge);
    message = message_of(oob, OobKind::kProof);
    message.bytes = sizeof(proof);
    answered = send_all(oob.fd.get(), &message, sizeof(message), deadline_ms) &&
               send_all(oob.fd.get(), &proof, sizeof(proof), deadline_ms) &&
               receive_message(oob.fd.get(), deadline_ms, &message, &proof);
  }
  if (answered && message.kind == OobKind::kRefused) {
    const auto reason = static_cast<OobRefusal>(message.rank);
    *again = reason == OobRefusal::kCrowd || reason == OobRefusal::kSlow;
    return refused(oob, server, message.rank);
  }
  const OobProof wanted =
      make_proof(token, OobSide::kServer, oob.rank, oob.size, ticket.nonce, challenge);
  if (answered && message.kind == OobKind::kWelcome && same_proof(proof, wanted)) return PEAL_OK;
  *again = !answered;
  return fail(PEAL_ERR_OUT_OF_BAND, "%s %s", server,
              answered ? "is no server of this job: it does not know the token"
                       : "closed the connection or did not answer");
}

// Who took the path of our server, before or instead of it, is told nothing. Over tcp nobody says
// who it is: there only the token tells.
peal_error check_user(const OobAddress& address, const char* server, int fd) {
  if (address.tcp) return PEAL_OK;
  const int64_t user = oob_peer_user(fd);
  if (may_take_part(user)) return PEAL_OK;
  return fail(PEAL_ERR_OUT_OF_BAND,
              "%s is served by user %" PRId64 ", and this is user %" PRIu32
              ": expected the same user, or root",
              server, user, uint32_t{geteuid()});
}

peal_error dial(peal_oob& oob, const char* server, const OobAddress& address, const OobToken& token,
                uint64_t deadline_ms) {
  peal_error error = PEAL_OK;
  while (true) {
    bool again = true;
    oob.fd.reset(oob_connect_once(address, deadline_ms));
    if (!oob.fd.valid()) {
      error = fail_errno(PEAL_ERR_OUT_OF_BAND, "cannot reach %s", server);
    } else {
      error = check_user(address, server, oob.fd.get());
      if (error != PEAL_OK) return error;
      // A server that says nothing, or hears nothing, is given up at the deadline.
      error = say_hello(oob, server, token, deadline_ms, &again);
      if (error == PEAL_OK) return PEAL_OK;
      oob.fd.reset();
    }
    if (!again || monotonic_ms() >= deadline_ms) return error;
    poll(nullptr, 0, kRetryMs);  // the server may not be up yet
  }
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
  std::optional<OobToken> token;
  if (!token_of_environment(&token, &error)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s", error.c_str());
  }
  if (address.tcp && !token) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "%s: an exchange over tcp needs the job's secret in $PEAL_OOB_TOKEN, the same 32 "
                "hexadecimal digits for all ranks",
                server);
  }
  auto oob = std::make_unique<peal_oob>();
  oob->rank = rank;
  oob->size = size;
  if (address.serve && rank == 0) {
    oob->server = std::make_unique<OobServer>(size, token);
    if (!oob->server->listen(address, &error)) {
      return fail(PEAL_ERR_OUT_OF_BAND, "%s", error.c_str());
    }
    oob->server_thread = std::thread([&server_object = *oob->server] { server_object.run(); });
  }
  const uint64_t deadline = monotonic_ms() + (timeout_ms != 0 ? timeout_ms : kTimeoutDefaultMs);
  const peal_error refusal = dial(*oob, server, address, token.value_or(OobToken{}), deadline);
  if (refusal != PEAL_OK) return refusal;
  *result = oob.release();
  return PEAL_OK;
}

peal_error exchange(peal_oob& oob, const void* send, void* receive, size_t bytes) {
  if (bytes > PEAL_OOB_BLOCK_BYTES_MAX) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "out-of-band block of %zu bytes, the limit is %u", bytes,
                PEAL_OOB_BLOCK_BYTES_MAX);
  }
  if (oob.owner.inherited()) {
    return fail(PEAL_ERR_FORKED, "the out-of-band connection is that of process %d, the parent",
                static_cast<int>(oob.owner.id()));
  }
  if (oob.failed) return fail(PEAL_ERR_OUT_OF_BAND, "an earlier round failed");
  oob.failed = true;  // until it has worked
  OobMessage block = message_of(oob, OobKind::kBlock);
  block.bytes = static_cast<uint32_t>(bytes);
  OobMessage result = {};
  if (!send_all(oob.fd.get(), &block, sizeof(block)) || !send_all(oob.fd.get(), send, bytes) ||
      !receive_all(oob.fd.get(), &result, sizeof(result))) {
    return fail(PEAL_ERR_OUT_OF_BAND, "the out-of-band server is gone");
  }
  if (result.magic == kOobMagic && result.kind == OobKind::kFailure) {
    if (result.rank == kNobody)
      return fail(PEAL_ERR_OUT_OF_BAND, "the out-of-band server has no memory for the exchange");
    return fail(PEAL_ERR_OUT_OF_BAND, "rank %u is gone or out of step", result.rank);
  }
  if (result.magic != kOobMagic || result.kind != OobKind::kResult || result.bytes != bytes ||
      result.size != oob.size || result.round != oob.round) {
    return fail(PEAL_ERR_OUT_OF_BAND, "the out-of-band server's answer makes no sense");
  }
  if (!receive_all(oob.fd.get(), receive, bytes * oob.size)) {
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

extern "C" int peal_oob_exchange(void* oob, const void* send, void* receive, size_t bytes) {
  if (oob == nullptr || (bytes != 0 && (send == nullptr || receive == nullptr))) {
    fail(PEAL_ERR_INVALID_ARGUMENT, "peal_oob_exchange: an argument is null");
    return PEAL_ERR_INVALID_ARGUMENT;
  }
  return guarded(
      [&] { return peal::host::exchange(*static_cast<peal_oob*>(oob), send, receive, bytes); });
}

extern "C" void peal_oob_close(peal_oob* oob) {
  // A child's copy has a thread that was never copied; only the parent can end it.
  if (oob != nullptr && oob->owner.inherited()) return;
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
