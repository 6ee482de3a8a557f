// SPDX-License-Identifier: BSD-2-Clause
// The Unix-socket interface on a real loop with two cards: what a client is answered, for what it
// is closed, and that what it had comes back to the others.
#include "emulator/nic/socket_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "abi/window.h"
#include "base/file_descriptor.h"
#include "base/names.h"
#include "base/unix_socket.h"
#include "emulator/nic/log.h"
#include "emulator/nic/log_stream.h"
#include "emulator/nic/nic_loop.h"
#include "tests/unit/emulator/log_pipe.h"
#include "tests/unit/emulator/temporary_folder.h"
#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

using emulator::test::make_command;

class Client {
 public:
  explicit Client(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    UnixAddress address;
    EXPECT_TRUE(address.set(path));
    EXPECT_EQ(connect(socket_.get(), address.get(), UnixAddress::bytes()), 0);
  }
  // The answer in words: its status, how many descriptors came with it; or that there is none.
  std::string ask(const peal_admin_command& command, size_t bytes = sizeof(peal_admin_command),
                  std::span<const int> with = {}) {
    send_with_descriptors(socket_.get(), &command, bytes, with, 0);
    return answer(0);
  }
  std::string ask(peal_admin_opcode opcode) { return ask(make_command(opcode)); }
  // ask(), in two parts.
  void say(const peal_admin_command& command) {
    send_with_descriptors(socket_.get(), &command, sizeof(command), {}, 0);
  }
  std::string hear() { return answer(0); }
  // Without waiting for one.
  [[nodiscard]] bool is_closed() { return answer(MSG_DONTWAIT) == "closed"; }
  void hang_up() { socket_.reset(); }

  peal_admin_reply reply = {};
  FileDescriptor descriptors[3];

 private:
  std::string answer(int flags) {
    const auto receive = [&] {
      return receive_with_descriptors(socket_.get(), &reply, sizeof(reply), descriptors, flags);
    };
    ReceivedMessage got = receive();
    // Of a connection that was closed with something unread that is said before its last answer.
    if (got.bytes < 0 && errno == ECONNRESET) got = receive();
    if (got.bytes < 0 && errno == EAGAIN) return "nothing";
    if (got.bytes <= 0) return "closed";
    EXPECT_EQ(got.bytes, ssize_t{sizeof(reply)});
    const std::string with =
        got.descriptors == 0 ? "" : ", descriptors " + std::to_string(got.descriptors);
    return names::status(reply.status) + with;
  }
  FileDescriptor socket_;
};

class SocketServerTest : public ::testing::Test {
 protected:
  ~SocketServerTest() override { stop(); }

