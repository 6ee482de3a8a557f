// SPDX-License-Identifier: BSD-2-Clause
// Programs of the C API: written by hostlib/program, given to the card, started and freed.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "hostlib/administration.h"
#include "hostlib/ended.h"
#include "hostlib/handles.h"
#include "hostlib/memory.h"
#include "hostlib/own_exchange.h"
#include "hostlib/program.h"
#include "hostlib/program_check.h"
#include "hostlib/program_handle.h"
#include "hostlib/program_text.h"
#include "hostlib/programs.h"
#include "hostlib/rings.h"
#include "hostlib/sized.h"
#include "hostlib/trinary.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

static_assert(PEAL_TRINARY_ENGINES == TrinaryTrees::kTrees);
static_assert(PEAL_ANY_SOURCE == PEAL_ANY_RANK && PEAL_NO_COUNT == PEAL_NO_COUNTER);
constexpr uint32_t kNamesMax = PEAL_NO_QUEUE;
// Tries to find names that are free: one more than any card has queues (QUEUES in Kconfig).
constexpr int kNameTries = 4097;

bool is_committed(const peal_program& program) { return program.group != nullptr || program.over; }

// A function of the C API that writes one descriptor.
template <typename Function>
peal_error write(peal_program* program, const char* call, Function&& function) {
  if (program == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: program is null", call);
  if (is_committed(*program)) return fail(PEAL_ERR_BUSY, "%s: it is committed", call);
  return guarded([&] {
    function();
    return PEAL_OK;
  });
}

// Numbers that a descriptor has no room for are those of no counter.
uint16_t counter_of(uint32_t counter) {
  return static_cast<uint16_t>(counter < PEAL_NO_COUNTER ? counter : PEAL_NO_COUNTER);
}

Program::Notice notice_of(const peal_program_notice& notice) {
  return {.program = notice.program == nullptr ? nullptr : &notice.program->written,
          .counter = counter_of(notice.counter),
          .steps = notice.steps};
}

// As much as fits, and a zero behind it.
peal_error give_text(const std::string& text, char* to, size_t capacity, size_t* length) {
  if (length != nullptr) *length = text.size();
  if (capacity == 0) return PEAL_OK;
  if (to == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "the text's buffer is null");
  const size_t bytes = std::min(capacity - 1, text.size());
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
  return PEAL_OK;
}

peal_error first_wrong(const Program& program, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (!finding.wrong) continue;
    return fail(PEAL_ERR_BAD_PROGRAM, "descriptor %u of %u: %s", finding.step, program.count(),
                finding.text.c_str());
  }
  return PEAL_OK;
}

// What the card reads, into the program's memory.
peal_error encode(peal_context& context, peal_program& program) {
  peal_error error = PEAL_OK;
  const auto find = [&](const void* memory, uint64_t bytes, bool written, uint32_t* key,
                        uint64_t* offset) {
    const auto* const at = static_cast<const uint8_t*>(memory);
    const Allocation& work = program.work;
    if (work.address != nullptr && at >= work.address &&
        at + bytes <= work.address + work.mapped_bytes) {
      *key = work.key;
      *offset = static_cast<uint64_t>(at - work.address);
      return true;
    }
    Region region;
    error =
        context.memory.find(memory, bytes, written ? PEAL_WRITE : PEAL_READ, "program's", &region);
    if (error != PEAL_OK) return false;
    *key = region.key;
    *offset = region.offset_of(memory);
    return true;
  };
  uint32_t step = 0;
  auto* to = static_cast<uint8_t*>(program.memory.address);
  return program.written.encode(find, to, &step) ? PEAL_OK : error;
}

size_t outstanding(peal_program& program) {
  std::erase_if(program.started,
                [&](uint64_t cookie) { return !is_pending(*program.group->context, cookie); });
  return program.started.size();
}

Posting posting_of(const peal_program& program, uint32_t iterations) {
  Posting entry = {};
  entry.operation = PEAL_OPERATION_START;
  entry.send_key = program.handle;
  entry.block_bytes = iterations;
  return entry;
}

