// Records one behind the other, written by the writers of fabric/protocol/record.h; for tests and the seeds of the
// fuzzer.
#pragma once

#include "fabric/protocol/record.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::fabric {

class Records {
  public:
    Records& put(Address to, const std::string& data) {
        return add(record::put_bytes(data.size()),
                   [&](char* at) { return record::put(at, to, data.data(), data.size()); });
    }
    Records& put_word(Address to, uint64_t bits, size_t bytes = record::kWord) {
        return add(2 * record::kWord, [&](char* at) { return record::put_word(at, to, bits, bytes); });
    }
    Records& large(Address to, size_t bytes) {
        return add(record::kMaxShort, [&](char* at) { return record::large(at, to, bytes); });
    }
    Records& get(Address from, size_t bytes) {
        return add(record::kMaxShort, [&](char* at) { return record::get(at, from, bytes); });
    }
    Records& atomic(Address to, heddle_amo_op op, uint64_t operand, uint64_t compare, size_t bytes, bool fetch) {
        return add(record::kMaxShort,
                   [&](char* at) { return record::atomic(at, to, op, operand, compare, bytes, fetch); });
    }
    Records& signal(Address to, uint64_t value, bool adds) {
        return add(record::kMaxShort, [&](char* at) { return record::signal(at, to, value, adds); });
    }
    Records& control(const ControlKey& key, const std::string& data) {
        return add(record::control_bytes(data.size()),
                   [&](char* at) { return record::control(at, key, data.data(), data.size()); });
    }
    Records& order() {
        return add(record::kWord, [](char* at) { return record::order(at); });
    }
    Records& after(unsigned rail, uint64_t position) {
        return add(record::kMaxShort, [&](char* at) { return record::after(at, rail, position); });
    }
    // What no writer writes.
    Records& words(const std::vector<uint64_t>& values) {
        return add(values.size() * record::kWord, [&](char* at) {
            for (const uint64_t value : values) at = record::word(at, value);
            return at;
        });
    }

    const char* data() const { return bytes_.data(); }
    size_t size() const { return bytes_.size(); }
    const std::vector<size_t>& ends() const { return ends_; }  // where each record ends

  private:
    template <class Write>
    Records& add(size_t most, Write write) {
        const size_t before = bytes_.size();
        bytes_.resize(before + most);
        char* const behind = write(bytes_.data() + before);
        bytes_.resize(static_cast<size_t>(behind - bytes_.data()));
        ends_.push_back(bytes_.size());
        return *this;
    }

    std::vector<char> bytes_;
    std::vector<size_t> ends_;
};

}  // namespace heddle::fabric