  void start() {
    LoopOptions options;
    options.cards = 2;
    options.packet_buffers = 2048;
    options.checksums = Checksums::kSkipped;
    options.timeouts = default_timeouts();
    ASSERT_EQ(loop->create(options), "");
    std::string error;
    socket.path = path;
    socket.now_ms = [this] {
      const uint64_t now = now_ms;
      if (const uint64_t next = next_ms.exchange(0); next != 0) now_ms = next;
      return now;
    };
    auto made = SocketServer::create(socket, *loop, {loop->helper(), loop->copies()}, &error);
    ASSERT_NE(made, nullptr) << error;
    server = made.get();
    loop->add_interface(std::move(made));
    thread = std::thread([this] { loop->run(); });
  }
  void stop() {
    if (!thread.joinable()) return;
    loop->request_stop();
    thread.join();
  }
  // What was counted of connections and messages, where it is not zero. All that was asked before
  // has been served: another client's connection and question come behind it.
  std::string counted() {
    Client behind(path);
    EXPECT_NE(behind.ask(PEAL_ADMIN_READ_COUNTERS), "");
    std::string text;
    const nlohmann::ordered_json counters = server->counters_json();
    for (const char* name :
         {"closed", "refused_too_many", "refused_descriptors", "refused_process", "refused_size",
          "refused_card", "refused_context", "no_memory", "half_open_closed", "strikes_closed",
          "overdue_closed", "wild_index_closed", "slow_reader_closed"}) {
      const auto value = counters[name].get<uint64_t>();
      if (value != 0) text += std::string(name) + " " + std::to_string(value) + " ";
    }
    return text;
  }
  static peal_admin_command opening(uint32_t card) {
    peal_admin_command command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
    command.u.open.card_index = card;
    return command;
  }
  static peal_admin_command registration(uint32_t kind, uint64_t bytes) {
    peal_admin_command command = make_command(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = kind;
    command.u.register_memory.access = PEAL_ACCESS_READ;
    command.u.register_memory.bytes = bytes;
    if (kind == PEAL_MEMORY_PROCESS) command.u.register_memory.address = 0x10000;
    return command;
  }

  const test::TemporaryFolder folder{"socket"};
  const std::string path = folder.path() + "/socket";
  SocketOptions socket;
  const bool started = (test::start_dpdk(), true);  // the loop's clock needs it
  std::unique_ptr<NicLoop> loop = std::make_unique<NicLoop>();
  SocketServer* server = nullptr;
  std::atomic<uint64_t> now_ms = 0;   // the server's
  std::atomic<uint64_t> next_ms = 0;  // what it is when the server has looked at it once more
  std::thread thread;
};

TEST_F(SocketServerTest, AContextIsOpenedOnTheCardThatIsNamed) {
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(1)), "OK, descriptors 3");
  void* const window = mmap(nullptr, emulator::kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            client.descriptors[0].get(), 0);
  ASSERT_NE(window, MAP_FAILED);
  const auto& page = *static_cast<const peal_card_page*>(window);
  EXPECT_EQ(page.directory.magic, PEAL_WINDOW_MAGIC);
  EXPECT_EQ(page.device.card_index, 1u);
  EXPECT_EQ(page.device.capabilities,
            PEAL_CAPABILITY_SHARED_MEMORY | PEAL_CAPABILITY_PROCESS_MEMORY);
  munmap(window, emulator::kWindowBytes);
  EXPECT_EQ(client.ask(opening(0)), "BUSY") << "a connection has one";
  EXPECT_EQ(client.ask(registration(PEAL_MEMORY_ALLOCATE, 4096)), "OK, descriptors 1");
  EXPECT_EQ(counted(), "");
}

// Before its context is looked at: that may end meanwhile, and then the card is opened.
TEST_F(SocketServerTest, ACardThatIsNotThereIsRefusedWhoeverHasAContext) {
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  EXPECT_EQ(client.ask(opening(2)), "BAD_ADDRESS");
  EXPECT_EQ(client.ask(opening(UINT32_MAX)), "BAD_ADDRESS");
  EXPECT_EQ(client.ask(opening(1)), "BUSY");
  EXPECT_EQ(counted(), "refused_card 2 ");
}

TEST_F(SocketServerTest, AClosedContextEndsItsConnection) {
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  EXPECT_EQ(client.ask(PEAL_ADMIN_CLOSE_CONTEXT), "OK");
  EXPECT_EQ(client.ask(PEAL_ADMIN_READ_COUNTERS), "closed");
  EXPECT_EQ(counted(), "closed 1 ");
}

TEST_F(SocketServerTest, MalformedMessagesAreRefusedByName) {
  start();
  Client client(path);
  const peal_admin_command good = make_command(PEAL_ADMIN_READ_COUNTERS);
  EXPECT_EQ(client.ask(good, sizeof(good) - 1), "BAD_VERSION");
  peal_admin_command command = good;
  command.version++;
  EXPECT_EQ(client.ask(command), "BAD_VERSION");
  command = good;
  command.opcode = 99;
  EXPECT_EQ(client.ask(command), "BAD_OPCODE");
  command = good;
  command.context = 1;
  EXPECT_EQ(client.ask(command), "BAD_FLAGS");
  EXPECT_EQ(client.ask(opening(2)), "BAD_ADDRESS") << "there are two cards";
  EXPECT_EQ(client.ask(good), "CLOSED") << "there is no context yet";
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  EXPECT_EQ(client.ask(good), "OK");
  EXPECT_EQ(counted(), "refused_size 1 refused_card 1 refused_context 1 ");
}

TEST_F(SocketServerTest, TooManyMalformedMessagesCloseTheConnection) {
  start();
  Client client(path);
  Client other(path);
  EXPECT_EQ(other.ask(opening(0)), "OK, descriptors 3");
  const peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  for (int i = 0; i < 16; i++) EXPECT_EQ(client.ask(command, 8), "BAD_VERSION") << i;
  EXPECT_EQ(client.ask(command), "closed");
  EXPECT_EQ(other.ask(command), "OK");
  EXPECT_EQ(counted(), "closed 1 refused_size 16 strikes_closed 1 ");
}

