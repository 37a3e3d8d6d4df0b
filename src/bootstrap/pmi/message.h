// Messages of the process management interface (PMI) between a PE and the process manager that started it. The wire
// protocol has versions 1 and 2. A message is a command and fields NAME=VALUE.
//
//   version 1: cmd=COMMAND NAME=VALUE ... and a newline
//   version 2: the length in six characters, then cmd=COMMAND;NAME=VALUE;...; The first message is one of version 1.
//
// Answers are checked: length, shape and numbers. Fields of other names are ignored. Threads: any, with a message each.
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle::bootstrap::pmi {

enum class Version : int { k1 = 1, k2 = 2 };

constexpr size_t kMaxMessageBytes = 4096;
constexpr size_t kLengthBytes = 6;  // in front of a message of version 2

// A message to be sent. One that does not fit is not complete.
class Request {
  public:
    Request(Version version, const char* command);
    void add(const char* name, std::string_view value);
    void add(const char* name, long value);
    // The bytes to be sent; empty when they do not fit.
    std::string_view finish();

  private:
    void append(std::string_view text);

    const Version version_;
    size_t used_ = 0;
    bool fits_ = true;
    char text_[kMaxMessageBytes];
};

// A message that has come, as text between its length and its end.
class Answer {
  public:
    // False when the text is no message.
    bool parse(Version version, std::string_view text);
    std::string_view command() const { return command_; }
    // The value of the field; no data when there is none. Valid until the next parse.
    std::string_view find(std::string_view name) const;
    // The field as a number from low to high; false when it is none.
    bool find_number(std::string_view name, long low, long high, long* value) const;

  private:
    char separator_ = ' ';
    size_t used_ = 0;
    std::string_view command_;
    char text_[kMaxMessageBytes];
};

// The length of the message of version 2 behind these six characters; 0: they are no length, or too great a one.
size_t parse_length(const char (&text)[kLengthBytes]);

}  // namespace heddle::bootstrap::pmi
