// SPDX-License-Identifier: BSD-2-Clause
// The one list of algorithms. Nothing else in the firmware names one.
#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/broadcast_all.h"
#include "firmware/collective/allgather/doubling.h"
#include "firmware/collective/barrier/barrier.h"
#include "firmware/operation/algorithm.h"

namespace peal {
namespace {

constexpr PacketRules kSignals = {
    .of_operation = true, .data = false, .signals = true, .refusals = true};
constexpr PacketRules kBlocks = {
    .of_operation = true, .data = true, .signals = false, .refusals = true};

constexpr Algorithm by_dissemination(uint8_t operation) {
  return {.operation = operation,
          .algorithm = PEAL_ALGORITHM_DISSEMINATION,
          .flags = 0,
          .release = Release::kNoPieces,
          .packets = kSignals,
          .check = barrier::check,
          .open = barrier::open,
          .post = barrier::post,
          .on_data = nullptr,
          .on_signal = barrier::on_signal,
          .on_nack = barrier::on_nack,
          .on_dma = nullptr,
          .advance = barrier::advance,
          .chase = barrier::chase};
}

constexpr Algorithm kAlgorithms[] = {
    by_dissemination(PEAL_OPERATION_BARRIER),
    by_dissemination(PEAL_OPERATION_DESTROY),
    {.operation = PEAL_OPERATION_ALLGATHER,
     .algorithm = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST,
     .flags = PEAL_SUBMIT_IN_PLACE,
     .release = Release::kSymmetric,
     .packets = kBlocks,
     .check = allgather::check,
     .open = broadcast_all::open,
     .post = broadcast_all::post,
     .on_data = broadcast_all::on_data,
     .on_signal = nullptr,
     .on_nack = broadcast_all::on_nack,
     .on_dma = broadcast_all::on_dma,
     .advance = broadcast_all::advance,
     .chase = broadcast_all::chase},
    {.operation = PEAL_OPERATION_ALLGATHER,
     .algorithm = PEAL_ALGORITHM_RECURSIVE_DOUBLING,
     .flags = PEAL_SUBMIT_IN_PLACE,
     .release = Release::kSymmetric,
     .packets = kBlocks,
     .check = allgather::check,
     .open = doubling::open,
     .post = doubling::post,
     .on_data = doubling::on_data,
     .on_signal = nullptr,
     .on_nack = doubling::on_nack,
     .on_dma = doubling::on_dma,
     .advance = doubling::advance,
     .chase = doubling::chase},
};

// Row of each pair, plus one.
struct Index {
  uint8_t row[PEAL_OPERATION_COUNT][PEAL_ALGORITHM_COUNT];
};

constexpr Index index_rows() {
  Index index = {};
  uint8_t row = 0;
  for (const Algorithm& algorithm : kAlgorithms) {
    index.row[algorithm.operation][algorithm.algorithm] = ++row;
  }
  return index;
}

constexpr Index kIndex = index_rows();

}  // namespace

const Algorithm* find_algorithm(uint8_t operation, uint8_t algorithm) {
  if (operation >= PEAL_OPERATION_COUNT || algorithm >= PEAL_ALGORITHM_COUNT) return nullptr;
  const uint8_t row = kIndex.row[operation][algorithm];
  return row == 0 ? nullptr : &kAlgorithms[row - 1];
}

bool find_operation_flags(uint8_t operation, uint32_t* flags) {
  bool found = false;
  *flags = 0;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.operation != operation) continue;
    found = true;
    *flags |= algorithm.flags;
  }
  return found;
}

}  // namespace peal