// Posts a start; of no iterations: a look at the program.
peal_error post_start(peal_program& program, uint32_t iterations, peal_request** request) {
  peal_group& group = *program.group;
  peal_context& context = *group.context;
  if (outstanding(program) >= program.starts_max) drain(context);
  if (outstanding(program) >= program.starts_max) {
    return fail(PEAL_ERR_TOO_MANY, "%u starts of this program are outstanding, the card's limit",
                program.starts_max);
  }
  Posting entry = posting_of(program, iterations);
  entry.sequence = program.next_iteration;
  program.started.reserve(program.started.size() + 1);  // before anything is posted: it may throw
  peal_request* made = nullptr;
  const peal_error error = submit_unordered(group, entry, &made);
  if (error != PEAL_OK) return error;
  program.next_iteration += iterations;
  program.started.push_back(cookie_of(*made));
  hand_out(*made, request);
  return PEAL_OK;
}

// This rank's half of a commit, but for the look at it.
peal_error give_to_card(peal_group& group, peal_program& program) {
  const peal_error wrong = first_wrong(program.written, check_program(program.written));
  if (wrong != PEAL_OK) return wrong;
  const Program::Shape& shape = program.written.shape();
  if (shape.rank != group.rank || shape.ranks != group.size) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "the program is for rank %u of %u, this is rank %u of %u", shape.rank, shape.ranks,
                group.rank, group.size);
  }
  peal_context& context = *group.context;
  const size_t bytes = program.written.bytes();
  peal_error error = allocate_memory(context, bytes, &program.memory);
  if (error != PEAL_OK) return error;
  error = encode(context, program);
  if (error == PEAL_OK) {
    peal_commit_program request = {};
    request.key = program.memory.key;
    request.member = group.member;
    request.count = program.written.count();
    request.counters = static_cast<uint32_t>(program.written.sources().size());
    request.scheduled = shape.scheduled;
    request.name = program.written.name();
    request.mode = program.written.mode();
    request.engine = shape.engine;
    error = commit_program(*context.transport, request, &program.handle, &program.starts_max);
    // The library has looked at all else that a card may call so.
    if (error == PEAL_ERR_BAD_FLAGS && shape.engine > 0) {
      error = fail(PEAL_ERR_INVALID_ARGUMENT, "the card has no transmit engine %u", shape.engine);
    }
  }
  if (error != PEAL_OK) leave_memory(context, program.memory);
  return error;
}

// It was not committed everywhere, and may be again, so what it needs beside its caller's memory
// stays. What the card does not let go of yet goes later, like the program of a request
// that is gone.
void withdraw(peal_program& program) {
  const std::string text = last_error_text();
  const Allocation work = std::exchange(program.work, {});
  peal_group& group = *program.group;
  drain(*group.context);
  if (take_back(program) == PEAL_ERR_BUSY) {
    auto rest = std::make_unique<peal_program>(program.written.shape());
    rest->group = std::exchange(program.group, nullptr);
    rest->memory = program.memory;
    rest->handle = program.handle;
    std::replace(group.programs.begin(), group.programs.end(), &program, rest.get());
    note_ended(*group.context, rest.release());
  }
  program.work = work;
  (void)fail(PEAL_OK, "%s", text.c_str());
}

// What ranks tell each other of a commit.
struct Word {
  uint16_t error;  // peal_error
  uint16_t name;   // of the program, if it was given one
  uint32_t named;  // how many the rank has given
};
static_assert(sizeof(Word) == 8);

// All ranks come to the same, and go on from the same name. *again: nothing is wrong but the name:
// some rank's card has a program of it, or ranks that did not make all commits alike have given
// different ones.
peal_error compare(peal_group& group, std::span<const Word> words, bool* again) {
  bool alike = true;
  *again = true;
  peal_error error = PEAL_OK;
  const Lock lock(group.context->mutex);
  for (uint32_t rank = 0; rank < words.size(); rank++) {
    const auto theirs = static_cast<peal_error>(words[rank].error);
    group.programs_named = std::max(group.programs_named, words[rank].named);
    alike = alike && words[rank].name == words[0].name;
    *again = *again && (theirs == PEAL_OK || theirs == PEAL_ERR_BUSY);
    if (theirs == PEAL_OK || error != PEAL_OK) continue;
    error = fail(PEAL_ERR_PEER_REFUSED, "rank %u could not commit its program: %s", rank,
                 peal_strerror(theirs));
  }
  if (error != PEAL_OK || alike) return error;
  return fail(PEAL_ERR_BUSY, "ranks have given the program different names");
}

