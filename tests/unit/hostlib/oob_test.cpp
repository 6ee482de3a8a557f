// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band exchange: rounds, ranks that leave, strangers.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory_resource>
#include <new>
#include <thread>

#include "base/clock.h"
#include "hostlib/oob_server.h"
#include "peal/oob.h"

namespace peal::host {
namespace {

// For calls that take a time: it only ends a test that has failed.
constexpr unsigned kNoHurryMs = 600'000;
constexpr OobToken kToken = {'p', 'e', 'a', 'l', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

// A connection that says what it likes.
class Stranger {
 public:
  explicit Stranger(const std::string& server) {
    OobAddress address;
    std::string error;
    EXPECT_TRUE(parse_oob_address(server, &address, &error)) << error;
    fd_ = oob_connect_once(address);
    EXPECT_GE(fd_, 0) << strerror(errno);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() { close(fd_); }

  bool say(const void* data, size_t bytes) const {
    return send(fd_, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }
  template <typename Body>
  bool say(OobKind kind, uint32_t rank, uint32_t size, const Body& body) const {
    OobMessage message = {kOobMagic, kind, rank, size, 0, sizeof(body), kOobVersion};
    return say(&message, sizeof(message)) && say(&body, sizeof(body));
  }
  bool say_hello(uint32_t rank, uint32_t size, const OobToken& token) const {
    OobTicket ticket = {{1, 2, 3}, {}};
    ticket.ticket = make_proof(token, OobSide::kTicket, rank, size, ticket.nonce, {});
    return say(OobKind::kHello, rank, size, ticket);
  }
  // The next message; kind 0 when the connection was closed.
  [[nodiscard]] OobMessage hear() const {
    OobMessage message = {};
    size_t have = 0;
    while (have < sizeof(message)) {
      const ssize_t got =
          recv(fd_, reinterpret_cast<char*>(&message) + have, sizeof(message) - have, 0);
      if (got <= 0) return {};
      have += static_cast<size_t>(got);
    }
    if (message.kind == OobKind::kChallenge || message.kind == OobKind::kWelcome) {
      OobNonce data;
      EXPECT_EQ(recv(fd_, data.data(), data.size(), MSG_WAITALL), 16);
    }
    return message;
  }
  // Refused for that reason, and then closed.
  void expect_refusal(OobRefusal reason) const {
    const OobMessage message = hear();
    EXPECT_EQ(message.kind, OobKind::kRefused);
    EXPECT_STREQ(refusal_name(static_cast<OobRefusal>(message.rank)), refusal_name(reason));
    EXPECT_EQ(hear().kind, OobKind{});
  }

 private:
  int fd_ = -1;
};

// Memory that counts, and of which there may be too little.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  size_t bytes_max = SIZE_MAX;  // at once
  std::atomic<int> taken = 0;   // so often, ever

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (bytes > bytes_max) throw std::bad_alloc();
    taken++;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

class Oob : public testing::Test {
 protected:
  void SetUp() override {
    use_token(&kToken);
    char folder[] = "/tmp/peal-oob-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    server_name_ = "unix:" + folder_ + "/oob";
  }
  void TearDown() override {
    stop();
    use_token(nullptr);
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    std::filesystem::remove_all(folder_);
  }
  // What the ranks of this process know.
  static void use_token(const OobToken* token) {
    if (token != nullptr) {
      setenv(kOobTokenVariable, token_text(*token).c_str(), 1);
    } else {
      unsetenv(kOobTokenVariable);
    }
  }
  void use_tcp() {
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(name);
    ASSERT_EQ(bind(probe, reinterpret_cast<sockaddr*>(&name), bytes), 0);
    ASSERT_EQ(getsockname(probe, reinterpret_cast<sockaddr*>(&name), &bytes), 0);
    close(probe);
    server_name_ = "tcp:127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  // Both ranks of two exchange what they have.
  static void expect_exchange(peal_oob* first, peal_oob* second) {
    const uint32_t one = 1;
    const uint32_t two = 2;
    uint32_t values[2] = {};
    std::thread rank([&] {
      uint32_t all[2] = {};
      EXPECT_EQ(peal_oob_exchange(second, &two, all, sizeof(two)), 0) << peal_last_error_text();
    });
    EXPECT_EQ(peal_oob_exchange(first, &one, values, sizeof(one)), 0) << peal_last_error_text();
    rank.join();
    EXPECT_EQ(values[0], 1u);
    EXPECT_EQ(values[1], 2u);
  }
  // The server looks at its clock whenever it serves anybody: the second finds that it has.
  void pass_time_until(uint64_t ms, peal_oob* first, peal_oob* second) {
    now_ms_ = ms;
    expect_exchange(first, second);
    expect_exchange(first, second);
  }
  // The only refusals there were.
  void expect_refused(const std::string& text) const { EXPECT_EQ(server_->refused_text(), text); }

  void serve(uint32_t size, OobLimits limits = {}, std::optional<OobToken> token = kToken) {
    limits.now_ms = [this] { return now_ms_.load(); };
    server_ = std::make_unique<OobServer>(size, token, limits);
    OobAddress address;
    std::string error;
    ASSERT_TRUE(parse_oob_address(server_name_, &address, &error)) << error;
    ASSERT_TRUE(server_->listen(address, &error)) << error;
    thread_ = std::thread([this] { server_->run(); });
  }
  void stop() {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  peal_oob* connect(uint32_t rank, uint32_t size) {
    peal_oob* oob = nullptr;
    EXPECT_EQ(peal_oob_connect(server_name_.c_str(), rank, size, kNoHurryMs, &oob), PEAL_OK)
        << peal_last_error_text();
    return oob;
  }

  std::string folder_;
  std::string server_name_;
  std::atomic<uint64_t> now_ms_ = 0;  // the server's
  std::unique_ptr<OobServer> server_;
  std::thread thread_;
};

TEST_F(Oob, ManyRoundsOfManySizes) {
  constexpr uint32_t kSize = 6;
  serve(kSize);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < kSize; rank++) {
    ranks.emplace_back([this, rank] {
      peal_oob* oob = connect(rank, kSize);
      ASSERT_NE(oob, nullptr);
      for (const size_t bytes : {size_t{0}, size_t{1}, size_t{48}, size_t{100'000}, size_t{3}}) {
        std::vector<uint8_t> own(bytes, static_cast<uint8_t>(rank + bytes));
        std::vector<uint8_t> all(bytes * kSize);
        ASSERT_EQ(peal_oob_exchange(oob, own.data(), all.data(), bytes), 0);
        for (uint32_t other = 0; other < kSize; other++) {
          for (size_t i = 0; i < bytes; i++) {
            ASSERT_EQ(all[other * bytes + i], static_cast<uint8_t>(other + bytes));
          }
        }
      }
      peal_oob_close(oob);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST_F(Oob, Rank0Serves) {
  server_name_ += ",serve";
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < 3; rank++) {
    ranks.emplace_back([this, rank] {
      peal_oob* oob = connect(rank, 3);
      ASSERT_NE(oob, nullptr);
      uint32_t all[3] = {};
      EXPECT_EQ(peal_oob_exchange(oob, &rank, all, sizeof(rank)), 0);
      EXPECT_EQ(all[2], 2u);
      // Nobody may leave before rank 0's answer has reached all: another round.
      EXPECT_EQ(peal_oob_exchange(oob, &rank, all, sizeof(rank)), 0);
      if (rank == 0) {
        // Its server goes with it.
        peal_oob_exchange(oob, &rank, all, sizeof(rank));
      }
      peal_oob_close(oob);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

// Its child keeps none of its connections, or the others would not see it go.
TEST_F(Oob, Rank0ServesAndHasAChild) {
  const auto sockets = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
      struct stat status = {};
      if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) count++;
    }
    return count;
  };
  const int before = sockets();
  server_name_ += ",serve";
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  EXPECT_GE(sockets(), before + 5) << "the listener, and both ends of each";
  const pid_t child = fork();
  if (child == 0) _exit(sockets() == before ? 0 : 1);
  ASSERT_GT(child, 0);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  peal_oob_close(first);
  const uint32_t value = 1;
  uint32_t all[2] = {};
  EXPECT_EQ(peal_oob_exchange(second, &value, all, sizeof(value)), PEAL_ERR_OUT_OF_BAND);
  peal_oob_close(second);
}

TEST_F(Oob, RankThatLeavesIsNamed) {
  serve(3);
  peal_oob* first = connect(0, 3);
  peal_oob* second = connect(1, 3);
  peal_oob* third = connect(2, 3);
  uint32_t value = 0;
  uint32_t all[3] = {};
  std::thread waiting([&] {
    EXPECT_NE(peal_oob_exchange(first, &value, all, sizeof(value)), 0);
    EXPECT_STREQ(peal_last_error_text(), "rank 2 is gone or out of step");
  });
  peal_oob_close(third);
  waiting.join();
  // Later rounds fail at once, for those who were not in that one too.
  uint32_t all_again[3] = {};
  EXPECT_NE(peal_oob_exchange(second, &value, all_again, sizeof(value)), 0);
  EXPECT_NE(peal_oob_exchange(first, &value, all_again, sizeof(value)), 0);
  peal_oob_close(first);
  peal_oob_close(second);
}

// Who waits already is told, and who comes later.
TEST_F(Oob, RankThatEndsBeforeItConnectsIsNamed) {
  serve(3);
  peal_oob* first = connect(0, 3);
  uint32_t value = 0;
  uint32_t all[3] = {};
  std::thread waiting([&] {
    EXPECT_NE(peal_oob_exchange(first, &value, all, sizeof(value)), 0);
    EXPECT_STREQ(peal_last_error_text(), "rank 2 is gone or out of step");
  });
  server_->ended(2);
  waiting.join();
  peal_oob* second = connect(1, 3);
  EXPECT_NE(peal_oob_exchange(second, &value, all, sizeof(value)), 0);
  EXPECT_STREQ(peal_last_error_text(), "rank 2 is gone or out of step");
  peal_oob_close(first);
  peal_oob_close(second);
}

// Its connection may be a child's that goes on.
TEST_F(Oob, RankThatEndsIsHereWhileItIsConnected) {
  serve(2);
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  server_->ended(0);
  server_->ended(1);
  expect_exchange(first, second);
  expect_exchange(first, second);
  peal_oob_close(first);
  peal_oob_close(second);
}

// However many ranks there are, and whatever their sockets take at once.
TEST_F(Oob, ARoundHasOneResult) {
  constexpr uint32_t kSize = 4;
  constexpr int kRounds = 3;
  CountedMemory memory;
  OobLimits limits;
  limits.memory = &memory;
  serve(kSize, limits);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < kSize; rank++) {
    ranks.emplace_back([this, rank] {
      peal_oob* oob = connect(rank, kSize);
      ASSERT_NE(oob, nullptr);
      std::vector<uint8_t> own(PEAL_OOB_BLOCK_BYTES_MAX);
      std::vector<uint8_t> all(kSize * own.size());
      for (int round = 0; round < kRounds; round++) {
        std::fill(own.begin(), own.end(), static_cast<uint8_t>(16 * round + rank));
        ASSERT_EQ(peal_oob_exchange(oob, own.data(), all.data(), own.size()), 0);
        for (uint32_t other = 0; other < kSize; other++) {
          std::fill(own.begin(), own.end(), static_cast<uint8_t>(16 * round + other));
          EXPECT_EQ(memcmp(all.data() + other * own.size(), own.data(), own.size()), 0);
        }
      }
      peal_oob_close(oob);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  stop();
  EXPECT_EQ(memory.taken, kRounds);
}

TEST_F(Oob, AServerWithoutMemoryFailsTheRound) {
  CountedMemory memory;
  memory.bytes_max = 1000;
  OobLimits limits;
  limits.memory = &memory;
  serve(2, limits);
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  expect_exchange(first, second);
  uint8_t own[600] = {};
  uint8_t all[1200] = {};
  EXPECT_NE(peal_oob_exchange(first, own, all, sizeof(own)), 0);
  EXPECT_STREQ(peal_last_error_text(), "the out-of-band server has no memory for the exchange");
  EXPECT_NE(peal_oob_exchange(second, own, all, sizeof(own)), 0);
  peal_oob_close(first);
  peal_oob_close(second);
  // It goes on with whoever comes.
  Stranger late(server_name_);
  EXPECT_TRUE(late.say_hello(1, 2, kToken));
  EXPECT_EQ(late.hear().kind, OobKind::kChallenge);
}

TEST_F(Oob, RanksOutOfStep) {
  serve(2);
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  uint8_t buffer[64] = {};
  uint8_t other_buffer[64] = {};
  std::thread rank([&] { EXPECT_NE(peal_oob_exchange(first, buffer, buffer + 8, 4), 0); });
  EXPECT_NE(peal_oob_exchange(second, other_buffer, other_buffer + 16, 8), 0);
  rank.join();
  peal_oob_close(first);
  peal_oob_close(second);
}

TEST_F(Oob, ServerThatGoesFailsTheRound) {
  serve(2);
  peal_oob* first = connect(0, 2);
  std::thread rank([&] {
    uint32_t value = 0;
    uint32_t all[2] = {};
    EXPECT_NE(peal_oob_exchange(first, &value, all, sizeof(value)), 0);
  });
  stop();
  rank.join();
  peal_oob_close(first);
}

TEST_F(Oob, StrangersAreRefusedByName) {
  use_tcp();
  serve(2);
  peal_oob* first = connect(0, 2);
  const std::string garbage(4096, 'x');
  {
    const Stranger stranger(server_name_);
    EXPECT_TRUE(stranger.say(garbage.data(), garbage.size()));
    stranger.expect_refusal(OobRefusal::kNonsense);
  }
  {
    const Stranger stranger(server_name_);
    const OobMessage old = {kOobMagic, OobKind::kHello, 1, 2, 0, 0, 1};
    EXPECT_TRUE(stranger.say(&old, sizeof(old)));
    stranger.expect_refusal(OobRefusal::kVersion);
  }
  {
    const Stranger stranger(server_name_);  // a block before its hello
    EXPECT_TRUE(stranger.say(OobKind::kBlock, 1, 2, uint32_t{7}));
    stranger.expect_refusal(OobRefusal::kNonsense);
  }
  {
    const Stranger stranger(server_name_);
    EXPECT_TRUE(stranger.say_hello(1, 2, OobToken{}));
    stranger.expect_refusal(OobRefusal::kToken);
  }
  {
    const Stranger stranger(server_name_);  // a ticket that was seen on the wire is not enough
    EXPECT_TRUE(stranger.say_hello(1, 2, kToken));
    EXPECT_EQ(stranger.hear().kind, OobKind::kChallenge);
    EXPECT_TRUE(stranger.say(OobKind::kProof, 1, 2, OobProof{}));
    stranger.expect_refusal(OobRefusal::kToken);
  }
  peal_oob* second = connect(1, 2);
  expect_exchange(first, second);
  expect_refused("5 strangers refused: 2 no exchange of Peal's, 1 another version, 2 wrong token");
  peal_oob_close(first);
  peal_oob_close(second);
}

TEST_F(Oob, RanksThatDoNotFitAreToldWhy) {
  serve(2);
  peal_oob* first = connect(0, 2);
  const auto refused = [this](uint32_t rank, uint32_t size) {
    peal_oob* none = nullptr;
    EXPECT_EQ(peal_oob_connect(server_name_.c_str(), rank, size, kNoHurryMs, &none),
              PEAL_ERR_OUT_OF_BAND);
    EXPECT_EQ(none, nullptr);
    return std::string(peal_last_error_text());
  };
  EXPECT_EQ(refused(0, 2), server_name_ + " refused rank 0 of 2: rank there already");
  EXPECT_EQ(refused(1, 3), server_name_ + " refused rank 1 of 3: another size of the job");
  EXPECT_EQ(refused(2, 3), server_name_ + " refused rank 2 of 3: another size of the job");
  const OobToken other = {1};
  use_token(&other);
  EXPECT_EQ(refused(1, 2), server_name_ + " refused rank 1 of 2: wrong token");
  use_token(nullptr);
  EXPECT_EQ(refused(1, 2), server_name_ + " refused rank 1 of 2: wrong token");
  use_token(&kToken);
  peal_oob* second = connect(1, 2);
  expect_exchange(first, second);
  expect_refused(
      "5 strangers refused: 2 wrong token, 2 another size of the job, 1 rank there already");
  peal_oob_close(first);
  peal_oob_close(second);
}

// Those who say nothing, or half of it, are closed when their time is over; nobody waits for them.
TEST_F(Oob, HalfOpenStrangers) {
  serve(2, {.patience_ms = 500});
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  const Stranger silent(server_name_);
  const Stranger halting(server_name_);
  EXPECT_TRUE(halting.say("peao", 4));
  const Stranger ticket(server_name_);
  EXPECT_TRUE(ticket.say_hello(1, 2, kToken));
  EXPECT_EQ(ticket.hear().kind, OobKind::kChallenge);
  pass_time_until(499, first, second);
  expect_refused("");
  pass_time_until(500, first, second);
  silent.expect_refusal(OobRefusal::kSlow);
  halting.expect_refusal(OobRefusal::kSlow);
  ticket.expect_refusal(OobRefusal::kSlow);
  pass_time_until(5000, first, second);  // a rank has all the time it wants
  expect_refused("3 strangers refused: 3 too slow");
  peal_oob_close(first);
  peal_oob_close(second);
}

// However busy it looks, its time runs from the beginning.
TEST_F(Oob, StrangerByteByByte) {
  serve(2, {.patience_ms = 50});
  const Stranger slow(server_name_);
  peal_oob* first = connect(0, 2);  // behind it, so that it has been let in
  peal_oob* second = connect(1, 2);
  const OobMessage hello = {kOobMagic, OobKind::kHello, 0, 1, 0, sizeof(OobTicket), kOobVersion};
  const auto* bytes = reinterpret_cast<const char*>(&hello);
  for (size_t i = 0; i < 25; i++) {
    ASSERT_TRUE(slow.say(bytes + i, 1));
    pass_time_until(2 * i, first, second);
  }
  expect_refused("");
  pass_time_until(50, first, second);
  slow.expect_refusal(OobRefusal::kSlow);
  peal_oob_close(first);
  peal_oob_close(second);
}

// The oldest stranger makes room, so that those who come later are heard.
TEST_F(Oob, StrangersAreBoundedInNumber) {
  serve(2, {.strangers_max = 3});
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 5; i++) strangers.push_back(std::make_unique<Stranger>(server_name_));
  strangers[0]->expect_refusal(OobRefusal::kCrowd);
  strangers[1]->expect_refusal(OobRefusal::kCrowd);
  peal_oob* first = connect(0, 2);
  strangers[2]->expect_refusal(OobRefusal::kCrowd);
  peal_oob* second = connect(1, 2);
  expect_exchange(first, second);
  expect_refused("3 strangers refused: 3 too many at once");
  peal_oob_close(first);
  peal_oob_close(second);
}

// A rank with a ticket keeps its place when strangers without one push.
TEST_F(Oob, TicketKeepsItsPlace) {
  serve(2, {.strangers_max = 2});
  const Stranger ticket(server_name_);
  EXPECT_TRUE(ticket.say_hello(0, 2, kToken));
  EXPECT_EQ(ticket.hear().kind, OobKind::kChallenge);
  const Stranger second(server_name_);
  const Stranger third(server_name_);
  second.expect_refusal(OobRefusal::kCrowd);
  EXPECT_TRUE(ticket.say(OobKind::kProof, 0, 2, OobProof{}));
  ticket.expect_refusal(OobRefusal::kToken);  // it was still heard
}

TEST_F(Oob, Flood) {
  use_tcp();
  serve(4, {.strangers_max = 4});
  std::atomic<bool> stop = false;
  std::vector<std::thread> floods;
  for (int i = 0; i < 2; i++) {
    floods.emplace_back([&] {
      std::vector<std::unique_ptr<Stranger>> open;
      while (!stop) {
        if (open.size() == 100) open.clear();
        open.push_back(std::make_unique<Stranger>(server_name_));
      }
    });
  }
  while (server_->refused(OobRefusal::kCrowd) < 100) std::this_thread::yield();
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < 4; rank++) {
    ranks.emplace_back([this, rank] {
      peal_oob* oob = nullptr;
      ASSERT_EQ(peal_oob_connect(server_name_.c_str(), rank, 4, kNoHurryMs, &oob), PEAL_OK)
          << peal_last_error_text();
      for (int round = 0; round < 20; round++) {
        uint32_t all[4] = {};
        ASSERT_EQ(peal_oob_exchange(oob, &rank, all, sizeof(rank)), 0) << peal_last_error_text();
        for (uint32_t i = 0; i < 4; i++) ASSERT_EQ(all[i], i);
      }
      peal_oob_close(oob);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  stop = true;
  for (std::thread& flood : floods) flood.join();
}

// Who took the server's place learns nothing from those who come, and is found out.
TEST_F(Oob, ServerThatDoesNotKnowTheToken) {
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  const int listener = oob_listen(address, 4);
  ASSERT_GE(listener, 0);
  std::string heard;
  std::thread impostor([&] {
    const int fd = accept(listener, nullptr, nullptr);
    const auto hear = [&](size_t bytes) {
      std::string part(bytes, '\0');
      EXPECT_EQ(recv(fd, part.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
      heard += part;
    };
    const auto say = [&](OobKind kind) {
      const OobMessage message = {kOobMagic, kind, 0, 1, 0, 16, kOobVersion};
      const OobNonce data = {};
      EXPECT_EQ(send(fd, &message, sizeof(message), MSG_NOSIGNAL), 32);
      EXPECT_EQ(send(fd, data.data(), data.size(), MSG_NOSIGNAL), 16);
    };
    hear(sizeof(OobMessage) + sizeof(OobTicket));
    say(OobKind::kChallenge);
    hear(sizeof(OobMessage) + sizeof(OobProof));
    say(OobKind::kWelcome);
    close(fd);
  });
  peal_oob* none = nullptr;
  EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 0, 1, kNoHurryMs, &none), PEAL_ERR_OUT_OF_BAND);
  EXPECT_EQ(peal_last_error_text(),
            server_name_ + " is no server of this job: it does not know the token");
  impostor.join();
  close(listener);
  unlink(address.host_or_path.c_str());
  EXPECT_EQ(heard.find(std::string(kToken.begin(), kToken.begin() + 8)), std::string::npos);
}

// A program's own signal comes again and again, and interrupts what waits.
class PeriodicSignal {
 public:
  PeriodicSignal() {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, &before_);
    const itimerval often = {{0, 50'000}, {0, 50'000}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~PeriodicSignal() {
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  PeriodicSignal(const PeriodicSignal&) = delete;
  PeriodicSignal& operator=(const PeriodicSignal&) = delete;

 private:
  struct sigaction before_ = {};
};

// What it says is right, and comes in pieces, from the beginning or behind the message as such:
// however often, the time that is given is all.
TEST_F(Oob, ServerThatIsSlow) {
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  for (const size_t at_once : {size_t{0}, sizeof(OobMessage)}) {
    const int listener = oob_listen(address, 4);
    ASSERT_GE(listener, 0);
    bool left = false;
    std::thread slow([&] {
      const int fd = accept(listener, nullptr, nullptr);
      const OobMessage message = {kOobMagic, OobKind::kChallenge, 0, 1, 0, 16, kOobVersion};
      std::string text(reinterpret_cast<const char*>(&message), sizeof(message));
      text += std::string(sizeof(OobNonce) - 1, '\0');  // the last one never comes
      left = send(fd, text.data(), at_once, MSG_NOSIGNAL) != static_cast<ssize_t>(at_once);
      pollfd gone = {fd, POLLRDHUP, 0};
      for (size_t i = at_once; i < text.size() && !left; i++)
        left = send(fd, &text[i], 1, MSG_NOSIGNAL) != 1 || poll(&gone, 1, 200) != 0;
      close(fd);
    });
    peal_oob* none = nullptr;
    EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 0, 1, 500, &none), PEAL_ERR_OUT_OF_BAND);
    EXPECT_EQ(peal_last_error_text(), server_name_ + " closed the connection or did not answer");
    slow.join();
    EXPECT_TRUE(left) << "the rank heard all that came";
    close(listener);
    unlink(address.host_or_path.c_str());
  }
}

TEST_F(Oob, SilentServerAndASignalThatComesAgain) {
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  const int listener = oob_listen(address, 4);
  ASSERT_GE(listener, 0);
  {
    const PeriodicSignal signal;
    peal_oob* none = nullptr;
    EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 0, 1, 500, &none), PEAL_ERR_OUT_OF_BAND);
    EXPECT_EQ(peal_last_error_text(), server_name_ + " closed the connection or did not answer");
  }
  close(listener);
  unlink(address.host_or_path.c_str());
}

// A server that lets nobody in: connecting itself waits, and no longer than it may.
TEST_F(Oob, FullListener) {
  const PeriodicSignal signal;
  for (const bool tcp : {false, true}) {
    if (tcp) use_tcp();
    OobAddress address;
    std::string error;
    ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
    const int listener = oob_listen(address, 0);
    ASSERT_GE(listener, 0);
    {
      const Stranger only(server_name_);
      peal_oob* none = nullptr;
      EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 0, 1, 500, &none), PEAL_ERR_OUT_OF_BAND);
      EXPECT_EQ(none, nullptr);
      EXPECT_EQ(peal_last_error_text(), "cannot reach " + server_name_ + ": Connection timed out");
    }
    close(listener);
    if (!tcp) unlink(address.host_or_path.c_str());
  }
}

// Ranks tell each other something for as long as their job lasts.
TEST_F(Oob, ConnectedItHasTime) {
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  const int listener = oob_listen(address, 4);
  ASSERT_GE(listener, 0);
  const int fd = oob_connect_once(address, monotonic_ms() + kNoHurryMs);
  ASSERT_GE(fd, 0);
  for (const int side : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    timeval wait = {1, 1};
    socklen_t bytes = sizeof(wait);
    EXPECT_EQ(getsockopt(fd, SOL_SOCKET, side, &wait, &bytes), 0);
    EXPECT_EQ(wait.tv_sec + wait.tv_usec, 0);
  }
  close(fd);
  close(listener);
  unlink(address.host_or_path.c_str());
}

// It may have taken the place of ours, and is told nothing.
TEST_F(Oob, UnixServerOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  const int listener = oob_listen(address, 4);
  ASSERT_GE(listener, 0);
  // The kernel tells who called listen() last. The call below is of this thread only.
  ASSERT_EQ(syscall(SYS_setresuid, -1, 54321, -1), 0);
  const int listening = listen(listener, 4);
  ASSERT_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
  ASSERT_EQ(listening, 0);
  peal_oob* none = nullptr;
  EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 0, 1, kNoHurryMs, &none), PEAL_ERR_OUT_OF_BAND);
  EXPECT_EQ(peal_last_error_text(), server_name_ +
                                        " is served by user 54321, and this is user 0: expected "
                                        "the same user, or root");
  const int accepted = accept(listener, nullptr, nullptr);
  char byte = 0;
  EXPECT_EQ(recv(accepted, &byte, 1, 0), 0);  // nobody said hello
  close(accepted);
  close(listener);
  unlink(address.host_or_path.c_str());
}

TEST_F(Oob, TcpNeedsAToken) {
  use_tcp();
  use_token(nullptr);
  OobServer server(1, std::nullopt);
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  EXPECT_FALSE(server.listen(address, &error));
  EXPECT_EQ(error, "serving the exchange over tcp needs the job's secret in $PEAL_OOB_TOKEN");
  peal_oob* none = nullptr;
  for (const char* mode : {"", ",serve"}) {
    const std::string url = server_name_ + mode;
    EXPECT_EQ(peal_oob_connect(url.c_str(), 0, 1, 100, &none), PEAL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(peal_last_error_text(), url +
                                          ": an exchange over tcp needs the job's secret in "
                                          "$PEAL_OOB_TOKEN, the same 32 hexadecimal digits for all "
                                          "ranks");
  }
}

// The kernel says who is at the other end of a Unix socket.
TEST_F(Oob, UnixDoesWithoutOne) {
  use_token(nullptr);
  serve(2, {}, std::nullopt);
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  expect_exchange(first, second);
  peal_oob_close(first);
  peal_oob_close(second);
}

TEST_F(Oob, Addresses) {
  OobAddress address;
  std::string error;
  EXPECT_TRUE(parse_oob_address("tcp:[::1]:80", &address, &error));
  EXPECT_TRUE(parse_oob_address("tcp:host:80,serve", &address, &error));
  EXPECT_TRUE(address.serve);
  EXPECT_EQ(address.host_or_path, "host");
  EXPECT_EQ(address.port, "80");
  for (const char* text : {"", "unix:", "tcp:host", "tcp::80", "tcp:host:", "udp:host:1"}) {
    EXPECT_FALSE(parse_oob_address(text, &address, &error)) << text;
  }
}

}  // namespace
}  // namespace peal::host
