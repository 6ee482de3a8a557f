// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band server; see oob_server.h. One thread, non-blocking sockets.
#include "hostlib/oob_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace peal::host {
namespace {

constexpr int kAcceptsPerTurn = 16;  // then those who are here already
constexpr int kFullMs = 100;         // until the next try when descriptors have run out

OobMessage make_message(OobKind kind) {
  OobMessage message = {};
  message.magic = kOobMagic;
  message.version = kOobVersion;
  message.kind = kind;
  return message;
}

size_t place_of(OobRefusal reason) { return static_cast<size_t>(reason); }

// Sends what the socket takes now of the data behind *sent. False when the client is gone.
bool send_some(int fd, std::string_view data, size_t* sent) {
  while (*sent < data.size()) {
    const ssize_t taken = send(fd, data.data() + *sent, data.size() - *sent, MSG_NOSIGNAL);
    if (taken > 0) {
      *sent += static_cast<size_t>(taken);
    } else if (taken == 0 || errno != EINTR) {
      return taken < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
  return true;
}

}  // namespace

OobServer::OobServer(uint32_t size, const std::optional<OobToken>& token, const OobLimits& limits)
    : size_(size),
      has_token_(token.has_value()),
      limits_(limits),
      ended_(size),
      seen_(size, false) {
  wake_.open([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (token) token_ = *token;
}

OobServer::~OobServer() {
  if (!path_.empty()) unlink(path_.c_str());
}

bool OobServer::listen(const OobAddress& address, std::string* error) {
  if (address.tcp && !has_token_) {
    *error = "serving the exchange over tcp needs the job's secret in $PEAL_OOB_TOKEN";
    return false;
  }
  listener_.reset(oob_listen(address, static_cast<int>(size_) + 64));
  if (!listener_.valid() || !wake_.valid()) {
    *error = "cannot listen at " + address.host_or_path + ": " + strerror(errno);
    return false;
  }
  fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  tcp_ = address.tcp;
  if (!address.tcp) path_ = address.host_or_path;
  return true;
}

void OobServer::stop() {
  stopped_ = true;
  wake();
}

void OobServer::ended(uint32_t rank) {
  ended_[rank] = true;
  wake();
}

void OobServer::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

uint64_t OobServer::refused(OobRefusal reason) const { return refused_[place_of(reason)].load(); }

std::string OobServer::refused_text() const {
  uint64_t total = 0;
  std::string reasons;
  for (uint32_t i = 0; i < place_of(OobRefusal::kCount); i++) {
    const auto reason = static_cast<OobRefusal>(i);
    const uint64_t count = refused(reason);
    if (count == 0) continue;
    total += count;
    reasons += (reasons.empty() ? "" : ", ") + std::to_string(count) + " " + refusal_name(reason);
  }
  if (total == 0) return {};
  return std::to_string(total) + (total == 1 ? " stranger" : " strangers") + " refused: " + reasons;
}

void OobServer::run() {
  std::vector<pollfd> waits;
  bool more = true;
  while (more) {
    try {
      more = take_turn(waits);
    } catch (const std::bad_alloc&) {
      give_up();
    }
  }
}

bool OobServer::take_turn(std::vector<pollfd>& waits) {
  std::erase_if(clients_, [](const Client& client) { return !client.fd.valid(); });
  waits.clear();
  waits.push_back({wake_.get(), POLLIN, 0});
  waits.push_back({full_ ? -1 : listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) {
    const bool all_sent = client.output.empty() && client.result == nullptr;
    const short events = all_sent ? POLLIN : POLLIN | POLLOUT;
    waits.push_back({client.fd.get(), events, 0});
  }
  if (poll(waits.data(), waits.size(), poll_timeout_ms()) < 0 && errno != EINTR) return false;
  if (stopped_) return false;
  full_ = false;
  auto wait = waits.begin() + 2;
  for (Client& client : clients_) {
    const short events = wait++->revents;
    bool alive = true;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) alive = read_from(client);
    if (alive && (events & POLLOUT) != 0) alive = write_to(client);
    if (!alive) drop(client);
  }
  drop_slow();
  if ((waits[1].revents & POLLIN) != 0) accept_clients();
  if (waits[0].revents != 0) miss_ended();
  return true;
}

// There is no memory for what ranks say: no round can be finished any more. They are told as far as
// that needs none, and go. (Strangers go when their time is over.)
void OobServer::give_up() {
  OobMessage message = make_message(OobKind::kFailure);
  message.rank = kNobody;
  message.round = round_;
  blocks_ = 0;
  blocks_data_.reset();
  for (Client& client : clients_) {
    if (!client.fd.valid() || is_stranger(client)) continue;
    size_t sent = 0;
    if (client.output.empty() && client.result == nullptr)
      (void)send_some(client.fd.get(), {reinterpret_cast<const char*>(&message), sizeof(message)},
                      &sent);
    drop(client);
  }
}

int OobServer::poll_timeout_ms() const {
  if (full_) return kFullMs;
  uint64_t until = UINT64_MAX;
  for (const Client& client : clients_) {
    if (is_stranger(client)) until = std::min(until, client.until_ms);
  }
  if (until == UINT64_MAX) return -1;
  const uint64_t now = limits_.now_ms();
  return until <= now ? 0 : static_cast<int>(std::min<uint64_t>(until - now, 1'000'000));
}

void OobServer::drop_slow() {
  const uint64_t now = limits_.now_ms();
  for (Client& client : clients_) {
    if (!client.fd.valid() || !is_stranger(client) || now < client.until_ms) continue;
    refuse(client, OobRefusal::kSlow);
    drop(client);
  }
}

void OobServer::accept_clients() {
  for (int i = 0; i < kAcceptsPerTurn; i++) {
    std::list<Client> stranger(1);
    if (stranger.front().fd.open([&] {
          return accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        })) {
      take_in(std::move(stranger));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      make_room();
      full_ = true;
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// What it said while it waited is heard at once, so that a rank is seldom a stranger for long.
void OobServer::take_in(std::list<Client> stranger) {
  const auto strangers = std::count_if(
      clients_.begin(), clients_.end(),
      [this](const Client& client) { return client.fd.valid() && is_stranger(client); });
  if (static_cast<size_t>(strangers) >= limits_.strangers_max) make_room();
  clients_.splice(clients_.end(), stranger);
  Client& client = clients_.back();
  client.until_ms = limits_.now_ms() + limits_.patience_ms;
  const bool ours = tcp_ || may_take_part(oob_peer_user(client.fd.get()));
  const bool alive = ours ? read_from(client) : refuse(client, OobRefusal::kUser);
  if (!alive) drop(client);
}

// The oldest stranger goes; one with a ticket only when there is no other.
void OobServer::make_room() {
  Client* oldest = nullptr;
  for (Client& client : clients_) {
    if (!client.fd.valid() || !is_stranger(client)) continue;
    if (client.phase == Phase::kHello) {
      oldest = &client;
      break;
    }
    if (oldest == nullptr) oldest = &client;
  }
  if (oldest == nullptr) return;
  refuse(*oldest, OobRefusal::kCrowd);
  drop(*oldest);
}

// False when the client is gone or talks nonsense. One bufferful a turn, so that nobody who talks
// without end keeps the others waiting.
bool OobServer::read_from(Client& client) {
  char buffer[65536];
  const size_t room = is_stranger(client) ? sizeof(OobMessage) + sizeof(OobTicket) : sizeof(buffer);
  const ssize_t got = read(client.fd.get(), buffer, room);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  client.input.append(buffer, static_cast<size_t>(got));
  return take_messages(client);
}

bool OobServer::take_messages(Client& client) {
  while (client.input.size() >= sizeof(OobMessage)) {
    OobMessage message = {};
    memcpy(&message, client.input.data(), sizeof(message));
    if (message.magic != kOobMagic) return refuse(client, OobRefusal::kNonsense);
    if (message.version != kOobVersion) return refuse(client, OobRefusal::kVersion);
    const OobKind wanted = client.phase == Phase::kHello   ? OobKind::kHello
                           : client.phase == Phase::kProof ? OobKind::kProof
                                                           : OobKind::kBlock;
    const size_t bytes_max = client.phase == Phase::kHello   ? sizeof(OobTicket)
                             : client.phase == Phase::kProof ? sizeof(OobProof)
                                                             : PEAL_OOB_BLOCK_BYTES_MAX;
    if (message.kind != wanted || message.bytes > bytes_max ||
        (is_stranger(client) && message.bytes != bytes_max)) {
      return refuse(client, OobRefusal::kNonsense);
    }
    if (client.input.size() < sizeof(message) + message.bytes) return true;
    const bool good = client.phase == Phase::kHello   ? take_hello(client)
                      : client.phase == Phase::kProof ? take_proof(client)
                                                      : take_block(client, message);
    if (!good) return false;
    client.input.erase(0, sizeof(message) + message.bytes);
  }
  return true;
}

// The ticket alone proves little, since whoever has seen it can show it again; but a stranger
// without one is not worth a challenge.
bool OobServer::take_hello(Client& client) {
  OobMessage message = {};
  memcpy(&message, client.input.data(), sizeof(message));
  memcpy(&client.ticket, client.input.data() + sizeof(message), sizeof(client.ticket));
  client.rank = message.rank;
  client.size = message.size;
  const OobProof ticket =
      make_proof(token_, OobSide::kTicket, client.rank, client.size, client.ticket.nonce, {});
  if (!same_proof(ticket, client.ticket.ticket)) return refuse(client, OobRefusal::kToken);
  if (!draw(&client.challenge)) return refuse(client, OobRefusal::kCrowd);
  client.phase = Phase::kProof;
  send_to(client, make_message(OobKind::kChallenge), &client.challenge, sizeof(client.challenge));
  return write_to(client);
}

bool OobServer::take_proof(Client& client) {
  OobProof proof = {};
  memcpy(&proof, client.input.data() + sizeof(OobMessage), sizeof(proof));
  const auto proof_of = [&](OobSide side) {
    return make_proof(token_, side, client.rank, client.size, client.ticket.nonce,
                      client.challenge);
  };
  if (!same_proof(proof, proof_of(OobSide::kRank))) return refuse(client, OobRefusal::kToken);
  if (client.size != size_ || client.rank >= size_) return refuse(client, OobRefusal::kSize);
  if (seen_[client.rank]) return refuse(client, OobRefusal::kDuplicate);
  client.phase = Phase::kRank;
  seen_[client.rank] = true;
  OobMessage welcome = make_message(OobKind::kWelcome);
  welcome.rank = client.rank;
  welcome.size = size_;
  const OobProof own = proof_of(OobSide::kServer);
  send_to(client, welcome, &own, sizeof(own));
  return write_to(client);
}

bool OobServer::take_block(Client& client, const OobMessage& message) {
  if (message.rank != client.rank || client.has_block || message.round != round_) return false;
  if (client.result != nullptr) return false;  // it has not heard yet how the last round ended
  if (missing_ != kNobody) {
    send_failure(client, missing_);
    return true;
  }
  if (blocks_ == 0) {
    block_bytes_ = message.bytes;
    blocks_data_ = std::make_shared<std::pmr::string>(
        sizeof(OobMessage) + size_t{block_bytes_} * size_, '\0', limits_.memory);
  }
  if (message.bytes != block_bytes_) {  // ranks disagree: the programs are out of step
    missing_ = client.rank;
    send_failure(client, client.rank);
    fail_waiters(client.rank);
    return true;
  }
  memcpy(blocks_data_->data() + sizeof(OobMessage) + size_t{client.rank} * block_bytes_,
         client.input.data() + sizeof(message), message.bytes);
  client.has_block = true;
  if (++blocks_ == size_) finish_round();
  return true;
}

// Says why, as far as the other side listens, and is false: the caller drops the client.
bool OobServer::refuse(Client& client, OobRefusal reason) {
  if (!is_stranger(client)) return false;  // a rank that talks nonsense is a rank that is gone
  refused_[place_of(reason)]++;
  OobMessage message = make_message(OobKind::kRefused);
  message.rank = static_cast<uint32_t>(reason);
  client.output.clear();
  send_to(client, message, nullptr, 0);
  (void)write_to(client);
  // What is left unread would make the kernel throw the answer away.
  char rest[4096];
  [[maybe_unused]] const ssize_t got = read(client.fd.get(), rest, sizeof(rest));
  return false;
}

void OobServer::send_to(Client& client, OobMessage message, const void* data, size_t bytes) {
  if (bytes != 0) message.bytes = static_cast<uint32_t>(bytes);
  client.output.append(reinterpret_cast<const char*>(&message), sizeof(message));
  client.output.append(static_cast<const char*>(data), bytes);
}

// Sends what the socket takes now; the rest waits for POLLOUT.
bool OobServer::write_to(Client& client) {
  size_t sent = 0;
  const bool alive = send_some(client.fd.get(), client.output, &sent);
  client.output.erase(0, sent);
  if (!alive || !client.output.empty() || client.result == nullptr) return alive;
  if (!send_some(client.fd.get(), *client.result, &client.result_sent)) return false;
  if (client.result_sent == client.result->size()) client.result.reset();
  return true;
}

void OobServer::drop(Client& client) {
  client.fd.reset();
  if (!is_stranger(client)) miss(client.rank);
}

// Ranks that were here are missed when their connection ends, which a child may have made and may
// hold longer than its parent lives.
void OobServer::miss_ended() {
  uint64_t times = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &times, sizeof(times));
  for (uint32_t rank = 0; rank < size_ && missing_ == kNobody; rank++) {
    if (ended_[rank] && !seen_[rank]) miss(rank);
  }
}

// Ranks that leave after their last round fail nobody; those that still want one are told.
void OobServer::miss(uint32_t rank) {
  if (missing_ != kNobody) return;
  missing_ = rank;
  if (blocks_ != 0) fail_waiters(rank);
}

void OobServer::finish_round() {
  OobMessage header = make_message(OobKind::kResult);
  header.size = size_;
  header.round = round_;
  header.bytes = block_bytes_;
  memcpy(blocks_data_->data(), &header, sizeof(header));
  const std::shared_ptr<const std::pmr::string> result = std::move(blocks_data_);
  round_++;
  blocks_ = 0;
  for (Client& client : clients_) {
    if (!client.fd.valid() || !client.has_block) continue;
    client.has_block = false;
    client.result = result;
    client.result_sent = 0;
    (void)write_to(client);  // a dead one is noticed by its next poll
  }
}

void OobServer::fail_waiters(uint32_t missing) {
  blocks_ = 0;
  for (Client& client : clients_) {
    if (!client.fd.valid() || !client.has_block) continue;
    client.has_block = false;
    send_failure(client, missing);
  }
}

void OobServer::send_failure(Client& client, uint32_t missing) {
  OobMessage message = make_message(OobKind::kFailure);
  message.rank = missing;
  message.round = round_;
  send_to(client, message, nullptr, 0);
  (void)write_to(client);
}

}  // namespace peal::host