// Everybody's word, in memory that the card can reach.
peal_error agree(peal_group& group, peal_error own, uint16_t name, bool* again) {
  *again = group.size == 1 && own == PEAL_ERR_BUSY;
  if (group.size == 1) return own;
  void* memory = nullptr;
  const size_t bytes = sizeof(Word) * (1 + size_t{group.size});
  const peal_error allocated = peal_alloc(group.context, bytes, &memory);
  if (allocated != PEAL_OK) {
    (void)own_allgather(group, nullptr, nullptr, 0);  // others see that lengths differ
    return allocated;
  }
  auto* words = static_cast<Word*>(memory);
  words[0] = {static_cast<uint16_t>(own), name, group.programs_named};
  const std::string text = last_error_text();
  peal_error error = own_allgather(group, words, words + 1, sizeof(Word));
  if (error == PEAL_OK) {
    error = compare(group, {words + 1, group.size}, again);
    if (own != PEAL_OK) error = fail(own, "%s", text.c_str());
  }
  leave_allocated(*group.context, memory);
  return error;
}

// One of them is committed already. The others wait for this rank's word, by which it fails on all.
peal_error refuse_committed(peal_group& group, const char* call, size_t at) {
  bool again = false;
  const peal_error error = agree(group, PEAL_ERR_INVALID_ARGUMENT, 0, &again);
  if (error != PEAL_ERR_INVALID_ARGUMENT) return error;
  return fail(PEAL_ERR_BUSY, "%s: program %zu is committed", call, at);
}

peal_error look_at(peal_program& program) {
  peal_request* request = nullptr;
  {
    const Lock lock(program.group->context->mutex);
    const peal_error error = post_start(program, 0, &request);
    if (error != PEAL_OK) return error;
  }
  const peal_error error = peal_wait(request);
  (void)peal_request_free(request);
  return error;
}

// A name of its own, which programs that tell it may know before it is on the card.
void give_name(peal_group& group, peal_program& program) {
  const Lock lock(group.context->mutex);
  program.written.set_name(static_cast<uint16_t>(group.programs_named++ % kNamesMax));
}

peal_error commit_named(peal_group& group, peal_program& program, bool* again) {
  peal_error error = PEAL_OK;
  {
    const Lock lock(group.context->mutex);
    if (group.context->programs_ended) forget_ended_programs(*group.context);
    error = give_to_card(group, program);
    if (error == PEAL_OK) {
      program.group = &group;
      group.programs.push_back(&program);
    }
  }
  const bool given = error == PEAL_OK;
  if (given) error = look_at(program);
  error = agree(group, error, program.written.name(), again);
  if (error != PEAL_OK && given) {
    const Lock lock(group.context->mutex);
    withdraw(program);
  }
  return error;
}

// All or none, under their next names: what fails, fails on all ranks. *at: which one.
peal_error commit_renamed(peal_group& group, std::span<peal_program* const> programs, size_t* at,
                          bool* again) {
  for (peal_program* program : programs) give_name(group, *program);
  for (*at = 0; *at < programs.size(); ++*at) {
    const peal_error error = commit_named(group, *programs[*at], again);
    if (error == PEAL_OK) continue;
    const Lock lock(group.context->mutex);
    for (peal_program* given : programs.first(*at)) withdraw(*given);
    return error;
  }
  return PEAL_OK;
}

// Names come round, and then one may still be a program's.
peal_error commit_in_turn(peal_group& group, std::span<peal_program* const> programs, size_t* at) {
  bool again = true;
  peal_error error = PEAL_ERR_BUSY;
  for (int i = 0; i < kNameTries && error != PEAL_OK && again; i++)
    error = commit_renamed(group, programs, at, &again);
  return error;
}

