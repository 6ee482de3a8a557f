// SPDX-License-Identifier: BSD-2-Clause
// Groups that register buffers by themselves: memory that comes and goes at the same address, and
// more buffers than are kept.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kKept = 256;  // registrations, by default

peal_group* make_registering(const Job& job) {
  peal_group_params params = {};
  params.struct_bytes = sizeof(params);
  params.flags = PEAL_GROUP_REGISTER;
  peal_group* group = nullptr;
  EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                   &params, &group));
  return group;
}

uint8_t* map_at(const Job& job, void* place, size_t bytes) {
  void* memory = mmap(place, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | (place == nullptr ? 0 : MAP_FIXED), -1, 0);
  EXPECT_TRUE(job, memory != MAP_FAILED);
  return static_cast<uint8_t*>(memory);
}

// Other pages lie there from now on.
void replace(const Job& job, uint8_t* memory, size_t bytes, uint64_t how) {
  switch (how % 4) {
    case 0:
      EXPECT_TRUE(job, munmap(memory, bytes) == 0);
      (void)map_at(job, memory, bytes);
      break;
    case 1:
      EXPECT_TRUE(job, madvise(memory, bytes, MADV_DONTNEED) == 0);
      break;
    case 2: {
      uint8_t* other = map_at(job, nullptr, bytes);
      memset(other, 0x11, bytes);
      EXPECT_TRUE(job,
                  mremap(other, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) == memory);
      break;
    }
    default:  // over what is there
      (void)map_at(job, memory, bytes);
  }
}

void gather(const Job& job, peal_group* group, uint8_t* memory, size_t bytes, uint64_t round) {
  uint8_t* send = memory + job.size * bytes;
  memset(memory, 0xee, job.size * bytes);
  fill(send, bytes, job.rank, round);
  EXPECT_OK(job, peal_allgather(group, send, memory, bytes));
  EXPECT_TRUE(job, is_gathered(job, memory, bytes, round));
}

// The same by a request that was made before other pages lay there.
void gather_again(const Job& job, peal_request* request, uint8_t* memory, size_t bytes,
                  uint64_t round) {
  memset(memory, 0xee, job.size * bytes);
  fill(memory + job.size * bytes, bytes, job.rank, round);
  EXPECT_OK(job, peal_start(request));
  EXPECT_OK(job, peal_wait(request));
  EXPECT_TRUE(job, is_gathered(job, memory, bytes, round));
}

uint32_t regions(const Job& job) {
  peal_statistics read = {};
  read.struct_bytes = sizeof(read);
  EXPECT_OK(job, peal_read_statistics(job.card, &read));
  return read.regions;
}

}  // namespace

// remapped ROUNDS BYTES
void run_remapped(Job& job) {
  const uint64_t rounds = job.number(0, 24);
  const size_t bytes = job.number(1, 10'000);
  open_all(job);
  peal_group* group = make_registering(job);
  const size_t mapped = ((job.size + 1) * bytes + kPage - 1) & ~(kPage - 1);
  uint8_t* memory = map_at(job, nullptr, mapped);
  peal_request* request = nullptr;
  EXPECT_OK(job, peal_allgather_init(group, memory + job.size * bytes, memory, bytes, &request));
  for (uint64_t round = 0; round < rounds; round++) {
    gather(job, group, memory, bytes, 3 * round);
    gather(job, group, memory, bytes, 3 * round + 1);
    replace(job, memory, mapped, round + job.rank);
    EXPECT_TRUE(job, regions(job) <= 2);
    gather_again(job, request, memory, bytes, 3 * round + 2);
    EXPECT_TRUE(job, regions(job) <= 2);
    replace(job, memory, mapped, round + job.rank + 1);
  }
  EXPECT_OK(job, peal_request_free(request));
  munmap(memory, mapped);
  EXPECT_OK(job, peal_group_destroy(group));
  close_all(job);
}

// buffers COUNT: as many as are asked for, each used twice; no more than so many stay registered.
void run_buffers(Job& job) {
  const uint64_t count = job.number(0, 2 * kKept);
  constexpr size_t kBytes = 200;
  open_all(job);
  peal_group* group = make_registering(job);
  const size_t each = (job.size + 1) * kBytes;
  std::vector<uint8_t> memory(count * each);
  for (uint64_t pass = 0; pass < 2; pass++) {
    for (uint64_t i = 0; i < count; i++) {
      gather(job, group, memory.data() + i * each, kBytes, pass * count + i);
    }
  }
  EXPECT_TRUE(job, regions(job) <= kKept);
  EXPECT_OK(job, peal_group_destroy(group));
  close_all(job);
}

}  // namespace peal::e2e
