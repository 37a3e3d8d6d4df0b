// Choices: the settings that are one of a list of words, as enums. A word means the enumerator that is spelled like it:
// "flat" kFlat, and "thread:spin", of which the part behind the colon counts, kSpin. So the order of the words of a row
// of settings.def means nothing, but that the first is the default. settings.cpp does not compile when a word has no
// enumerator, or the default is not the first one.
#pragma once

#include <string>
#include <string_view>

namespace heddle::base {

// Declares the enum, and its enumerators as text: "kAuto, kCentral, ...".
#define HEDDLE_CHOICE(type, ...)                 \
    enum class type : int { __VA_ARGS__ };       \
    constexpr const char* enumerators_of(type) { \
        return #__VA_ARGS__;                     \
    }

HEDDLE_CHOICE(BarrierAlgorithm, kAuto, kCentral, kDissemination, kFlat)
HEDDLE_CHOICE(CollectiveThreads, kAuto, kOne, kAll)
HEDDLE_CHOICE(CollectiveAlgorithm, kAuto, kInline, kBounce, kPush, kPull, kSliced)
HEDDLE_CHOICE(VectorUnit, kAuto, kBaseline, kAvx2, kAvx512)
HEDDLE_CHOICE(AsyncCopy, kAuto, kAlways, kNever)
HEDDLE_CHOICE(Progress, kAuto, kManual, kThread, kSpin, kMonitor, kBlock)
HEDDLE_CHOICE(MonitorChoice, kAuto, kNone, kUmwait, kMwaitx, kWfe, kFake)
HEDDLE_CHOICE(RailOrder, kRail, kReorder)
HEDDLE_CHOICE(RailLoss, kEnd, kContinue)
HEDDLE_CHOICE(NetTransport, kAuto, kUcx)
HEDDLE_CHOICE(Protocol, kAuto, kAm, kRma)
HEDDLE_CHOICE(OutOfLine, kAuto, k1, k0)
HEDDLE_CHOICE(Launch, kAuto, kAlone, kPmix, kPmi, kPmi2, kEnv)

#undef HEDDLE_CHOICE

// The first word of "a|b|c", and whether a word is one of them.
constexpr std::string_view first_word(std::string_view words) {
    return words.substr(0, words.find('|'));
}
constexpr bool is_word_of(std::string_view words, std::string_view word) {
    for (;; words.remove_prefix(first_word(words).size() + 1)) {
        if (first_word(words) == word)
            return true;
        if (first_word(words).size() == words.size())
            return false;
    }
}

// Whether the enumerator is spelled like the word.
constexpr bool is_spelled_like(std::string_view enumerator, std::string_view word) {
    word.remove_prefix(word.find(':') + 1);  // npos + 1 is 0
    if (word.empty() || enumerator.size() != word.size() + 1 || enumerator[0] != 'k')
        return false;
    for (size_t i = 0; i < word.size(); ++i) {
        const char letter = enumerator[i + 1];
        const char lower = i == 0 && letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
        if (lower != word[i])
            return false;
    }
    return true;
}

// The enumerator of that number among "kA, kB, ..."; empty: there is none.
constexpr std::string_view enumerator_at(std::string_view enumerators, int number) {
    for (; number > 0 && !enumerators.empty(); --number) {
        const size_t comma = enumerators.find(',');
        enumerators = comma == enumerators.npos ? std::string_view() : enumerators.substr(comma + 2);
    }
    return enumerators.substr(0, enumerators.find(','));
}

// The number of the enumerator of "kA, kB, ..." that is spelled like the word; -1: none.
constexpr int find_enumerator(std::string_view enumerators, std::string_view word) {
    for (int number = 0;; ++number) {
        const std::string_view enumerator = enumerator_at(enumerators, number);
        if (enumerator.empty() || is_spelled_like(enumerator, word))
            return enumerator.empty() ? -1 : number;
    }
}

// The word of an enumerator, without what may stand before a colon: "flat" of kFlat.
template <class T>
std::string word_of(T choice) {
    std::string word(enumerator_at(enumerators_of(T{}), static_cast<int>(choice)).substr(1));
    word[0] = static_cast<char>(word[0] - 'A' + 'a');
    return word;
}

// Whether each of the words "a|b|c" has an enumerator, and the first word the first enumerator.
template <class T>
constexpr bool are_words_of(std::string_view words) {
    bool found = find_enumerator(enumerators_of(T{}), first_word(words)) == 0;
    for (std::string_view rest = words; found; rest.remove_prefix(first_word(rest).size() + 1)) {
        found = find_enumerator(enumerators_of(T{}), first_word(rest)) >= 0;
        if (first_word(rest).size() == rest.size())
            break;
    }
    return found;
}

}  // namespace heddle::base
