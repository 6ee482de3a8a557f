// SPDX-License-Identifier: BSD-2-Clause
// What is over is given back; see ended.h.
#include "hostlib/ended.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "hostlib/administration.h"
#include "hostlib/program_handle.h"
#include "hostlib/rings.h"

namespace peal::host {

void leave_memory(peal_context& context, const Allocation& memory) {
  const std::string text = last_error_text();
  std::vector<Allocation>& left = context.left_memory;
  const auto is_given_back = [&](const Allocation& each) {
    return context.transport->release(each) != PEAL_ERR_BUSY;
  };
  std::erase_if(left, is_given_back);
  if (memory.address != nullptr && !is_given_back(memory)) left.push_back(memory);
  (void)fail(PEAL_OK, "%s", text.c_str());
}

void leave_allocated(peal_context& context, void* memory) {
  const std::lock_guard guard(context.mutex);
  const Region* found = context.memory.allocated_at(memory);
  if (found == nullptr) return;
  const Region region = *found;
  context.memory.remove(region.key);
  leave_memory(context, region.allocation);
}

void drop_table(peal_context& context, AddressTables::Place* table) {
  if (table->address != nullptr) context.tables.give(*table);
  *table = {};
}

peal_error take_back(peal_program& program) {
  peal_context& context = *program.group->context;
  const peal_error error = free_program(*context.transport, program.handle);
  if (error == PEAL_ERR_BUSY) return error;
  leave_memory(context, program.memory);
  leave_memory(context, program.work);
  program.work = {};
  std::erase(program.group->programs, &program);
  program.group = nullptr;
  return PEAL_OK;
}

void forget_ended_programs(peal_context& context) {
  std::erase_if(context.ended_programs, [](peal_program* program) {
    if (program->group != nullptr && take_back(*program) == PEAL_ERR_BUSY) return false;
    delete program;
    return true;
  });
  context.programs_ended = !context.ended_programs.empty();
}

std::vector<Allocation> orphan_programs(peal_group& group) {
  std::vector<Allocation> memory;
  for (peal_program* program : group.programs) {
    memory.push_back(program->memory);
    if (program->work.address != nullptr) memory.push_back(program->work);
    program->group = nullptr;
    program->over = true;
  }
  group.programs.clear();
  return memory;
}

void forget_group(peal_context& context, peal_group* group) {
  drop_table(context, &group->table);
  leave_memory(context, group->part_tables.memory());
  for (const Allocation& memory : orphan_programs(*group)) leave_memory(context, memory);
  std::erase_if(context.groups, [group](const auto& each) { return each.get() == group; });
}

void forget_ended_groups(peal_context& context) {
  std::vector<peal_group*> ended;
  for (const auto& group : context.groups) {
    if (has_ended(*group)) ended.push_back(group.get());
  }
  for (peal_group* group : ended) forget_group(context, group);
}

}  // namespace peal::host
