// The table of algorithms: every operation has one for every size, forced ones are taken where the data fit.
#include "support/pes_as_threads.h"

#include "base/settings.h"
#include "collective/select.h"
#include "team/room.h"

#include <gtest/gtest.h>
#include <climits>
#include <cstdlib>

#include <shmem.h>

namespace heddle::collective {
namespace {

constexpr Operation kOperations[] = {Operation::kBroadcast, Operation::kCollect, Operation::kFcollect,
                                     Operation::kAlltoall,  Operation::kReduce,  Operation::kScan};

TEST(Select, FindsSomethingThatFits) {
    for (Operation operation : kOperations) {
        for (size_t bytes : {size_t{0}, size_t{1}, team::kNoteBytes, team::kNoteBytes + 1, team::kMailBytes,
                             team::kMailBytes + 1, size_t{1} << 40}) {
            for (int size : {2, 3, 4096}) {
                const Algorithm algorithm = select(operation, bytes, size);
                EXPECT_TRUE(algorithm != Algorithm::kNote || bytes <= team::kNoteBytes);
                EXPECT_TRUE(algorithm != Algorithm::kMail || bytes <= team::kMailBytes);
                const bool reads_sources = operation == Operation::kReduce || operation == Operation::kScan;
                EXPECT_TRUE(!reads_sources || (algorithm != Algorithm::kPush && algorithm != Algorithm::kPull));
            }
        }
    }
}

TEST(Select, TakesWhatIsForcedWhereItFits) {
    base::settings.broadcast = 3;  // pull
    base::settings.reduce = 1;     // mail
    EXPECT_EQ(select(Operation::kBroadcast, 8, 4), Algorithm::kPull);
    EXPECT_EQ(select(Operation::kReduce, team::kMailBytes, 4), Algorithm::kMail);
    EXPECT_EQ(select(Operation::kReduce, team::kMailBytes + 1, 4), Algorithm::kSlices);
    base::settings.broadcast = 1;  // note
    EXPECT_EQ(select(Operation::kBroadcast, team::kNoteBytes, 2), Algorithm::kNote);
    EXPECT_NE(select(Operation::kBroadcast, team::kNoteBytes + 1, 2), Algorithm::kNote);
    base::settings.broadcast = base::settings.reduce = 0;
}

}  // namespace
}  // namespace heddle::collective