peal_error commit(peal_group& group, peal_program& program) {
  peal_program* const one = &program;
  size_t at = 0;
  return commit_in_turn(group, {&one, 1}, &at);
}

peal_error commit_all(peal_group& group, std::span<peal_program* const> programs) {
  size_t at = 0;
  const peal_error error = commit_in_turn(group, programs, &at);
  if (error == PEAL_OK) return PEAL_OK;
  const std::string text = last_error_text();
  return fail(error, "program %zu of %zu: %s", at, programs.size(), text.c_str());
}

// What a user says of a Trinaryx3.
peal_error check_trinary(const peal_trinary_params& params, uint32_t rank, uint32_t size) {
  constexpr const char* kCall = "peal_program_trinary";
  const Torus torus = {{params.torus[0], params.torus[1], params.torus[2]}};
  if (size == 0 || rank >= size) {
    return fail(PEAL_ERR_BAD_RANK, "%s: rank %u of %u", kCall, rank, size);
  }
  if (torus.ranks() != size) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: a torus of %ux%ux%u has %llu ranks, not %u", kCall,
                torus.size[0], torus.size[1], torus.size[2],
                static_cast<unsigned long long>(torus.ranks()), size);
  }
  if (params.root >= size) {
    return fail(PEAL_ERR_BAD_ROOT, "%s: root %u of %u", kCall, params.root, size);
  }
  if (params.segment_bytes == 0 || params.buffers == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: segments of no bytes, or buffers is null", kCall);
  }
  const size_t segments = params.bytes / TrinaryTrees::kTrees / params.segment_bytes;
  if (segments > PEAL_PROGRAM_DESCRIPTORS_MAX) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "%s: %zu segments of %zu bytes; a program has %u at most", kCall, segments,
                params.segment_bytes, PEAL_PROGRAM_DESCRIPTORS_MAX);
  }
  return PEAL_OK;
}

peal_error write_trinary(const peal_trinary_params& params, uint32_t rank, uint32_t size,
                         peal_program* programs[PEAL_TRINARY_ENGINES]) {
  const peal_error error = check_trinary(params, rank, size);
  if (error != PEAL_OK) return error;
  TrinaryTrees trees;
  const std::string problem = TrinaryTrees::plan(
      {{params.torus[0], params.torus[1], params.torus[2]}}, params.root, &trees);
  if (!problem.empty()) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_trinary: %s", problem.c_str());
  }
  std::vector<Program::Remote> buffers;
  for (uint32_t i = 0; i < size; i++) {
    buffers.push_back({.key = params.buffers[i].key, .offset = params.buffers[i].offset});
  }
  const Programs written =
      trinary_broadcast(trees, rank, params.buffer, params.bytes, params.segment_bytes, buffers);
  std::array<std::unique_ptr<peal_program>, PEAL_TRINARY_ENGINES> made;
  for (size_t i = 0; i < made.size(); i++) {
    made[i] = std::make_unique<peal_program>(written[i]->shape());
    made[i]->written = *written[i];
  }
  for (auto& program : made) {
    for (size_t i = 0; i < made.size(); i++) {
      program->written.redirect(written[i].get(), &made[i]->written);
    }
  }
  for (size_t i = 0; i < made.size(); i++) programs[i] = made[i].release();
  return PEAL_OK;
}

}  // namespace

peal_error commit_written(peal_group& group, Program written, const Allocation& work,
                          peal_program** program) {
  auto made = std::make_unique<peal_program>(written.shape());
  made->written = std::move(written);
  made->work = work;
  const peal_error error = commit(group, *made);
  if (error == PEAL_OK) {
    *program = made.release();
  } else {
    const Lock lock(group.context->mutex);
    leave_memory(*group.context, made->work);
  }
  return error;
}

Posting start_of(const peal_program& program) { return posting_of(program, 1); }

void delete_program(peal_program* program) { delete program; }

}  // namespace peal::host

