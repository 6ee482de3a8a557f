// SPDX-License-Identifier: BSD-2-Clause
// Parsing of rules; see choice_rules.h.
#include "hostlib/choice_rules.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/names.h"
#include "base/whole_number.h"
#include "hostlib/error.h"

namespace peal::host {
namespace {

constexpr std::string_view kBlanks = " \t\r";
// Of a user's words in an error text: whoever gave a wrong file is not shown all of it.
constexpr size_t kQuotedMax = 80;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// What comes before the separator, which is taken away with it.
std::string_view take_part(std::string_view* rest, char separator) {
  const size_t at = rest->find(separator);
  const std::string_view part = rest->substr(0, at);
  *rest = at == rest->npos ? std::string_view() : rest->substr(at + 1);
  return part;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kQuotedMax)) out += c >= ' ' && c < 127 ? c : '?';
  return out + (text.size() > kQuotedMax ? "...\"" : "\"");
}

bool parse_range(std::string_view text, Range* range) {
  const size_t dash = text.find('-');
  if (!parse_whole(text.substr(0, dash), 0, UINT64_MAX, &range->first)) return false;
  range->last = range->first;
  if (dash == text.npos) return true;
  const std::string_view last = text.substr(dash + 1);
  range->last = UINT64_MAX;
  return last.empty() || parse_whole(last, range->first, UINT64_MAX, &range->last);
}

std::string name_of(const NamedProgramWay& way) {
  return way.name != nullptr ? way.name : names::algorithm(way.namesake);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One rule, and who says so.
class RuleParser {
 public:
  RuleParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  peal_error parse(ChoiceRule* rule) {
    if (text_.empty()) {
      return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: a rule is empty: a comma too many?",
                  where_.c_str());
    }
    std::string_view rest = text_;
    peal_error error = take_operation(trimmed(take_part(&rest, ':')), rule);
    while (error == PEAL_OK && rest.find(':') != rest.npos) {
      error = take_range(trimmed(take_part(&rest, ':')), rule);
    }
    return error == PEAL_OK ? take_algorithm(trimmed(rest), rule) : error;
  }

 private:
  peal_error wrong(const std::string& what) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: %s: %s", where_.c_str(), quoted(text_).c_str(),
                what.c_str());
  }

  peal_error take_operation(std::string_view name, ChoiceRule* rule) {
    for (const Subject& subject : subjects()) {
      if (name_of(subject) != name) continue;
      rule->operation = subject.operation;
      rule->persistent = subject.persistent;
      return PEAL_OK;
    }
    return wrong(quoted(name) + " is no operation: expected " + names::list_of(subject_names()));
  }

  peal_error take_range(std::string_view text, ChoiceRule* rule) {
    const bool ranks = text.size() > 1 && text[0] == 'n' && is_digit(text[1]);
    if (!ranks && (text.empty() || !is_digit(text[0]))) {
      return wrong(quoted(text) +
                   " is no range: expected bytes, as 0-4k, 4k- or 8, or ranks, as n2-16");
    }
    if (!ranks && !has_common_bytes(rule->operation)) {
      return wrong(quoted(text) + " is a range of bytes, but in " + name_of(rule->subject()) +
                   " ranks know no common length");
    }
    bool& seen = ranks ? ranks_seen_ : bytes_seen_;
    if (seen) return wrong(std::string(ranks ? "ranks" : "bytes") + " are there twice");
    seen = true;
    if (parse_range(ranks ? text.substr(1) : text, ranks ? &rule->ranks : &rule->bytes)) {
      return PEAL_OK;
    }
    return wrong(quoted(text) + " is no range of " + (ranks ? "ranks" : "bytes") +
                 ": expected A-B with A not above B, A- or A; k and M are 1024 and 1024 * 1024");
  }

  // "doubling" is short for the one that is recursive.
  static bool is_named(const std::string& algorithm, std::string_view name) {
    return algorithm == name ||
           (name == "doubling" && algorithm == names::algorithm(PEAL_ALGORITHM_RECURSIVE_DOUBLING));
  }

  peal_error take_algorithm(std::string_view name, ChoiceRule* rule) {
    const Subject subject = rule->subject();
    for (const Way& way : kWays) {
      if (subject != Subject{way.operation, false} ||
          !is_named(names::algorithm(way.algorithm), name))
        continue;
      rule->algorithm = way.algorithm;
      return PEAL_OK;
    }
    for (const NamedProgramWay& way : kProgramWays) {
      if (subject != Subject{way.operation, true} || !is_named(std::string(name_of(way)), name))
        continue;
      rule->program = way.program;
      return PEAL_OK;
    }
    return wrong((name.empty() ? "the algorithm is missing"
                               : quoted(name) + " is no algorithm of " + name_of(subject)) +
                 ": expected " + names::list_of(algorithm_names(subject)));
  }

  std::string_view text_;
  const std::string& where_;
  bool bytes_seen_ = false;
  bool ranks_seen_ = false;
};

