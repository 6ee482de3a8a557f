// SPDX-License-Identifier: BSD-2-Clause
// The manners of all command lines: help, version, numbers, and each mistake's one line and status.
#include "emulator/common/command_line.h"

#include <gtest/gtest.h>

namespace peal::command_line {
namespace {

// A program with one option of each kind. What it was given, or what it said, as text.
class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() : app_("tool", "tool [OPTIONS] [WORD]", "Does something.") {
    Group group(app_);
    group.add("WORD", word_, "", "Is a word.");
    group.add("-n,--count", count_, "N", "Takes N of them, 1 to 4096.")
        .check(whole(1, 4096))
        .show_default();
    Group others(app_, "Others");
    others.add("--share", share_, "P", "Is a share.").check(number(0, 1));
    others.add("--kind", kind_, "KIND", "Is a kind.").check(one_of({"red", "blue"}));
    others.add("--each", each_, "TEXT", "Is a text. Repeatable.");
    others.add_flag("--loud", loud_, "Is loud.");
  }
  std::string run(std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::optional<int> status = app_.parse(static_cast<int>(words.size()), words.data());
    const std::string out = testing::internal::GetCapturedStdout();
    const std::string error = testing::internal::GetCapturedStderr();
    if (status) return std::to_string(*status) + "\n" + out + error;
    EXPECT_EQ(out + error, "");
    std::string text = "count=" + std::to_string(count_) + " share=" + std::to_string(share_) +
                       " kind=" + kind_ + " loud=" + std::to_string(loud_) + " word=" + word_;
    for (const std::string& each : each_) text += " each=" + each;
    return text;
  }
  // Of a mistake.
  static std::string complaint(const std::string& what) {
    return "2\ntool: " + what + "\nTry 'tool --help'.\n";
  }