namespace host = peal::host;
using host::fail;
using host::guarded;

extern "C" peal_error peal_program_create(uint32_t rank, uint32_t size,
                                          const peal_program_params* params,
                                          peal_program** program) {
  if (program == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_create: program is null");
  }
  *program = nullptr;
  return guarded([&] {
    peal_program_params taken = {};
    const peal_error error = host::take_struct(params, "peal_program_params", &taken);
    if (error != PEAL_OK) return error;
    if (size == 0 || rank >= size) {
      return fail(PEAL_ERR_BAD_RANK, "peal_program_create: rank %u of %u", rank, size);
    }
    if ((taken.flags & ~(PEAL_PROGRAM_IN_SESSION | PEAL_PROGRAM_POSTED_PUTS)) != 0) {
      return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_create: flags 0x%x", taken.flags);
    }
    if (taken.engine > UINT8_MAX || taken.reserved != 0) {
      return fail(PEAL_ERR_INVALID_ARGUMENT,
                  "peal_program_create: engine %u, reserved %u; engines are numbered from 0 to %u",
                  taken.engine, taken.reserved, unsigned{UINT8_MAX});
    }
    const bool session = (taken.flags & PEAL_PROGRAM_IN_SESSION) != 0;
    *program =
        new peal_program({.rank = rank,
                          .ranks = size,
                          .mode = session ? PEAL_PROGRAM_MODE_SESSION : PEAL_PROGRAM_MODE_TASKS,
                          .scheduled = taken.scheduled,
                          .engine = static_cast<uint8_t>(taken.engine),
                          .posted = (taken.flags & PEAL_PROGRAM_POSTED_PUTS) != 0});
    return PEAL_OK;
  });
}

extern "C" peal_error peal_program_counter(peal_program* program, uint32_t source,
                                           uint32_t* counter) {
  if (counter == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_counter: counter is null");
  }
  return host::write(program, "peal_program_counter",
                     [&] { *counter = program->written.add_counter(source); });
}

extern "C" peal_error peal_program_put(peal_program* program, uint32_t rank, const void* from,
                                       size_t bytes, uint32_t remote_key, uint64_t remote_offset,
                                       const peal_program_notice* notice, uint32_t done) {
  return host::write(program, "peal_program_put", [&] {
    host::Program::Notice told;
    if (notice != nullptr) told = host::notice_of(*notice);
    program->written.put(rank, from, bytes, {.key = remote_key, .offset = remote_offset},
                         notice == nullptr ? nullptr : &told, host::counter_of(done));
  });
}

extern "C" peal_error peal_program_gate(peal_program* program, uint32_t counter,
                                        uint64_t threshold) {
  bool is_put = threshold != 0;
  const peal_error error = host::write(program, "peal_program_gate", [&] {
    is_put = is_put && program->written.gate(host::counter_of(counter), threshold);
  });
  if (error != PEAL_OK || is_put) return error;
  return host::fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_gate: %s",
                    threshold == 0 ? "a threshold of 0 waits for nothing"
                                   : "the descriptor before it is not a put");
}

extern "C" peal_error peal_program_send(peal_program* program, uint32_t rank, uint64_t tag,
                                        const void* from, size_t bytes, uint32_t done) {
  return host::write(program, "peal_program_send", [&] {
    program->written.send(rank, tag, from, bytes, host::counter_of(done));
  });
}

extern "C" peal_error peal_program_receive(peal_program* program, uint32_t rank, uint64_t tag,
                                           void* to, size_t bytes, uint32_t done) {
  return host::write(program, "peal_program_receive", [&] {
    program->written.receive(rank, tag, to, bytes, host::counter_of(done));
  });
}

extern "C" peal_error peal_program_wait(peal_program* program, uint32_t counter,
                                        uint64_t threshold) {
  return host::write(program, "peal_program_wait",
                     [&] { program->written.wait(host::counter_of(counter), threshold); });
}

