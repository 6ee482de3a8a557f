// SPDX-License-Identifier: BSD-2-Clause
// The socket to an emulated card, with a card at the other end that answers whatever the test
// wants.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include "base/unix_socket.h"
#include "hostlib/administration.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

constexpr uint32_t kBytes = PEAL_WINDOW_BYTES(kFakeEntries);

int make_memory(size_t bytes, bool sealed = true) {
  const int fd = memfd_create("card", MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
  if (sealed) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

std::atomic<int> signals = 0;

// As long as it lives the thread that made it is interrupted every millisecond; those that it
// begins are not.
class Interrupted {
 public:
  Interrupted() {
    struct sigaction action = {};
    action.sa_handler = [](int) { signals++; };  // (no SA_RESTART)
    sigaction(SIGALRM, &action, &before_);
    set_timer(1000);
  }
  ~Interrupted() {
    set_timer(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Interrupted(const Interrupted&) = delete;
  Interrupted& operator=(const Interrupted&) = delete;

  template <typename Function>
  static std::thread begin_thread(Function function) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    std::thread begun(std::move(function));
    pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    return begun;
  }

 private:
  static void set_timer(suseconds_t every_us) {
    const itimerval times = {{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &times, nullptr);
  }
  struct sigaction before_ = {};
};

// One reply, as the test arranges it.
struct Reply {
  peal_admin_reply body = {};
  std::vector<int> descriptors;
  size_t bytes = sizeof(peal_admin_reply);
  bool close_instead = false;
  bool silent = false;
  bool unheard = false;      // nobody may be there any more when it comes
  bool stale_first = false;  // an old reply comes before it
  bool stale_for_ever = false;
};

class SocketTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/peal-transport-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/cards";
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    UnixAddress address;
    ASSERT_TRUE(address.set(path_));
    ASSERT_EQ(bind(listener_, address.get(), UnixAddress::bytes()), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
  }
  void TearDown() override {
    if (card_.joinable()) card_.join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }

  // Serves one connection: `answer` makes each reply from the command, which was good when it gets
  // it.
  void serve(std::function<void(const peal_admin_command&, Reply&)> answer) {
    card_ = Interrupted::begin_thread([this, answer = std::move(answer)] { serve_one(answer); });
  }
  void serve_one(const std::function<void(const peal_admin_command&, Reply&)>& answer) const {
    const int client = accept(listener_, nullptr, nullptr);
    peal_admin_command command = {};
    while (recv(client, &command, sizeof(command), 0) == PEAL_ADMIN_BYTES) {
      EXPECT_EQ(command.version, PEAL_ABI_VERSION);
      EXPECT_EQ(command.bytes, uint32_t{PEAL_ADMIN_BYTES});
      EXPECT_EQ(command.context, 0u);
      EXPECT_EQ(command.reserved, 0u);
      Reply reply;
      reply.body.version = PEAL_ABI_VERSION;
      reply.body.opcode = command.opcode;
      reply.body.bytes = PEAL_ADMIN_BYTES;
      reply.body.tag = command.tag;
      if (command.opcode == PEAL_ADMIN_OPEN_CONTEXT) good_open(reply);
      answer(command, reply);
      if (reply.close_instead) break;
      if (reply.silent) continue;
      Reply stale = reply;
      stale.descriptors.clear();
      stale.body.tag--;
      if (reply.stale_first) send_reply(client, stale);
      stale.unheard = true;
      while (reply.stale_for_ever && send_reply(client, stale)) {
      }
      if (reply.stale_for_ever) break;
      send_reply(client, reply);
      for (const int fd : reply.descriptors) close(fd);
    }
    close(client);
  }

  static void good_open(Reply& reply) {
    const int window = make_memory(kBytes);
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, window, 0);
    lay_out_window(memory, kFakeEntries);
    munmap(memory, kBytes);
    reply.body.u.open.window_bytes = kBytes;
    reply.descriptors = {window, make_memory(4096), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  }

  static bool send_reply(int client, const Reply& reply) {
    const ssize_t sent =
        send_with_descriptors(client, &reply.body, reply.bytes, reply.descriptors, 0);
    EXPECT_TRUE(reply.unheard || sent == static_cast<ssize_t>(reply.bytes)) << sent;
    return sent >= 0;
  }

  peal_error open() {
    CardUrl url;
    url.path = path_;
    url.card = 3;
    return open_socket_transport(url, &transport_);
  }
  // Opens with a reply to OPEN_CONTEXT that `change` has spoilt.
  peal_error open_spoilt(std::function<void(Reply&)> change) {
    serve([change](const peal_admin_command&, Reply& reply) { change(reply); });
    const peal_error error = open();
    EXPECT_EQ(transport_ == nullptr, error != PEAL_OK);
    transport_.reset();
    card_.join();
    return error;
  }

  std::string folder_;
  std::string path_;
  int listener_ = -1;
  std::thread card_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(SocketTransportTest, Opens) {
  uint32_t index = 0;
  serve([&](const peal_admin_command& command, Reply&) { index = command.u.open.card_index; });
  ASSERT_EQ(open(), PEAL_OK) << peal_last_error_text();
  EXPECT_EQ(index, 3u);
  EXPECT_EQ(transport_->window().entries, kFakeEntries);
  EXPECT_TRUE(transport_->connected());
  transport_.reset();
}

volatile sig_atomic_t namings = 0;  // of who may reach into this process

// Counts them from now on.
bool count_namings() {
  struct sigaction action = {};
  action.sa_handler = [](int) { namings = namings + 1; };
  sigaction(SIGSYS, &action, nullptr);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// The kernel keeps one: another card may have been named meanwhile.
TEST_F(SocketTransportTest, WhoOpensMemoryIsNamedEachTime) {
  serve([&](const peal_admin_command&, Reply&) {});
  const pid_t child = fork();
  if (child == 0) {
    close(listener_);
    uint8_t memory[64];
    uint32_t key = 0;
    const auto registers = [&] {
      return register_memory(*transport_, memory, sizeof(memory), PEAL_ACCESS_READ, &key) ==
             PEAL_OK;
    };
    if (!count_namings() || open() != PEAL_OK || namings != 0) _exit(1);
    for (int i = 1; i <= 2; i++) {
      if (!registers() || namings != i) _exit(2);
      if (unregister_memory(*transport_, key) != PEAL_OK || namings != i) _exit(3);
    }
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SocketTransportTest, RefusedByStatus) {
  EXPECT_EQ(open_spoilt([](Reply& reply) {
              reply.body.status = PEAL_STATUS_NO_RESOURCES;
              reply.descriptors.clear();
            }),
            PEAL_ERR_NO_RESOURCES);
}

// Whatever else is in it.
TEST_F(SocketTransportTest, ACardOfAnotherVersionSaysSo) {
  for (const size_t bytes : {sizeof(peal_admin_reply), size_t{100}, size_t{8}}) {
    EXPECT_EQ(open_spoilt([bytes](Reply& reply) {
                reply.body.version = PEAL_ABI_VERSION + 1;
                reply.bytes = bytes;
              }),
              PEAL_ERR_BAD_VERSION);
    EXPECT_NE(std::string(peal_last_error_text()).find("this library"), std::string::npos);
  }
}

TEST_F(SocketTransportTest, SpoiltReplies) {
  const std::vector<std::pair<const char*, std::function<void(Reply&)>>> spoilt = {
      {"short", [](Reply& reply) { reply.bytes = 100; }},
      {"size", [](Reply& reply) { reply.body.bytes--; }},
      {"opcode", [](Reply& reply) { reply.body.opcode++; }},
      {"status", [](Reply& reply) { reply.body.status = 5000; }},
      {"too few descriptors",
       [](Reply& reply) {
         close(reply.descriptors.back());
         reply.descriptors.pop_back();
       }},
      {"no descriptors", [](Reply& reply) { reply.descriptors.clear(); }},
      {"window too small", [](Reply& reply) { reply.descriptors[0] = make_memory(kBytes - 4096); }},
      {"window not sealed",
       [](Reply& reply) { reply.descriptors[0] = make_memory(kBytes, false); }},
      {"broadcast page too small", [](Reply& reply) { reply.descriptors[1] = make_memory(64); }},
      {"senseless window size", [](Reply& reply) { reply.body.u.open.window_bytes = 1; }},
  };
  for (const auto& [name, change] : spoilt) {
    EXPECT_EQ(open_spoilt(change), PEAL_ERR_CARD_ANSWER) << name << ": " << peal_last_error_text();
  }
}

TEST_F(SocketTransportTest, ClosedInsteadOfAnswered) {
  EXPECT_EQ(open_spoilt([](Reply& reply) { reply.close_instead = true; }), PEAL_ERR_CARD_GONE);
}

TEST_F(SocketTransportTest, LateRepliesAreThrownAway) {
  serve([](const peal_admin_command& command, Reply& reply) {
    reply.stale_first = command.opcode == PEAL_ADMIN_REGISTER_MEMORY;
    if (reply.stale_first) reply.body.u.register_memory.key = 42;
  });
  ASSERT_EQ(open(), PEAL_OK);
  uint32_t key = 0;
  char memory[8];
  EXPECT_EQ(register_memory(*transport_, memory, 8, PEAL_READ, &key), PEAL_OK);
  EXPECT_EQ(key, 42u);
  transport_.reset();
}

TEST_F(SocketTransportTest, AllocatedMemoryMustBeLargeAndSealed) {
  int unregistered = 0;
  int allocations = 0;
  serve([&](const peal_admin_command& command, Reply& reply) {
    if (command.opcode == PEAL_ADMIN_UNREGISTER_MEMORY) unregistered++;
    if (command.opcode != PEAL_ADMIN_REGISTER_MEMORY) return;
    EXPECT_EQ(command.u.register_memory.kind, uint32_t{PEAL_MEMORY_ALLOCATE});
    EXPECT_EQ(command.u.register_memory.bytes, 8192u);
    switch (allocations++) {
      case 0:
        reply.descriptors = {make_memory(4096)};
        break;
      case 1:
        reply.descriptors = {make_memory(8192, false)};
        break;
      default:
        reply.descriptors = {make_memory(8192)};
    }
  });
  ASSERT_EQ(open(), PEAL_OK);
  Allocation allocation;
  EXPECT_EQ(transport_->allocate(5000, &allocation), PEAL_ERR_CARD_ANSWER);
  EXPECT_EQ(transport_->allocate(5000, &allocation), PEAL_ERR_CARD_ANSWER);
  EXPECT_EQ(unregistered, 2);
  ASSERT_EQ(transport_->allocate(5000, &allocation), PEAL_OK);
  allocation.address[8191] = 1;
  EXPECT_EQ(transport_->release(allocation), PEAL_OK);
  transport_.reset();
}

TEST_F(SocketTransportTest, CardThatGoesIsNoticed) {
  serve([](const peal_admin_command& command, Reply& reply) {
    reply.close_instead = command.opcode == PEAL_ADMIN_ABANDON_GROUP;
  });
  ASSERT_EQ(open(), PEAL_OK);
  EXPECT_TRUE(transport_->connected());
  EXPECT_EQ(abandon_group(*transport_, 1), PEAL_ERR_CARD_GONE);
  card_.join();
  EXPECT_FALSE(transport_->connected());
  EXPECT_EQ(abandon_group(*transport_, 1), PEAL_ERR_CARD_GONE);
}

class EndedTest : public SocketTransportTest {
 protected:
  static constexpr int kPatienceMs = 600'000;

  // How often the card was asked to end the context, when `answer` says how it answers which time.
  int asked(const std::function<void(int, Reply&)>& answer, int patience_ms = kPatienceMs) {
    int times = 0;
    serve([&](const peal_admin_command& command, Reply& reply) {
      if (command.opcode == PEAL_ADMIN_CLOSE_CONTEXT) answer(++times, reply);
    });
    EXPECT_EQ(open(), PEAL_OK) << peal_last_error_text();
    fail(PEAL_ERR_MISMATCH, "what went before");
    transport_->end_context(patience_ms);
    EXPECT_STREQ(peal_last_error_text(), "what went before");
    transport_.reset();
    card_.join();
    return times;
  }
};

TEST_F(EndedTest, OnceWhereNothingIsUnderWay) {
  EXPECT_EQ(asked([](int, Reply&) {}), 1);
}

TEST_F(EndedTest, AgainUntilTheCardHasLetGo) {
  EXPECT_EQ(asked([](int time, Reply& reply) {
              if (time < 4) reply.body.status = PEAL_STATUS_BUSY;
            }),
            4);
}

TEST_F(EndedTest, AgainUntilItKnowsNoneOfThem) {
  EXPECT_EQ(asked([](int time, Reply& reply) {
              reply.body.status = time < 2 ? PEAL_STATUS_BUSY : PEAL_STATUS_CLOSED;
            }),
            2);
}

TEST_F(EndedTest, AgainUntilItHangsUp) {
  EXPECT_EQ(asked([](int time, Reply& reply) {
              reply.body.status = PEAL_STATUS_BUSY;
              reply.close_instead = time == 2;
            }),
            2);
}

TEST_F(EndedTest, NotForEverWhereItNeverLetsGo) {
  EXPECT_GE(asked(
                [](int, Reply& reply) {
                  reply.body.status = PEAL_STATUS_BUSY;
                  reply.unheard = true;
                },
                4),
            1);
}

TEST_F(EndedTest, OnceWhereItDoesNotAnswer) {
  EXPECT_EQ(asked([](int, Reply& reply) { reply.silent = true; }, 1), 1);
}

TEST_F(EndedTest, SignalsDoNotMakeItWaitLonger) {
  const Interrupted interrupted;
  EXPECT_EQ(asked([](int, Reply& reply) { reply.silent = true; }, 20), 1);
}

TEST_F(EndedTest, NorDoAnswersToSomethingElse) {
  EXPECT_EQ(asked([](int, Reply& reply) { reply.stale_for_ever = true; }, 20), 1);
}

// What it answers late is nobody's, and nobody waits for the next answer.
TEST_F(SocketTransportTest, ACardThatDidNotAnswerInTimeIsGone) {
  int commands = 0;
  serve([&](const peal_admin_command& command, Reply& reply) {
    reply.silent = command.opcode != PEAL_ADMIN_OPEN_CONTEXT;
    commands++;
  });
  ASSERT_EQ(open(), PEAL_OK);
  transport_->end_context(1);
  EXPECT_FALSE(transport_->connected());
  EXPECT_EQ(abandon_group(*transport_, 1), PEAL_ERR_CARD_GONE);
  card_.join();
  EXPECT_EQ(commands, 2);
}

// Another thread learns it that waits for half a minute.
TEST_F(SocketTransportTest, WhoeverWaitsForACardThatIsGivenUpLearnsIt) {
  std::atomic<bool> asked = false;
  serve([&](const peal_admin_command& command, Reply& reply) {
    reply.silent = command.opcode == PEAL_ADMIN_ABANDON_GROUP;
    asked = reply.silent;
  });
  ASSERT_EQ(open(), PEAL_OK);
  std::thread other([&] {
    EXPECT_EQ(abandon_group(*transport_, 1), PEAL_ERR_CARD_GONE);
    EXPECT_NE(std::string(peal_last_error_text()).find("closed the connection"), std::string::npos);
  });
  while (!asked) std::this_thread::yield();
  transport_->give_up();
  other.join();
  EXPECT_EQ(abandon_group(*transport_, 1), PEAL_ERR_CARD_GONE);
}

TEST_F(SocketTransportTest, MemoryOfACardThatIsGivenUpIsUnmapped) {
  serve([](const peal_admin_command& command, Reply& reply) {
    if (command.opcode == PEAL_ADMIN_REGISTER_MEMORY) reply.descriptors = {make_memory(4096)};
  });
  ASSERT_EQ(open(), PEAL_OK);
  Allocation allocation;
  ASSERT_EQ(transport_->allocate(64, &allocation), PEAL_OK);
  transport_->give_up();
  EXPECT_EQ(transport_->release(allocation), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(msync(allocation.address, 4096, MS_ASYNC), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(SocketTransportTest, ASignalDoesNotEndAWaitForAPlaceAmongThoseThatConnect) {
  UnixAddress address;
  ASSERT_TRUE(address.set(path_));
  std::vector<FileDescriptor> before_it;
  while (true) {
    FileDescriptor one(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(one.get(), address.get(), UnixAddress::bytes()) != 0) break;
    before_it.push_back(std::move(one));
  }
  ASSERT_EQ(errno, EAGAIN);
  const Interrupted interrupted;
  card_ = Interrupted::begin_thread([&, until = signals + 20] {
    while (signals < until) std::this_thread::yield();
    for (size_t i = 0; i < before_it.size(); i++) close(accept(listener_, nullptr, nullptr));
    serve_one([](const peal_admin_command&, Reply&) {});
  });
  EXPECT_EQ(open(), PEAL_OK) << peal_last_error_text();
  transport_.reset();
  card_.join();
}

TEST_F(SocketTransportTest, TooManyCountersInOneReply) {
  serve([](const peal_admin_command& command, Reply& reply) {
    if (command.opcode == PEAL_ADMIN_READ_COUNTERS) reply.body.u.counters.count = 1000;
  });
  ASSERT_EQ(open(), PEAL_OK);
  peal_read_counters_reply part = {};
  EXPECT_EQ(read_counters(*transport_, 0, &part), PEAL_ERR_CARD_ANSWER);
  transport_.reset();
}

}  // namespace
}  // namespace peal::host
