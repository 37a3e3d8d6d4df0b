// IntrusiveList: an item is in it once, comes out in the order of a stack, and may be in several lists.
#include "fabric/endpoint/intrusive_list.h"

#include <gtest/gtest.h>
#include <vector>

namespace heddle::fabric {
namespace {

struct Item {
    int number;
    ListLink<Item> one, two;
};
using One = IntrusiveList<Item, &Item::one>;
using Two = IntrusiveList<Item, &Item::two>;

class IntrusiveListTest : public testing::Test {
  protected:
    template <class List>
    std::vector<int> take_all(List& list) {
        std::vector<int> numbers;
        list.take_all([&](Item& item) { numbers.push_back(item.number); });
        return numbers;
    }

    Item items[4] = {{0, {}, {}}, {1, {}, {}}, {2, {}, {}}, {3, {}, {}}};
    One one;
    Two two;
};

TEST_F(IntrusiveListTest, AnItemIsInItOnce) {
    EXPECT_TRUE(one.is_empty());
    EXPECT_EQ(one.take(), nullptr);
    for (const int number : {0, 1, 0, 1, 2, 0}) one.add(items[number]);
    EXPECT_EQ(take_all(one), (std::vector<int>{2, 1, 0}));
    EXPECT_TRUE(one.is_empty());
}

TEST_F(IntrusiveListTest, ListsOfSeveralLinksKeepApart) {
    for (const int number : {0, 1, 2}) one.add(items[number]);
    for (const int number : {2, 3}) two.add(items[number]);
    EXPECT_EQ(take_all(one), (std::vector<int>{2, 1, 0}));
    EXPECT_EQ(take_all(two), (std::vector<int>{3, 2}));
}

TEST_F(IntrusiveListTest, TheFirstThatMatchesIsTakenFromAnyPlace) {
    for (Item& item : items) one.add(item);
    const auto is = [](int number) { return [number](const Item& item) { return item.number == number; }; };
    EXPECT_EQ(one.take_first(is(9)), nullptr);
    for (const int number : {1, 3, 0}) {
        EXPECT_EQ(one.take_first(is(number)), &items[number]);
        EXPECT_EQ(one.take_first(is(number)), nullptr);
    }
    one.add(items[1]);
    EXPECT_EQ(take_all(one), (std::vector<int>{1, 2}));
}

TEST_F(IntrusiveListTest, WhatIsAddedWhileAllAreTakenStays) {
    for (Item& item : items) one.add(item);
    one.take_all([&](Item& item) {
        if (item.number % 2 == 0)
            one.add(item);
    });
    EXPECT_EQ(take_all(one), (std::vector<int>{0, 2}));
}

using IntrusiveListDeathTest = IntrusiveListTest;

TEST_F(IntrusiveListDeathTest, ALinkSaysWhetherItsItemIsListed) {
    one.add(items[0]);
    items[0].one.is_listed = false;
    EXPECT_EXIT(one.take(), testing::ExitedWithCode(1), "link.is_listed");
}

}  // namespace
}  // namespace heddle::fabric