  App app_;
  uint32_t count_ = 7;
  double share_ = 0.5;
  std::string kind_ = "red";
  std::vector<std::string> each_;
  bool loud_ = false;
  std::string word_;
};

TEST_F(CommandLineTest, WithoutWordsTheDefaults) {
  EXPECT_EQ(run({}), "count=7 share=0.500000 kind=red loud=0 word=");
}

TEST_F(CommandLineTest, EveryKind) {
  EXPECT_EQ(run({"--count=3", "--share", "1e-1", "it", "--kind", "blue", "--loud", "--each",
                 "[a,b]", "--each=--c"}),
            "count=3 share=0.100000 kind=blue loud=1 word=it each=[a,b] each=--c");
}

TEST_F(CommandLineTest, TheLastCounts) {
  EXPECT_EQ(run({"-n", "3", "--count", "4", "--kind", "red", "--kind", "blue"}),
            "count=4 share=0.500000 kind=blue loud=0 word=");
}

TEST_F(CommandLineTest, ARepeatableOptionTakesOneWord) {
  EXPECT_EQ(run({"--each", "a", "it"}), "count=7 share=0.500000 kind=red loud=0 word=it each=a");
}

TEST_F(CommandLineTest, Help) {
  EXPECT_EQ(run({"--help"}),
            "0\n"
            "Usage: tool [OPTIONS] [WORD]\n"
            "\n"
            "Does something.\n"
            "\n"
            "Arguments:\n"
            "  WORD                            Is a word.\n"
            "\n"
            "Options:\n"
            "  -h, --help                      Prints this text and exits.\n"
            "  -V, --version                   Prints the version and exits.\n"
            "  -n, --count N                   Takes N of them, 1 to 4096. Default: 7.\n"
            "\n"
            "Others:\n"
            "      --share P                   Is a share.\n"
            "      --kind KIND                 Is a kind.\n"
            "      --each TEXT                 Is a text. Repeatable.\n"
            "      --loud                      Is loud.\n");
  EXPECT_EQ(run({"-h"}), run({"--help"}));
}

TEST_F(CommandLineTest, Version) {
  EXPECT_EQ(run({"--version"}), "0\ntool " PEAL_VERSION_TEXT "\n");
  EXPECT_EQ(run({"-V"}), run({"--version"}));
}

TEST_F(CommandLineTest, MistakesNameTheOptionAndTheValue) {
  EXPECT_EQ(run({"-n", "0"}), complaint("--count: '0' is no whole number from 1 to 4096"));
  EXPECT_EQ(run({"--count=x"}), complaint("--count: 'x' is no whole number from 1 to 4096"));
  EXPECT_EQ(run({"--share", "2"}), complaint("--share: '2' is no number from 0 to 1"));
  EXPECT_EQ(run({"--kind", "green"}), complaint("--kind: 'green' is none of red, blue"));
  EXPECT_EQ(run({"--count"}), complaint("--count needs a value: --count N"));
  EXPECT_EQ(run({"--loud=maybe"}), complaint("--loud takes no value"));
  EXPECT_EQ(run({"--quiet=1"}), complaint("there is no option --quiet"));
  EXPECT_EQ(run({"-q"}), complaint("there is no option -q"));
  EXPECT_EQ(run({"it", "too"}), complaint("'too' is one word too many"));
}

TEST_F(CommandLineTest, WhatFollowsAProgramIsThePrograms) {
  App app("start", "start [OPTIONS] PROGRAM...", "Starts a program.");
  app.end_at_first_word();
  bool loud = false;
  Group(app).add_flag("--loud", loud, "Is loud.");
  using Words = std::vector<std::string>;
  const char* const program[] = {"start", "--loud", "sh", "-c", "--", "--loud=3", "[a,b]", ""};
  EXPECT_EQ(app.parse(std::size(program), program), std::nullopt);
  EXPECT_TRUE(loud);
  EXPECT_EQ(app.rest(), (Words{"sh", "-c", "--", "--loud=3", "[a,b]", ""}));
  const char* const marked[] = {"start", "--", "--odd"};
  EXPECT_EQ(app.parse(std::size(marked), marked), std::nullopt);
  EXPECT_EQ(app.rest(), (Words{"--", "--odd"}));
  const char* const mistaken[] = {"start", "--quiet", "sh"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(app.parse(std::size(mistaken), mistaken), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "start: there is no option --quiet\nTry 'start --help'.\n");
}

// The value, or nothing.
std::string whole_text(const char* text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  return parse_whole(text, least, most, &value) ? std::to_string(value) : "-";
}

TEST(CommandLine, WholeNumbers) {
  EXPECT_EQ(whole_text("010", 0, 100), "10");
  EXPECT_EQ(whole_text("0x1f", 0, 100), "31");
  EXPECT_EQ(whole_text("4k", 0, 4096), "4096");
  EXPECT_EQ(whole_text("2M", 0, 1u << 21), "2097152");
  EXPECT_EQ(whole_text("18446744073709551615", 0, UINT64_MAX), "18446744073709551615");
  for (const char* const text : {"", "k", "x", "-1", "+1", " 1", "1 ", "1.5", "0x", "0x-1", "101",
                                 "1k", "18446744073709551616"})
    EXPECT_EQ(whole_text(text, 0, 100), "-") << text;
  EXPECT_EQ(whole_text("1", 2, 100), "-");
  EXPECT_EQ(whole_text("18014398509481984k", 0, UINT64_MAX), "-");  // 2^64
}

TEST(CommandLine, Numbers) {
  double value = -1;
  EXPECT_TRUE(parse_number("1e-3", 0, 1, &value));
  EXPECT_EQ(value, 0.001);
  for (const char* const text : {"", "x", "nan", "inf", "-0.1", "1.1", "0.5x", " 1"})
    EXPECT_FALSE(parse_number(text, 0, 1, &value)) << text;
  EXPECT_EQ(value, 0.001);
}

TEST(CommandLine, Ranges) {
  const auto range = [](const char* text) -> std::string {
    uint64_t first = 0;
    uint64_t last = 0;
    if (!parse_range(text, &first, &last)) return "-";
    return std::to_string(first) + " to " + std::to_string(last);
  };
  EXPECT_EQ(range("3-5"), "3 to 5");
  EXPECT_EQ(range("3"), "3 to 3");
  for (const char* const text : {"", "-", "5-3", "3-", "-3", "3-4-5", "a-b"})
    EXPECT_EQ(range(text), "-") << text;
}

// A program with a command, which has options of its own.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest()
      : app_("tool", "tool [OPTIONS]\n       tool dig [OPTIONS]", "Does something."),
        dig_(app_.add_command("dig", "tool dig [OPTIONS]", "Digs.")) {
    app_.set_footer("That is all.");
    Group(dig_).add("--depth", depth_, "M", "Digs so deep.").check(whole(1, 9));
    Group(app_).add("--width", width_, "M", "Is so wide.");
  }
  std::string run(std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const std::optional<int> status = app_.parse(static_cast<int>(words.size()), words.data());
    const std::string text =
        testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    return status ? std::to_string(*status) + "\n" + text : text;
  }

  App app_;
  App& dig_;
  uint32_t depth_ = 2;
  uint32_t width_ = 2;
};

TEST_F(CommandTest, IsNamedInTheHelp) {
  EXPECT_EQ(run({"--help"}),
            "0\n"
            "Usage: tool [OPTIONS]\n"
            "       tool dig [OPTIONS]\n"
            "\n"
            "Does something.\n"
            "\n"
            "Commands:\n"
            "  dig                             Digs.\n"
            "\n"
            "Options:\n"
            "  -h, --help                      Prints this text and exits.\n"
            "  -V, --version                   Prints the version and exits.\n"
            "      --width M                   Is so wide.\n"
            "\n"
            "That is all.\n");
}

TEST_F(CommandTest, HasHelpOfItsOwn) {
  EXPECT_EQ(run({"dig", "--help"}),
            "0\n"
            "Usage: tool dig [OPTIONS]\n"
            "\n"
            "Digs.\n"
            "\n"
            "Options:\n"
            "  -h, --help                      Prints this text and exits.\n"
            "      --depth M                   Digs so deep.\n");
}

TEST_F(CommandTest, ReadsItsOptions) {
  EXPECT_EQ(run({"dig", "--depth", "3"}), "");
  EXPECT_TRUE(dig_.chosen());
  EXPECT_EQ(depth_, 3u);
  EXPECT_EQ(app_.first_given(), "");
}

TEST_F(CommandTest, OptionsBeforeItAreTheProgramsOwn) {
  EXPECT_EQ(run({"--width", "4", "dig", "--depth", "3"}), "");
  EXPECT_TRUE(dig_.chosen());
  EXPECT_EQ(app_.first_given(), "--width");
}

TEST_F(CommandTest, SaysWhatIsWrongAsTheProgramDoes) {
  EXPECT_EQ(run({"dig", "--loud"}), "2\ntool: there is no option --loud\nTry 'tool --help'.\n");
  EXPECT_EQ(run({"--depth", "3"}), "2\ntool: there is no option --depth\nTry 'tool --help'.\n");
}

}  // namespace
}  // namespace peal::command_line