TEST_F(SocketServerTest, DescriptorsAreTakenFromNobody) {
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  const int own[] = {STDIN_FILENO};
  EXPECT_EQ(client.ask(make_command(PEAL_ADMIN_READ_COUNTERS), sizeof(peal_admin_command), own),
            "BAD_ADDRESS");
  EXPECT_EQ(client.ask(PEAL_ADMIN_READ_COUNTERS), "closed");
  EXPECT_EQ(counted(), "closed 1 refused_descriptors 1 ");
}

TEST_F(SocketServerTest, MemoryBeyondTheConnectionsShareIsRefused) {
  socket.shares.connection_memory_bytes = emulator::kWindowBytes + 8192;
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  EXPECT_EQ(client.ask(registration(PEAL_MEMORY_ALLOCATE, 8193)), "NO_RESOURCES");
  EXPECT_EQ(client.ask(registration(PEAL_MEMORY_ALLOCATE, 8192)), "OK, descriptors 1");
  EXPECT_EQ(client.ask(registration(PEAL_MEMORY_ALLOCATE, 1)), "NO_RESOURCES");
  peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  EXPECT_EQ(client.ask(command), "BAD_KEY");
  EXPECT_EQ(counted(), "no_memory 2 ");
}

// Not when it is unregistered: it can be kept, and touched, as long as one likes.
TEST_F(SocketServerTest, MemoryComesBackWhenItsClientHasLetGoOfIt) {
  socket.shares.user_memory_bytes = 2 * emulator::kWindowBytes + 8192;
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  FileDescriptor window = std::move(client.descriptors[0]);
  EXPECT_EQ(client.ask(registration(PEAL_MEMORY_ALLOCATE, 8192)), "OK, descriptors 1");
  peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  command.u.unregister_memory.key = client.reply.u.register_memory.key;
  FileDescriptor memory = std::move(client.descriptors[0]);
  EXPECT_EQ(client.ask(command), "OK");
  const peal_admin_command next = registration(PEAL_MEMORY_ALLOCATE, emulator::kWindowBytes + 1);
  EXPECT_EQ(client.ask(next), "NO_RESOURCES");
  memory.reset();
  EXPECT_EQ(client.ask(next), "OK, descriptors 1");
  client.descriptors[0].reset();
  // So it is where its context ends.
  client.hang_up();
  Client other(path);
  while (other.ask(opening(0)) == "NO_RESOURCES") {
  }
  EXPECT_EQ(other.ask(next), "NO_RESOURCES");
  window.reset();
  EXPECT_EQ(other.ask(next), "OK, descriptors 1");
}

