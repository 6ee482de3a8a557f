// SPDX-License-Identifier: BSD-2-Clause
// The one list of algorithms. Nothing else in the firmware names one.
#include "firmware/collective/allgather/broadcast_all.h"
#include "firmware/collective/allgather/direct.h"
#include "firmware/collective/allgather/doubling.h"
#include "firmware/collective/allgather/ring.h"
#include "firmware/collective/allgatherv/direct.h"
#include "firmware/collective/alltoall/bruck.h"
#include "firmware/collective/alltoall/direct.h"
#include "firmware/collective/alltoallv/bruck.h"
#include "firmware/collective/alltoallv/direct.h"
#include "firmware/collective/barrier/barrier.h"
#include "firmware/collective/broadcast/binomial.h"
#include "firmware/operation/algorithm.h"

namespace peal {
namespace {

constexpr PacketRules kSignals = {.types = packet_types({PEAL_PACKET_SIGNAL, PEAL_PACKET_NACK,
                                                         PEAL_PACKET_NOT_YET, PEAL_PACKET_REFUSE}),
                                  .blocks = false};
constexpr PacketRules kBlocks = {.types = packet_types({PEAL_PACKET_DATA, PEAL_PACKET_NACK,
                                                        PEAL_PACKET_NOT_YET, PEAL_PACKET_REFUSE}),
                                 .blocks = true};
// Credits go up as signals.
constexpr PacketRules kCreditedBlocks = {
    .types = packet_types({PEAL_PACKET_DATA, PEAL_PACKET_SIGNAL, PEAL_PACKET_NACK,
                           PEAL_PACKET_NOT_YET, PEAL_PACKET_REFUSE}),
    .blocks = true};

constexpr Algorithm kRows[] = {
    {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, 0, false, Release::kNoPieces,
     Senders::kPeers, Lengths::kOne, kSignals, barrier::kFunctions, CONFIG_GROUP_RANKS_MAX},
    {PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION, 0, false, Release::kNoPieces,
     Senders::kPeers, Lengths::kOne, kSignals, barrier::kFunctions, CONFIG_GROUP_RANKS_MAX},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kPeers, Lengths::kOne, kBlocks, broadcast_all::kFunctions},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kPeers, Lengths::kOne, kBlocks, doubling::kFunctions,
     kImageRanks},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kGroup, Lengths::kOne, kBlocks, direct_allgather::kFunctions,
     kPairRanks},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kPeers, Lengths::kOne, kBlocks, ring::kFunctions},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kPeers, Lengths::kOne, kBlocks, bruck::kFunctions},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kGroup, Lengths::kOne, kBlocks, direct_alltoall::kFunctions,
     kPairRanks},
    {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kGroup, Lengths::kOfParts, kBlocks,
     direct_allgatherv::kFunctions, kPairRanks},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kGroup, Lengths::kOfParts, kBlocks, direct_alltoallv::kFunctions,
     kPairRanks},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, PEAL_SUBMIT_IN_PLACE, false,
     Release::kSymmetric, Senders::kGroup, Lengths::kOfParts, kBlocks, bruckv::kFunctions,
     bruckv::kRanks},
    {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, 0, true, Release::kCredited,
     Senders::kPeers, Lengths::kOne, kCreditedBlocks, binomial::kFunctions},
};

constexpr AlgorithmTable table() {
  AlgorithmTable table = {};
  for (const Algorithm& algorithm : kRows) {
    table.rows[algorithm.operation][algorithm.algorithm] = &algorithm;
    // What a submission may carry depends on the operation alone.
    PEAL_ASSERT(!table.served[algorithm.operation] ||
                table.flags[algorithm.operation] == algorithm.flags);
    table.flags[algorithm.operation] = algorithm.flags;
    table.served[algorithm.operation] = true;
  }
  return table;
}

}  // namespace

constinit const AlgorithmTable kAlgorithms = table();

}  // namespace peal
