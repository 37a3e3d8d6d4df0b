/* The parts of the program sentences.cpp that have files of their own. Each is collective over the world. */
#ifndef CONFORMANCE_SENTENCES_H
#define CONFORMANCE_SENTENCES_H

namespace conformance {

void sentences_of_communication();  // sentences_communication.cpp: one-sided, signals, collectives, order
void sentences_of_threads();        // sentences_threads.cpp

}  // namespace conformance

#endif
