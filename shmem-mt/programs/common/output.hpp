// JSON lines on stdout, one object a line, flushed at once so that a driver sees a point as soon as it is
// measured. Only PE 0 may print. Everything meant for people goes to stderr.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace shmem_mt {

// Builds one JSON object, field by field, in the order of the calls.
class Json {
  public:
    Json& text(const char* key, const std::string& value) { return raw(key, quoted(value)); }
    Json& number(const char* key, double value) { return raw(key, number_text(value)); }
    Json& integer(const char* key, long value) { return raw(key, std::to_string(value)); }
    Json& boolean(const char* key, bool value) { return raw(key, value ? "true" : "false"); }
    Json& object(const char* key, const Json& value) { return raw(key, value.str()); }

    Json& numbers(const char* key, const std::vector<double>& values) {
        std::string list = "[";
        for (const double value : values) list += (list.size() > 1 ? "," : "") + number_text(value);
        return raw(key, list + "]");
    }

    Json& raw(const char* key, const std::string& value) {
        body_ += (body_.empty() ? "" : ",") + quoted(key) + ":" + value;
        return *this;
    }

    std::string str() const { return "{" + body_ + "}"; }

    void print() const {
        std::printf("%s\n", str().c_str());
        std::fflush(stdout);
    }

  private:
    static std::string number_text(double value) {
        if (!std::isfinite(value))
            return "null";
        char text[40];
        std::snprintf(text, sizeof text, "%.9g", value);
        return text;
    }

    static std::string quoted(const std::string& value) {
        std::string out = "\"";
        for (const char c : value) {
            if (c == '"' || c == '\\')
                out += '\\';
            if (static_cast<unsigned char>(c) >= 0x20)
                out += c;
        }
        return out + "\"";
    }

    std::string body_;
};

}  // namespace shmem_mt