// A child has its parent's connection, and other memory at the same addresses.
TEST_F(SocketServerTest, MemoryIsThatOfTheProcessThatConnected) {
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  const peal_admin_command command = registration(PEAL_MEMORY_PROCESS, 4096);
  const pid_t child = fork();
  if (child == 0) _exit(client.ask(command) == "BAD_ADDRESS" ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(client.ask(command), "OK");
  EXPECT_EQ(counted(), "refused_process 1 ");
}

// What was opened for it is nobody's then.
TEST_F(SocketServerTest, MemoryThatTheCardRefusesIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const FileDescriptor reader(ends[0]);
  socket.memory.is_opened = [](uid_t) { return true; };
  socket.memory.open = [end = ends[1]](pid_t, int, uid_t, gid_t) { return OpenedMemory{end}; };
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  EXPECT_EQ(client.ask(registration(PEAL_MEMORY_PROCESS, 0)), "BAD_LENGTH");
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "somebody may write to it";
}

TEST_F(SocketServerTest, WhoseMemoryIsOutOfReachIsSaidOnce) {
  test::LogPipe pipe;
  const LogStream stream(pipe.writer());
  rte_openlog_stream(stream.file());
  socket.memory.is_opened = [](uid_t) { return true; };
  socket.memory.open = [](pid_t, int, uid_t, gid_t) { return OpenedMemory{.not_as_user = true}; };
  start();
  for (int i = 0; i < 2; i++) {
    Client client(path);
    EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
    for (int j = 0; j < 2; j++)
      EXPECT_EQ(client.ask(registration(PEAL_MEMORY_PROCESS, 4096)), "OK");
  }
  stop();
  rte_openlog_stream(nullptr);
  EXPECT_EQ(pipe.text(), "peal-nic: memory that processes of user " + std::to_string(geteuid()) +
                             " register is out of reach: peal-nic may not become that user "
                             "(CAP_SETUID, CAP_SETGID)\n");
}

TEST_F(SocketServerTest, WhoWritesAnImpossibleIndexIsNamed) {
  test::LogPipe pipe;
  const LogStream stream(pipe.writer());
  rte_openlog_stream(stream.file());
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  void* const window = mmap(nullptr, emulator::kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            client.descriptors[0].get(), 0);
  ASSERT_NE(window, MAP_FAILED);
  auto* const page =
      reinterpret_cast<peal_host_page*>(static_cast<uint8_t*>(window) + PEAL_WINDOW_HOST_PAGE);
  __atomic_store_n(&page->indices.submission_tail, uint64_t{1} << 40, __ATOMIC_RELEASE);
  const uint64_t one = 1;
  EXPECT_EQ(write(client.descriptors[2].get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  EXPECT_EQ(client.hear(), "closed");
  EXPECT_EQ(counted(), "closed 1 wild_index_closed 1 ");
  munmap(window, emulator::kWindowBytes);
  stop();
  rte_openlog_stream(nullptr);
  EXPECT_EQ(pipe.text(), "peal-nic: process " + std::to_string(getpid()) + " of user " +
                             std::to_string(geteuid()) +
                             " wrote an impossible index: its connection is closed\n");
}

// Opens memory of processes, the first of it when it is told to.
class StuckOpener {
 public:
  OpenedMemory open() {
    std::unique_lock lock(mutex_);
    if (opens_++ > 0) return {::open("/dev/null", O_RDWR | O_CLOEXEC)};
    changed_.notify_all();
    changed_.wait(lock, [this] { return let_go_; });
    return {};
  }
  void wait_until_stuck() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return opens_ > 0; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int opens_ = 0;
  bool let_go_ = false;
};

class StuckOpenerTest : public SocketServerTest {
 protected:
  StuckOpenerTest() {
    socket.memory.is_opened = [](uid_t) { return true; };
    socket.memory.open = [opener = opener](pid_t, int, uid_t, gid_t) { return opener->open(); };
  }
  // The server's thread ends before it.
  ~StuckOpenerTest() override {
    stop();
    opener->let_go();
  }
  // A client whose memory is being opened.
  void get_stuck(Client& client) {
    EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
    client.say(registration(PEAL_MEMORY_PROCESS, 4096));
    opener->wait_until_stuck();
  }

  const std::shared_ptr<StuckOpener> opener = std::make_shared<StuckOpener>();
};

TEST_F(StuckOpenerTest, HoldsUpNobodyElseAndNotTheEnd) {
  start();
  Client stuck(path);
  get_stuck(stuck);
  Client other(path);
  EXPECT_EQ(other.ask(opening(0)), "OK, descriptors 3");
  EXPECT_EQ(other.ask(registration(PEAL_MEMORY_PROCESS, 4096)), "OK");
  EXPECT_EQ(other.ask(registration(PEAL_MEMORY_ALLOCATE, 4096)), "OK, descriptors 1");
  EXPECT_EQ(counted(), "");
  stop();
  EXPECT_EQ(stuck.hear(), "closed");
}

TEST_F(StuckOpenerTest, AnswersWhenItIsOpenAndTakesNothingMoreBefore) {
  start();
  Client stuck(path);
  get_stuck(stuck);
  stuck.say(make_command(PEAL_ADMIN_CLOSE_CONTEXT));
  Client other(path);
  EXPECT_EQ(other.ask(PEAL_ADMIN_READ_COUNTERS), "CLOSED") << "there is no context";
  opener->let_go();
  EXPECT_EQ(stuck.hear(), "OK");
  EXPECT_EQ(stuck.reply.opcode, PEAL_ADMIN_REGISTER_MEMORY);
  EXPECT_EQ(stuck.hear(), "OK");
  EXPECT_EQ(stuck.reply.opcode, PEAL_ADMIN_CLOSE_CONTEXT);
  EXPECT_EQ(counted(), "closed 1 ");
}

TEST_F(StuckOpenerTest, EndsItsClientAndKeepsItsPlace) {
  socket.clients_max = 2;
  socket.copy_deadline_ms = 500;
  start();
  Client other(path);
  EXPECT_EQ(other.ask(opening(0)), "OK, descriptors 3");
  Client stuck(path);
  get_stuck(stuck);
  now_ms = 500;
  for (int i = 0; i < 2; i++) EXPECT_EQ(other.ask(PEAL_ADMIN_READ_COUNTERS), "OK");
  EXPECT_FALSE(stuck.is_closed());
  next_ms = 501;  // nothing makes it look then
  EXPECT_EQ(stuck.hear(), "closed");
  EXPECT_EQ(server->counters_json()["overdue_closed"], 1u);
  // However often it comes again, its thread is one.
  EXPECT_EQ(Client(path).ask(PEAL_ADMIN_READ_COUNTERS), "closed");
  EXPECT_EQ(other.ask(PEAL_ADMIN_READ_COUNTERS), "OK");
  opener->let_go();
  while (Client(path).ask(PEAL_ADMIN_READ_COUNTERS) == "closed") {
  }
}

TEST_F(SocketServerTest, MoreConnectionsThanThereMayBeAreClosed) {
  socket.clients_max = 2;
  start();
  Client first(path);
  EXPECT_EQ(first.ask(opening(0)), "OK, descriptors 3");
  Client second(path);
  EXPECT_EQ(second.ask(opening(1)), "OK, descriptors 3");
  Client third(path);
  EXPECT_EQ(third.ask(opening(1)), "closed");
  EXPECT_EQ(first.ask(PEAL_ADMIN_READ_COUNTERS), "OK");
  // Its place is another's once it is closed, which may take its time.
  second.hang_up();
  while (Client(path).ask(PEAL_ADMIN_READ_COUNTERS) == "closed") {
  }
  const nlohmann::ordered_json counters = server->counters_json();
  EXPECT_EQ(counters["accepted"], 3u);
  EXPECT_GE(counters["refused_too_many"], 1u);
}

TEST_F(SocketServerTest, AClientThatGoesTakesItsContextWithIt) {
  socket.shares.user_contexts = 1;
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  Client next(path);
  EXPECT_EQ(next.ask(opening(0)), "NO_RESOURCES");
  client.hang_up();
  while (next.ask(opening(0)) == "NO_RESOURCES") {
  }
  EXPECT_EQ(next.ask(PEAL_ADMIN_READ_COUNTERS), "OK");
}

// The server looks whenever it has served anybody: who is served again finds that it has.
TEST_F(SocketServerTest, WhoOpensNoContextIsClosed) {
  socket.half_open_ms = 500;
  start();
  Client other(path);
  EXPECT_EQ(other.ask(opening(0)), "OK, descriptors 3");
  Client idle(path);
  EXPECT_EQ(idle.ask(PEAL_ADMIN_READ_COUNTERS), "CLOSED") << "it has been let in";
  now_ms = 500;
  for (int i = 0; i < 2; i++) EXPECT_EQ(other.ask(PEAL_ADMIN_READ_COUNTERS), "OK");
  EXPECT_FALSE(idle.is_closed());
  now_ms = 501;
  for (int i = 0; i < 2; i++) EXPECT_EQ(other.ask(PEAL_ADMIN_READ_COUNTERS), "OK");
  EXPECT_EQ(idle.ask(PEAL_ADMIN_READ_COUNTERS), "closed");
  const nlohmann::ordered_json counters = server->counters_json();
  EXPECT_EQ(counters["half_open_closed"], 1u);
  EXPECT_EQ(counters["accepted"], 2u);
}

TEST_F(SocketServerTest, TheEndClosesAllAndTakesTheNameAway) {
  start();
  Client client(path);
  EXPECT_EQ(client.ask(opening(0)), "OK, descriptors 3");
  Client silent(path);
  EXPECT_EQ(silent.ask(PEAL_ADMIN_READ_COUNTERS), "CLOSED") << "it has been let in";
  stop();
  EXPECT_EQ(client.ask(PEAL_ADMIN_READ_COUNTERS), "closed");
  EXPECT_EQ(silent.ask(PEAL_ADMIN_READ_COUNTERS), "closed");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(loop->card(0).admin->open_contexts(), 0u);
}

}  // namespace
}  // namespace peal::nic
