#include "bootstrap/pmi/message.h"

#include <charconv>
#include <cstdio>
#include <cstring>

namespace heddle::bootstrap::pmi {

Request::Request(Version version, const char* command) : version_(version) {
    if (version == Version::k2)
        append("      ");
    append("cmd=");
    append(command);
}

void Request::append(std::string_view text) {
    fits_ = fits_ && text.size() <= sizeof text_ - used_;
    if (!fits_)
        return;
    memcpy(text_ + used_, text.data(), text.size());
    used_ += text.size();
}

void Request::add(const char* name, std::string_view value) {
    append(version_ == Version::k1 ? " " : ";");
    append(name);
    append("=");
    append(value);
}

void Request::add(const char* name, long value) {
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%ld", value);
    add(name, {digits, static_cast<size_t>(length)});
}

std::string_view Request::finish() {
    append(version_ == Version::k1 ? "\n" : ";");
    if (!fits_)
        return {};
    if (version_ == Version::k2) {
        char length[kLengthBytes + 1];
        snprintf(length, sizeof length, "%6zu", (used_ - kLengthBytes) % 1000000);
        memcpy(text_, length, kLengthBytes);
    }
    return {text_, used_};
}

bool Answer::parse(Version version, std::string_view text) {
    separator_ = version == Version::k1 ? ' ' : ';';
    command_ = {};
    used_ = 0;
    if (text.size() > sizeof text_ || memchr(text.data(), '\0', text.size()))
        return false;
    memcpy(text_, text.data(), text.size());
    used_ = text.size();
    command_ = std::string_view(text_, used_).substr(0, 4) == "cmd=" ? find("cmd") : std::string_view();
    return !command_.empty();
}

std::string_view Answer::find(std::string_view name) const {
    for (std::string_view rest(text_, used_); !rest.empty();) {
        const std::string_view field = rest.substr(0, rest.find(separator_));
        rest.remove_prefix(field.size() < rest.size() ? field.size() + 1 : rest.size());
        if (field.size() > name.size() && field[name.size()] == '=' && field.substr(0, name.size()) == name)
            return field.substr(name.size() + 1);
    }
    return {};
}

bool Answer::find_number(std::string_view name, long low, long high, long* value) const {
    const std::string_view text = find(name);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return !text.empty() && error == std::errc() && end == text.data() + text.size() && *value >= low && *value <= high;
}

size_t parse_length(const char (&text)[kLengthBytes]) {
    const std::string_view all(text, kLengthBytes);
    const size_t first = all.find_first_not_of(' ');
    if (first == std::string_view::npos)
        return 0;
    const size_t last = all.find_last_not_of(' ');  // Slurm's are on the left, MPICH's on the right
    size_t length = 0;
    const auto [end, error] = std::from_chars(text + first, text + last + 1, length);
    return error == std::errc() && end == text + last + 1 && length <= kMaxMessageBytes ? length : 0;
}

}  // namespace heddle::bootstrap::pmi
