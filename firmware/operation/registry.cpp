// SPDX-License-Identifier: BSD-2-Clause
// The one list of algorithms. Nothing else in the firmware names one.
#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/broadcast_all.h"
#include "firmware/collective/allgather/doubling.h"
#include "firmware/collective/barrier/barrier.h"
#include "firmware/operation/algorithm.h"

namespace peal {
namespace {

constexpr PacketRules kSignals = {.types = packet_types({PEAL_PACKET_SIGNAL, PEAL_PACKET_NACK,
                                                         PEAL_PACKET_NOT_YET, PEAL_PACKET_REFUSE}),
                                  .blocks = false};
constexpr PacketRules kBlocks = {.types = packet_types({PEAL_PACKET_DATA, PEAL_PACKET_NACK,
                                                        PEAL_PACKET_NOT_YET, PEAL_PACKET_REFUSE}),
                                 .blocks = true};

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

constexpr Algorithm kRows[] = {
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

constexpr AlgorithmTable table() {
  AlgorithmTable table = {};
  for (const Algorithm& algorithm : kRows) {
    table.rows[algorithm.operation][algorithm.algorithm] = &algorithm;
    table.flags[algorithm.operation] |= algorithm.flags;
    table.served[algorithm.operation] = true;
  }
  return table;
}

}  // namespace

constinit const AlgorithmTable kAlgorithms = table();

}  // namespace peal