extern "C" peal_error peal_program_signal(peal_program* program, uint32_t rank,
                                          const peal_program_notice* notice, uint32_t done) {
  if (notice == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_signal: notice is null");
  }
  return host::write(program, "peal_program_signal", [&] {
    program->written.signal(rank, host::notice_of(*notice), host::counter_of(done));
  });
}

extern "C" peal_error peal_program_check(const peal_program* program, char* text, size_t capacity,
                                         size_t* length) {
  if (program == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_check: program is null");
  }
  return guarded([&] {
    const auto findings = host::check_program(program->written);
    const peal_error error = host::give_text(host::text_of(findings), text, capacity, length);
    return error == PEAL_OK ? host::first_wrong(program->written, findings) : error;
  });
}

extern "C" peal_error peal_program_print(const peal_program* program, unsigned format, char* text,
                                         size_t capacity, size_t* length) {
  if (program == nullptr || (format != PEAL_PROGRAM_AS_TEXT && format != PEAL_PROGRAM_AS_GRAPH)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_print: program is null, or format %u",
                format);
  }
  return guarded([&] {
    const std::string whole = format == PEAL_PROGRAM_AS_TEXT ? host::text_of(program->written)
                                                             : host::graph_of(program->written);
    return host::give_text(whole, text, capacity, length);
  });
}

extern "C" peal_error peal_program_commit(peal_group* group, peal_program* program) {
  if (group == nullptr || program == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_commit: an argument is null");
  }
  return guarded(*group->context, "peal_program_commit", [&] {
    return host::is_committed(*program) ? host::refuse_committed(*group, "peal_program_commit", 0)
                                        : host::commit(*group, *program);
  });
}

extern "C" peal_error peal_program_commit_all(peal_group* group, peal_program* const* programs,
                                              size_t count) {
  if (group == nullptr || programs == nullptr || count == 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "peal_program_commit_all: group or programs is null, or there are none");
  }
  size_t committed = count;  // the first that is, or stands there twice
  for (size_t at = 0; at < count; at++) {
    if (programs[at] == nullptr) {
      return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_commit_all: program %zu is null", at);
    }
    if (committed == count && (host::is_committed(*programs[at]) ||
                               std::find(programs, programs + at, programs[at]) != programs + at)) {
      committed = at;
    }
  }
  return guarded(*group->context, "peal_program_commit_all", [&] {
    return committed < count ? host::refuse_committed(*group, "peal_program_commit_all", committed)
                             : host::commit_all(*group, {programs, count});
  });
}

extern "C" peal_error peal_program_trinary(uint32_t rank, uint32_t size,
                                           const peal_trinary_params* params,
                                           peal_program* programs[PEAL_TRINARY_ENGINES]) {
  if (params == nullptr || programs == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_program_trinary: params or programs is null");
  }
  std::fill_n(programs, PEAL_TRINARY_ENGINES, nullptr);
  return guarded([&] {
    peal_trinary_params taken = {};
    const peal_error error = host::take_struct(params, "peal_trinary_params", &taken);
    if (error != PEAL_OK) return error;
    return host::write_trinary(taken, rank, size, programs);
  });
}

extern "C" peal_error peal_program_start(peal_program* program, uint32_t iterations,
                                         peal_request** request) {
  if (request != nullptr) *request = nullptr;
  if (program != nullptr && program->over) {
    return fail(PEAL_ERR_CLOSED, "peal_program_start: its group is gone");
  }
  if (program == nullptr || program->group == nullptr || iterations == 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "peal_program_start: it is null or not committed, or %u iterations", iterations);
  }
  return guarded(*program->group->context, "peal_program_start", [&] {
    const host::Lock lock(program->group->context->mutex);
    return host::post_start(*program, iterations, request);
  });
}

extern "C" peal_error peal_program_free(peal_program* program) {
  if (program == nullptr) return PEAL_OK;
  if (program->group != nullptr) {
    const peal_error error = guarded(*program->group->context, "peal_program_free", [&] {
      const host::Lock lock(program->group->context->mutex);
      host::drain(*program->group->context);
      return host::take_back(*program);
    });
    if (error != PEAL_OK) return error;
  }
  delete program;
  return PEAL_OK;
}
