// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/start.h"

#include "firmware/group/member.h"
#include "firmware/queue/fetch.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/list.h"
#include "firmware/queue/pool.h"
#include "firmware/queue/watch.h"

namespace peal::queue {
namespace {

bool is_bare(const peal_submission& entry) {
  const uint8_t reserved = entry.reserved[0] | entry.reserved[1] | entry.reserved[2];
  return entry.algorithm == PEAL_ALGORITHM_NONE && entry.flags == 0 && reserved == 0 &&
         (entry.send_offset | entry.receive_offset) == 0 && (entry.receive_key | entry.root) == 0;
}

}  // namespace

peal_status accept_start(Card& card, ContextId context, const peal_submission& entry) {
  Member* member = find_member(card, entry.member);
  if (member == nullptr || member->context != context || member->phase != MemberPhase::kActive) {
    return PEAL_STATUS_BAD_GROUP;
  }
  if (!is_bare(entry)) return PEAL_STATUS_BAD_FLAGS;
  Queue* queue = find_queue(card, *member, entry.send_key);
  if (queue == nullptr) return PEAL_STATUS_BAD_KEY;
  if (entry.block_bytes > 0xffffffffu) return PEAL_STATUS_BAD_LENGTH;
  const uint64_t passes = entry.block_bytes;
  // (Ranks that fail different ones of several iterations would wait for each other.)
  if (queue->origin.together && passes > 1) return PEAL_STATUS_BAD_LENGTH;
  if (entry.sequence != queue->next_to_start || passes > ~uint64_t{0} - entry.sequence) {
    return PEAL_STATUS_BAD_SEQUENCE;
  }
  if (queue->start_count == kStarts) return PEAL_STATUS_TOO_MANY;
  queue->starts[(queue->first_start + queue->start_count) % kStarts] = {
      .first = entry.sequence,
      .passes = static_cast<uint32_t>(passes),
      .cookie = entry.cookie,
      .accepted_ns = card.now};
  ++queue->start_count;
  queue->next_to_start += passes;
  ++card.contexts[context].outstanding;
  count(card, PEAL_COUNTER_STARTS);
  wake(card, *queue);
  expect_looks(card);
  return PEAL_STATUS_OK;
}

void end_start(const Scope& scope) {
  auto& [card, member, queue] = scope;
  const Start start = queue.starts[queue.first_start];
  const Failure failure = queue.failure;
  const bool good = failure.status == PEAL_STATUS_OK;
  // What is left of it, where it failed; nobody tells these iterations anything any more.
  pass_iterations(queue, start.passes - queue.passes_done);
  // What was wrong in the cache is fetched again.
  if (!good || !is_resident(queue)) set_fetched(queue, 0);
  if (!good && start.passes != 0) queue.failed_before = queue.origin.iteration;
  queue.consumer = 0;
  queue.held_count = 0;
  queue.passes_done = 0;
  queue.failure = {};
  queue.told = false;
  queue.running = queue.issuing = false;
  queue.first_start = static_cast<uint8_t>((queue.first_start + 1) % kStarts);
  --queue.start_count;
  count(card, good ? PEAL_COUNTER_OPERATIONS_COMPLETED : PEAL_COUNTER_OPERATIONS_FAILED);
  Context& context = card.contexts[queue.context];
  --context.outstanding;
  if (context.phase != ContextPhase::kOpen) return;  // nobody listens any more
  peal_completion entry = {};
  entry.cookie = start.cookie;
  entry.sequence = start.first;
  entry.card_ns = card.now - start.accepted_ns;
  entry.member = queue.member;
  entry.failed_rank = good ? PEAL_NO_RANK : failure.rank;
  entry.status = static_cast<uint16_t>(failure.status);
  entry.operation = PEAL_OPERATION_START;
  entry.bytes = good ? 0 : failure.index;
  entry.tag = static_cast<uint64_t>(failure.reason);
  if (failure.elsewhere) entry.tag |= PEAL_PROGRAM_ELSEWHERE;
  card.port->complete(queue.context, entry);
}

}  // namespace peal::queue
