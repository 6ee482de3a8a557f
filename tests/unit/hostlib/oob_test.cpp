// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band exchange: rounds, ranks that leave, strangers.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "hostlib/oob_server.h"
#include "peal/oob.h"

namespace peal::host {
namespace {

class Oob : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/peal-oob-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    server_name_ = "unix:" + folder_ + "/oob";
  }
  void TearDown() override {
    stop();
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    std::filesystem::remove_all(folder_);
  }
  void serve(uint32_t size) {
    server_ = std::make_unique<OobServer>(size);
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
    EXPECT_EQ(peal_oob_connect(server_name_.c_str(), rank, size, 5000, &oob), PEAL_OK)
        << peal_last_error_text();
    return oob;
  }

  std::string folder_;
  std::string server_name_;
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
        ASSERT_EQ(peal_oob_allgather(oob, own.data(), all.data(), bytes), 0);
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
      EXPECT_EQ(peal_oob_allgather(oob, &rank, all, sizeof(rank)), 0);
      EXPECT_EQ(all[2], 2u);
      // Nobody may leave before rank 0's answer has reached all: another round.
      EXPECT_EQ(peal_oob_allgather(oob, &rank, all, sizeof(rank)), 0);
      if (rank == 0) {
        // Its server goes with it.
        peal_oob_allgather(oob, &rank, all, sizeof(rank));
      }
      peal_oob_close(oob);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST_F(Oob, RankThatLeavesIsNamed) {
  serve(3);
  peal_oob* first = connect(0, 3);
  peal_oob* second = connect(1, 3);
  peal_oob* third = connect(2, 3);
  uint32_t value = 0;
  uint32_t all[3] = {};
  std::thread waiting([&] {
    EXPECT_NE(peal_oob_allgather(first, &value, all, sizeof(value)), 0);
    EXPECT_NE(std::string(peal_last_error_text()).find("rank 2"), std::string::npos)
        << peal_last_error_text();
  });
  peal_oob_close(third);
  waiting.join();
  // Later rounds fail at once, for those who were not in that one too.
  uint32_t all_again[3] = {};
  EXPECT_NE(peal_oob_allgather(second, &value, all_again, sizeof(value)), 0);
  EXPECT_NE(peal_oob_allgather(first, &value, all_again, sizeof(value)), 0);
  peal_oob_close(first);
  peal_oob_close(second);
}

TEST_F(Oob, RanksOutOfStep) {
  serve(2);
  peal_oob* first = connect(0, 2);
  peal_oob* second = connect(1, 2);
  uint8_t buffer[64] = {};
  uint8_t other_buffer[64] = {};
  std::thread rank([&] { EXPECT_NE(peal_oob_allgather(first, buffer, buffer + 8, 4), 0); });
  EXPECT_NE(peal_oob_allgather(second, other_buffer, other_buffer + 16, 8), 0);
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
    EXPECT_NE(peal_oob_allgather(first, &value, all, sizeof(value)), 0);
  });
  stop();
  rank.join();
  peal_oob_close(first);
}

TEST_F(Oob, StrangersAreTurnedAway) {
  serve(2);
  peal_oob* first = connect(0, 2);
  peal_oob* none = nullptr;
  EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 0, 2, 100, &none), PEAL_ERR_OUT_OF_BAND);
  EXPECT_EQ(peal_oob_connect(server_name_.c_str(), 1, 3, 100, &none), PEAL_ERR_OUT_OF_BAND);
  OobAddress address;
  std::string error;
  ASSERT_TRUE(parse_oob_address(server_name_, &address, &error));
  const int stranger = oob_connect_once(address);
  ASSERT_GE(stranger, 0);
  const std::string garbage(4096, 'x');
  ASSERT_GT(send(stranger, garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
  char byte = 0;
  EXPECT_LE(recv(stranger, &byte, 1, 0), 0);  // closed or reset
  close(stranger);
  // The others never noticed.
  peal_oob* second = connect(1, 2);
  uint32_t values[2] = {};
  const uint32_t one = 1;
  const uint32_t two = 2;
  std::thread rank([&] {
    uint32_t all[2] = {};
    EXPECT_EQ(peal_oob_allgather(second, &two, all, sizeof(two)), 0);
  });
  EXPECT_EQ(peal_oob_allgather(first, &one, values, sizeof(one)), 0);
  rank.join();
  EXPECT_EQ(values[1], 2u);
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
