// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/outcome.h"

#include <string>

#include "base/names.h"
#include "hostlib/rings.h"

namespace peal::host {

namespace {

// Was it another rank's start that failed, and this one with it?
bool failed_elsewhere(const peal_request& request) {
  return request.operation == PEAL_OPERATION_START &&
         (request.bad_reason & PEAL_PROGRAM_ELSEWHERE) != 0;
}

// Where a start failed, and why: ": counter 3: …" or ": descriptor 3: …".
std::string place_of(const peal_request& request) {
  const bool bad = request.result == PEAL_ERR_BAD_PROGRAM;
  const bool refused = request.result == PEAL_ERR_BAD_KEY ||
                       request.result == PEAL_ERR_BAD_BOUNDS ||
                       request.result == PEAL_ERR_BAD_ACCESS;
  const bool by_rank = refused && request.failed_rank != PEAL_NO_RANK;
  if (request.operation != PEAL_OPERATION_START) return {};
  if (!bad && !by_rank && !failed_elsewhere(request)) return {};
  const int reason = request.bad_reason & ~PEAL_PROGRAM_ELSEWHERE;
  const bool counter =
      bad && (reason == PEAL_PROGRAM_REASON_AHEAD || reason == PEAL_PROGRAM_REASON_OVERFLOW ||
              reason == PEAL_PROGRAM_REASON_SOURCE);
  std::string text = counter ? ": counter " : ": descriptor ";
  text += std::to_string(request.bad_index);
  const auto* row =
      bad ? names::row_of(names::kProgramReasons, static_cast<uint32_t>(reason)) : nullptr;
  return row == nullptr ? text : text + ": " + row->text;
}

// Who it was: collectives and starts are numbered, point-to-point has another rank and a tag.
std::string title_of(const peal_request& request) {
  if (is_point_to_point(request)) {
    std::string title = message_title(request.operation, request.rank);
    const bool tagged =
        request.operation == PEAL_OPERATION_SEND || request.operation == PEAL_OPERATION_RECEIVE;
    if (!tagged) return title;
    return title + (request.any_tag ? ", any tag" : ", tag " + std::to_string(request.sequence));
  }
  return names::operation(request.operation) + " " + std::to_string(request.sequence);
}

}  // namespace

std::string message_title(uint8_t operation, uint32_t rank) {
  const bool from = operation == PEAL_OPERATION_RECEIVE || operation == PEAL_OPERATION_GET;
  const std::string whom = rank == PEAL_ALL_RANKS ? "all ranks" : "rank " + std::to_string(rank);
  return names::operation(operation) + (from ? " from " : " to ") + whom;
}

peal_error explain(const peal_request& request) {
  const std::string title = title_of(request);
  const std::string place = place_of(request);
  if (failed_elsewhere(request)) {
    return fail(request.result, "%s: rank %u's start failed: %s%s", title.c_str(),
                request.failed_rank, peal_strerror(request.result), place.c_str());
  }
  if (request.failed_rank != PEAL_NO_RANK) {
    return fail(request.result, "%s: %s%s: rank %u", title.c_str(), peal_strerror(request.result),
                place.c_str(), request.failed_rank);
  }
  if (request.result == PEAL_ERR_TRUNCATED) {
    return fail(request.result, "%s: %s: %llu bytes", title.c_str(), peal_strerror(request.result),
                static_cast<unsigned long long>(request.moved));
  }
  return fail(request.result, "%s: %s%s", title.c_str(), peal_strerror(request.result),
              place.c_str());
}

}  // namespace peal::host