// One line, of a file or of all there is.
peal_error parse_line(std::string_view line, const std::string& where, PlacedRules* rules) {
  line = trimmed(line.substr(0, line.find('#')));
  bool more = !line.empty();
  while (more) {
    more = line.find(',') != line.npos;
    ChoiceRule rule;
    const peal_error error = RuleParser(trimmed(take_part(&line, ',')), where).parse(&rule);
    if (error != PEAL_OK) return error;
    if (rules->size() >= kRulesMax) {
      return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: more than %zu rules", where.c_str(), kRulesMax);
    }
    rules->push_back({rule, where});
  }
  return PEAL_OK;
}

struct CloseFile {
  void operator()(FILE* file) const { (void)fclose(file); }
};

peal_error read_file(const std::string& path, std::string* text) {
  const std::unique_ptr<FILE, CloseFile> file(fopen(path.c_str(), "re"));
  if (file == nullptr) return fail_errno(PEAL_ERR_SYSTEM, "opening the rules %s", path.c_str());
  text->resize(kRulesFileBytesMax + 1);
  text->resize(fread(text->data(), 1, text->size(), file.get()));
  if (ferror(file.get()) != 0) {
    return fail_errno(PEAL_ERR_SYSTEM, "reading the rules %s", path.c_str());
  }
  if (text->size() <= kRulesFileBytesMax) return PEAL_OK;
  return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: rules of more than %zu bytes", path.c_str(),
              kRulesFileBytesMax);
}

}  // namespace

std::string name_of(const Subject& subject) {
  return names::operation(subject.operation) + (subject.persistent ? "_init" : "");
}

std::string name_of(const Subject& subject, peal_algorithm algorithm, ProgramWay program) {
  if (!subject.persistent) return names::algorithm(algorithm);
  const auto* const way = std::ranges::find_if(kProgramWays, [&](const NamedProgramWay& each) {
    return each.operation == subject.operation && each.program == program;
  });
  return name_of(*way);
}

std::vector<Subject> subjects() {
  std::vector<Subject> found;
  const auto add = [&found](const Subject& subject) {
    if (std::ranges::find(found, subject) == found.end()) found.push_back(subject);
  };
  for (const Way& way : kWays) add({way.operation, false});
  for (const NamedProgramWay& way : kProgramWays) add({way.operation, true});
  return found;
}

std::vector<std::string> subject_names() {
  std::vector<std::string> found;
  for (const Subject& subject : subjects()) found.push_back(name_of(subject));
  return found;
}

std::vector<std::string> algorithm_names(const Subject& subject) {
  std::vector<std::string> found;
  for (const Way& way : kWays) {
    if (subject == Subject{way.operation, false}) found.push_back(names::algorithm(way.algorithm));
  }
  for (const NamedProgramWay& way : kProgramWays) {
    if (subject == Subject{way.operation, true}) found.push_back(name_of(way));
  }
  return found;
}

peal_error parse_rules(std::string_view text, const std::string& where, PlacedRules* rules) {
  while (!text.empty()) {
    const peal_error error = parse_line(take_part(&text, '\n'), where, rules);
    if (error != PEAL_OK) return error;
  }
  return PEAL_OK;
}

peal_error read_rules_file(const std::string& path, PlacedRules* rules) {
  std::string all;
  peal_error error = read_file(path, &all);
  std::string_view rest = all;
  for (int line = 1; error == PEAL_OK && !rest.empty(); line++) {
    error = parse_line(take_part(&rest, '\n'), path + ":" + std::to_string(line), rules);
  }
  return error;
}

std::string text_of(const Range& range) {
  if (range.first == range.last) return whole_text(range.first);
  if (range.last != UINT64_MAX) return whole_text(range.first) + "-" + whole_text(range.last);
  return range.first == 0 ? "" : whole_text(range.first) + "-";
}

std::string text_of(const ChoiceRule& rule) {
  std::string text = name_of(rule.subject()) + ":";
  if (const std::string bytes = text_of(rule.bytes); !bytes.empty()) text += bytes + ":";
  if (const std::string ranks = text_of(rule.ranks); !ranks.empty()) text += "n" + ranks + ":";
  return text + name_of(rule.subject(), rule.algorithm, rule.program);
}

}  // namespace peal::host
